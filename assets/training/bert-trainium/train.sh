#!/usr/bin/env bash
# Starts the ranks of one node of the bert-trainium workload; with PRECOMPILE=1 it compiles their graphs instead.
#
# Called by: job.slurm, as the user, once on every node; by neuron_parallel_compile, from here. Safe to run again:
#   train.py resumes from the run's last checkpoint, and the compiler skips what its cache has.
# Environment: what launch.sh and train.py read; ACCELERATOR_KIND, DEVICE, PRECOMPILE, MASTER_ADDR, MASTER_PORT, RUN_DIR,
#   SLURM_NODEID; NEURON_COMPILE_CACHE_URL, NEURON_CC_FLAGS.
# Arguments: train.py's.
# Launchers: torchrun
set -euo pipefail
shopt -s inherit_errexit

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly here
source "$here/../launch.sh"

# neuron_environment VENV: exports the variables that Neuron's libraries read, unless they are already set.
neuron_environment() {
  export PJRT_DEVICE=NEURON PATH="$1/bin:$PATH"
  # One cache for all nodes and jobs of a user: it holds programs that run on Trainium. Lustre and EFS both have the file
  # locks that it needs.
  export NEURON_COMPILE_CACHE_URL="${NEURON_COMPILE_CACHE_URL:-$(dirname "$RUN_DIR")/neuron-compile-cache-$(id -un)}"
  # torch.autocast decides what is computed in bf16, so the compiler must not.
  export NEURON_CC_FLAGS="${NEURON_CC_FLAGS:---auto-cast=none --model-type=transformer}"
  # The default is 48620 or another port that an outgoing connection may already use. job.slurm's
  # MASTER_PORT is 12000 to 21999; this one stays below 32768, where those begin. An address, no name to look up.
  export NEURON_RT_ROOT_COMM_ID="${NEURON_RT_ROOT_COMM_ID:-$MASTER_ADDR:$((MASTER_PORT + 10000))}"
}

# precompile VENV [ARGUMENT...]: a few steps that compute nothing collect the graphs, on all nodes, since they depend
# on how many ranks there are. They are the same on all of them, so one node compiles.
precompile() {
  local compiler="$1/bin/neuron_parallel_compile"
  local -ra trial=(bash "$here/train.sh" "${@:2}")
  if [[ ! -x $compiler ]]; then compiler=neuron_parallel_compile; fi # of a container's image
  "$compiler" --command collect "${trial[@]}"
  if [[ $SLURM_NODEID == 0 ]]; then
    # The compiler may take hours, and the watch for hangs allows one hour after this time (trainkit/run/heartbeat.py).
    touch -d '1 day' "$RUN_DIR/busy"
    "$compiler" --command compile "${trial[@]}"
    "$1/bin/python" -B "$here/compile_cache.py" "$NEURON_COMPILE_CACHE_URL"
  fi
}

if [[ ${ACCELERATOR_KIND:-none} == neuron && ${DEVICE:-neuron} == neuron ]]; then
  python="$(environment_python "$here")"
  venv="${python%/bin/python}"
  neuron_environment "$venv"
  # neuron_parallel_compile sets NEURON_EXTRACT_GRAPHS_ONLY for what it starts.
  if [[ ${PRECOMPILE:-0} == 1 && -z ${NEURON_EXTRACT_GRAPHS_ONLY:-} ]]; then
    precompile "$venv" "$@"
    exit
  fi
fi
start_ranks "$here" "$here/train.py" "$@"
