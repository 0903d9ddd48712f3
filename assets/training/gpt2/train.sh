#!/usr/bin/env bash
# Launchers: torchrun srun mpirun
# shellcheck source=assets/training/train.sh
source "$(dirname "${BASH_SOURCE[0]}")/../train.sh"
