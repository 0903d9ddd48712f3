#!/usr/bin/env bash
#
# Checks that CUDA starts, and that every GPU gives a piece of its memory and writes to it, as a training does first.
#
# nvidia-smi may be well while CUDA is not: error 802 until the fabric manager has run, 803 after a driver's update.
# With MIG a program sees one instance of one GPU, so such a node is not judged. Nor is one on which a program uses a GPU
# (jobs that share the node): the check takes about 500 MiB of each GPU for a moment, which that program may need.
#
# Called by: check-node.sh, as root. It leaves nothing on the GPUs.
# Kinds: gpu
# Limit: 20 s
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../verdict.sh"

need nvidia-smi "CUDA starts"
need python3 "CUDA starts"
# Both may fail on an unhealthy node, which 10-gpus.sh reports.
modes="$(nvidia-smi --query-gpu=mig.mode.current --format=csv,noheader)" || exit 1
if [[ $modes == *Enabled* ]]; then exit 0; fi
programs="$(nvidia-smi --query-compute-apps=pid --format=csv,noheader)" || exit 1
if [[ $programs == *[0-9]* ]]; then exit 0; fi
exec python3 -I "$(dirname "${BASH_SOURCE[0]}")/../gpu_cuda.py" "$ACCELERATORS_PER_NODE"
