#!/usr/bin/env bash
# Starts the ranks of the workload_template workload on one node, or one of its ranks: train.py, on GPUs and CPUs.
# Launchers: torchrun srun
# shellcheck source=assets/training/train.sh
source "$(dirname "${BASH_SOURCE[0]}")/../train.sh"
