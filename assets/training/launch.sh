#!/usr/bin/env bash
# Starts this node's ranks, in the same way for every workload.
#
# Sourced by: train.sh of the workloads, as the user, once a node (LAUNCHER=torchrun) or once a rank (srun, mpirun).
#   Defines functions and does nothing by itself.
# Reads: what job.slurm sets (LAUNCHER, MASTER_ADDR, MASTER_PORT, NNODES, NPROC_PER_NODE, EXPECTED_WORLD_SIZE,
#   TRAINING_VENVS), the partition's ACCELERATOR_KIND, and what its launcher sets (SLURM_NODEID, SLURM_PROCID,
#   SLURM_LOCALID; PMI_RANK, MPI_LOCALRANKID). TRAINING_OPT (default /opt/training-cluster): what the image has.
#
#   source "$here/../launch.sh"
#   start_ranks "$here" "$here/train.py" "$@"

launch_training="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly launch_training
# shellcheck source=assets/training/environment.sh
source "$launch_training/environment.sh"

# Who this process is among the ranks, as torch.distributed reads it. torchrun says it to the ranks itself.
rank_environment() {
  case ${LAUNCHER:-torchrun} in
    torchrun) return ;;
    srun) export RANK="$SLURM_PROCID" LOCAL_RANK="$SLURM_LOCALID" ;;
    mpirun) export RANK="$PMI_RANK" LOCAL_RANK="$MPI_LOCALRANKID" ;;
  esac
  export WORLD_SIZE="$EXPECTED_WORLD_SIZE" LOCAL_WORLD_SIZE="$NPROC_PER_NODE"
}

# Threads, network interface and Python's ways: whatever the ranks are.
process_environment() {
  local cores threads
  # The node's cores, hardware threads not counted; nproc would see only those that mpirun pins this rank to.
  cores="$(lscpu --parse=CORE,SOCKET | grep -v '^#' | sort -u | wc -l)"
  threads=$((cores / NPROC_PER_NODE))
  # Ranks share the node's cores; torchrun's own default is one thread a rank.
  export OMP_NUM_THREADS="${OMP_NUM_THREADS:-$((threads > 0 ? threads : 1))}"
  # Gloo looks for its network interface by the host's name, which may not resolve on one machine.
  if [[ $MASTER_ADDR == 127.* ]]; then
    export GLOO_SOCKET_IFNAME=lo
  fi
  # Output as it comes, under tail -f too; no compiled files in the shared folder.
  export PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
  export PYTHONPATH="$launch_training${PYTHONPATH:+:$PYTHONPATH}"
  preload_xeon_libraries
}

# On CPU nodes, what step 36-install-xeon-libraries.sh put there: an allocator that many threads share well, and
# Intel's OpenMP runtime.
preload_xeon_libraries() {
  local library
  if [[ ${ACCELERATOR_KIND:-none} != none ]]; then return; fi
  for library in "${TRAINING_OPT:-/opt/training-cluster}"/lib/{liballocator,libiomp5}.so; do
    if [[ -e $library ]]; then export LD_PRELOAD="$library${LD_PRELOAD:+:$LD_PRELOAD}"; fi
  done
}

# environment_python FOLDER: the interpreter of the workload's environment on this node.
environment_python() {
  local launch_venv
  launch_venv="$(environment_of "$1")"
  if [[ ! -x $launch_venv/bin/python ]]; then
    printf 'train.sh: %s has no environment %s: its image is another than that of the first node.\n  %s\n' \
      "$(hostname)" "$launch_venv" 'Submit again, when the nodes have been replaced.' >&2
    return 1
  fi
  printf '%s\n' "$launch_venv/bin/python"
}

# start_ranks FOLDER SCRIPT [ARGUMENT...]: runs a Python script as this node's ranks, or as this rank. Does not return.
#
# World size, node rank and rendezvous are given explicitly: without them torchrun starts one world a node, and each
# trains alone without a word.
start_ranks() {
  local python
  local -a torchrun=()
  python="$(environment_python "$1")" || exit
  process_environment
  rank_environment
  if [[ ${LAUNCHER:-torchrun} == torchrun ]]; then
    torchrun=(-m torch.distributed.run
      --nnodes "$NNODES" --node-rank "$SLURM_NODEID" --nproc-per-node "$NPROC_PER_NODE"
      --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT")
  fi
  supervise "$python" -B "${torchrun[@]}" "${@:2}"
}

# supervise COMMAND...: runs it, hands SIGTERM on to the ranks, and ends with its exit code. A failure that nobody
# asked for is noted in $RUN_DIR/failed: the ranks of other nodes get a SIGTERM then, too, and job.slurm has to know
# which it was.
supervise() {
  local status told=""
  "$@" &
  launch_child=$!
  trap 'told=yes; tell_ranks' TERM
  while true; do
    status=0
    wait "$launch_child" || status=$?
    # A signal ends the waiting, too.
    kill -0 "$launch_child" 2>/dev/null || break
  done
  if ((status)) && [[ -z $told && -n ${RUN_DIR:-} ]]; then
    # The first of them tells why; another node's file stays as it is.
    (set -o noclobber && printf '%s: exit code %s\n' "${SLURMD_NODENAME:-$(hostname)}" "$status" >"$RUN_DIR/failed") \
      2>/dev/null || true
  fi
  exit "$status"
}

# Slurm tells only the process that it started (proctrack/cgroup), which is this shell. torchrun is passed over: it
# would give its ranks 30 s to save, however long that takes.
tell_ranks() {
  if [[ ${LAUNCHER:-torchrun} == torchrun ]]; then
    pkill -TERM --parent "$launch_child" || true
  else
    kill -TERM "$launch_child" 2>/dev/null || true
  fi
}
