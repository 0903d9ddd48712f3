#!/usr/bin/env bash
#
# The local NVMe disks are mounted and can be written to. Where they are not, jobs fill the root volume; ext4 turns
# read-only when a disk fails.
#
# Called by: check-node.sh, as root. Writes nothing: access(2) refuses root, too, on what is mounted read-only.
# Kinds: all
# Where: node
set -euo pipefail
# shellcheck source=assets/bootstrap/health/verdict.sh
source "$(dirname "${BASH_SOURCE[0]}")/../verdict.sh"

if [[ -z $SCRATCH ]]; then exit 0; fi
mountpoint --quiet "$TRAINING_ROOT$SCRATCH" || unfit "the local NVMe disks are not mounted on $SCRATCH"
[[ -w $TRAINING_ROOT$SCRATCH ]] || unfit "the local NVMe disks on $SCRATCH cannot be written to"
