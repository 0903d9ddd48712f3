#!/usr/bin/env bash
#
# Checks that the root volume has free space: a job on a full one fails with errors that do not name the disk.
#
# Called by: check-node.sh, as root.
# Kinds: all
# Where: any
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../verdict.sh"

# Our own limit, for Slurm's spool, logs and a job's temporary files.
readonly LEAST_MIB=1024

free_mib="$(df --output=avail --block-size=1M "$TRAINING_ROOT/" | tail -n 1 | tr -d ' ')"
((free_mib >= LEAST_MIB)) || unhealthy "the root volume has $free_mib MiB left, and jobs need $LEAST_MIB"
