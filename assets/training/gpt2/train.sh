#!/usr/bin/env bash
# Starts the ranks of one node of the gpt2 workload.
#
# Called by: job.slurm through srun, as the user, once on every node. Safe to run again: train.py
#   resumes from the run's last checkpoint.
# Needs: TRAINING_VENVS, NNODES, NPROC_PER_NODE, MASTER_ADDR, MASTER_PORT, SLURM_NODEID, and what
#   train.py reads (EXPECTED_WORLD_SIZE, RUN_DIR, DATA_DIR, CHECKPOINT_DIR, ACCELERATOR_KIND).
# Arguments: train.py's.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly here
# shellcheck source=assets/training/environment.sh
source "$here/../environment.sh"

if [[ ${ACCELERATOR_KIND:-none} == neuron && ${DEVICE:-} != cpu ]]; then
  printf 'train.sh: gpt2 runs on GPUs and CPUs, not on the %s family (Trainium).\n  %s\n' \
    "${FAMILY:-neuron}" 'Use a GPU or CPU family, or another workload.' >&2
  exit 1
fi

# Ranks share the node's cores; torchrun's own default is one thread a rank.
threads=$(($(nproc) / NPROC_PER_NODE))
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-$((threads > 0 ? threads : 1))}"
# Gloo looks for its network interface by the host's name, which may not resolve on one machine.
if [[ $MASTER_ADDR == 127.* ]]; then
  export GLOO_SOCKET_IFNAME=lo
fi
# Output as it comes, under tail -f too; no compiled files in the shared folder.
export PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1

venv="$(environment_of "$here")"
readonly venv
if [[ ! -x $venv/bin/python ]]; then
  printf 'train.sh: %s has no environment %s: its image is another than that of the first node.\n  %s\n' \
    "$(hostname)" "$venv" 'Submit again, when the nodes have been replaced.' >&2
  exit 1
fi

# World size, node rank and rendezvous are given explicitly: without them torchrun starts one
# world a node, and each trains alone without a word.
exec "$venv/bin/python" -B -m torch.distributed.run \
  --nnodes "$NNODES" --node-rank "$SLURM_NODEID" --nproc-per-node "$NPROC_PER_NODE" \
  --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" \
  "$here/train.py" "$@"
