#!/usr/bin/env bash
#
# Installs what jobs know of the nodes (family.env), on every node.
#
# Called by: bootstrap.sh, as root. Environment: BUNDLE, TRAINING_ETC. Safe to run again.
set -euo pipefail

mkdir -p "$TRAINING_ETC"
# A rename, so that a job that starts now reads the old file or the new one, never half of one.
install -m 644 "$BUNDLE/family.env" "$TRAINING_ETC/.family.env.new"
mv -f "$TRAINING_ETC/.family.env.new" "$TRAINING_ETC/family.env"
