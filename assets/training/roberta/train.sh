#!/usr/bin/env bash
# Launchers: torchrun srun

# fairseq's checkpoints contain its settings as well as tensors, and it loads them in the way of torch before 2.6. They are
# this run's own files.
export TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1
source "$(dirname "${BASH_SOURCE[0]}")/../train.sh"
