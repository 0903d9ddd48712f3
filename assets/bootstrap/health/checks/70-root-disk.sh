#!/usr/bin/env bash
#
# The root volume has room: a job on a full one fails in ways that name anything but the disk.
#
# Called by: check-node.sh, as root.
# Kinds: all
# Where: any
set -euo pipefail
# shellcheck source=assets/bootstrap/health/verdict.sh
source "$(dirname "${BASH_SOURCE[0]}")/../verdict.sh"

# A house limit: Slurm's spool, logs and a job's temporary files.
readonly LEAST_MIB=1024

free_mib="$(df --output=avail --block-size=1M "$TRAINING_ROOT/" | tail -n 1 | tr -d ' ')"
((free_mib >= LEAST_MIB)) || unfit "the root volume has $free_mib MiB left, and jobs want $LEAST_MIB"
