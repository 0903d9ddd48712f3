#!/usr/bin/env bash
# Launchers: torchrun srun

# torchrun drops a -- that follows the script at once, so an argument that changes nothing comes before it.
if [[ ${1:-} == -- ]]; then set -- --task "${TASK:-pretrain}" "$@"; fi
source "$(dirname "${BASH_SOURCE[0]}")/../train.sh"
