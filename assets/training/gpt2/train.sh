#!/usr/bin/env bash
# Launchers: torchrun srun mpirun
source "$(dirname "${BASH_SOURCE[0]}")/../train.sh"
