#!/usr/bin/env bash
#
# Checks that the local NVMe disks are mounted and writeable. Without the mount jobs fill the root volume; ext4 becomes
# read-only when a disk fails.
#
# Called by: check-node.sh, as root. Writes nothing: on a read-only mount access(2) refuses root too.
# Kinds: all
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../verdict.sh"

if [[ -z $SCRATCH ]]; then exit 0; fi
mountpoint --quiet "$TRAINING_ROOT$SCRATCH" || unhealthy "the local NVMe disks are not mounted on $SCRATCH"
[[ -w $TRAINING_ROOT$SCRATCH ]] || unhealthy "the local NVMe disks on $SCRATCH cannot be written to"
