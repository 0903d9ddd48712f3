#!/usr/bin/env bash
# Starts the ranks of this node, in the same way for every workload.
#
# Sourced by: train.sh of the workloads, as the user, once a node (LAUNCHER=torchrun) or once a rank (srun, mpirun).
#   Only defines functions.
# Reads: what job.slurm sets (LAUNCHER, MASTER_ADDR, MASTER_PORT, NODES, NNODES, NPROC_PER_NODE, EXPECTED_WORLD_SIZE,
#   TRAINING_VENVS, RUN_DIR, START_NUMBER), the partition's ACCELERATOR_KIND, and what its launcher sets (SLURM_JOB_ID,
#   SLURMD_NODENAME, SLURM_NODEID, SLURM_PROCID, SLURM_LOCALID; PMI_RANK, MPI_LOCALRANKID).
#   TRAINING_OPT (default /opt/training-cluster): what the image has. PYTORCH_ALLOC_CONF: torch's own. NUMA_BINDING: binds
#   each rank of torchrun to cores near its GPU: a mode of torchrun's --numa-binding (torch 2.9 or newer). AFTER_FAILURE_S
#   (default 60): the seconds that the ranks of this node have to end when the ranks of another one have failed. SIGN,
#   SCRIPT_NODE, WATCH_S: the signs of life of job.slurm's node (nodes.sh).
# Writes: $RUN_DIR/logs/<job>-<start>/, the output of each rank; $RUN_DIR/flight/; $RUN_DIR/failed.
#
#   source "$here/../launch.sh"
#   start_ranks "$here" "$here/train.py" "$@"

launch_training="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly launch_training
# shellcheck source=assets/training/environment.sh
source "$launch_training/environment.sh"
# shellcheck source=assets/training/clock.sh
source "$launch_training/clock.sh"

# Exports this process's rank for torch.distributed; torchrun, or a launcher in its place, does that itself from the node's.
rank_environment() {
  case ${LAUNCHER:-torchrun} in
    torchrun)
      NODE_RANK="$(node_rank)"
      export NODE_RANK
      return
      ;;
    srun) export RANK="$SLURM_PROCID" LOCAL_RANK="$SLURM_LOCALID" ;;
    mpirun) # it gives all ranks the name of job.slurm's node
      SLURMD_NODENAME="$(cut -d , -f $((${SLURM_NODEID:-0} + 1)) <<<"${NODES:-}")"
      export RANK="$PMI_RANK" LOCAL_RANK="$MPI_LOCALRANKID" SLURMD_NODENAME
      ;;
  esac
  export WORLD_SIZE="$EXPECTED_WORLD_SIZE" LOCAL_WORLD_SIZE="$NPROC_PER_NODE"
}

# Prints this node's place in NODES, whose first node is the rendezvous: its order may be another than that of SLURM_NODEID
# (in_tree_order of nodes.sh).
node_rank() {
  local before=",${NODES:-},"
  if [[ -z ${SLURMD_NODENAME:-} || $before != *",$SLURMD_NODENAME,"* ]]; then
    printf '%s\n' "$SLURM_NODEID"
    return
  fi
  before="${before%%",$SLURMD_NODENAME,"*}"
  before="${before//[^,]/}"
  printf '%s\n' "${#before}"
}

# Prints the number of all cores of the node, including those to which this rank is not pinned. Reads files, since otherwise
# each rank of a large job would start lscpu and other programs. Without these files it uses nproc.
cores_of_node() {
  local file siblings
  local -A cores=()
  for file in /sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list; do
    if [[ -r $file ]] && read -r siblings <"$file"; then cores[$siblings]=1; fi
  done
  if ((${#cores[@]})); then printf '%s\n' "${#cores[@]}"; else nproc; fi
}

# Exports threads, network interface and settings of Python for any kind of rank.
process_environment() {
  # Ranks share the node's cores; torchrun's default is one thread per rank.
  if [[ -z ${OMP_NUM_THREADS:-} ]]; then
    export OMP_NUM_THREADS=$(($(cores_of_node) / NPROC_PER_NODE))
    if ((OMP_NUM_THREADS == 0)); then OMP_NUM_THREADS=1; fi
  fi
  # Gloo finds its network interface by the host's name, which may not resolve on one machine.
  if [[ $MASTER_ADDR == 127.* ]]; then
    export GLOO_SOCKET_IFNAME=lo
  fi
  # Unbuffered output for tail -f, and no compiled files in the shared folder.
  export PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
  export PYTHONPATH="$launch_training${PYTHONPATH:+:$PYTHONPATH}"
  # Batches of different shapes then fragment the GPU's memory less; torchtitan sets this, too.
  if [[ ${ACCELERATOR_KIND:-none} == gpu ]]; then
    export PYTORCH_ALLOC_CONF="${PYTORCH_ALLOC_CONF:-expandable_segments:True}"
  fi
  preload_xeon_libraries
}

# Lets torch's flight recorder (NCCL's last collectives) write into the run's folder when a collective times out. By
# default the files of a user's jobs overwrite each other. torch 2.13 reads both names, older builds only the second;
# torch appends the rank.
record_collectives() {
  local -r flight="${RUN_DIR:-}/flight/${SLURM_JOB_ID:-0}-${START_NUMBER:-0}"
  if [[ -z ${RUN_DIR:-} ]] || { [[ ! -d $flight ]] && ! mkdir -p "$flight"; }; then return; fi
  export TORCH_FR_DUMP_TEMP_FILE="${TORCH_FR_DUMP_TEMP_FILE:-$flight/rank_}"
  export TORCH_NCCL_DEBUG_INFO_TEMP_FILE="${TORCH_NCCL_DEBUG_INFO_TEMP_FILE:-$TORCH_FR_DUMP_TEMP_FILE}"
}

# Prints the folder for the output of this start's ranks.
log_folder() { printf '%s/logs/%s-%s\n' "$RUN_DIR" "${SLURM_JOB_ID:-0}" "${START_NUMBER:-0}"; }

# Sets launch_options to the options by which torchrun writes each rank's output into files. The job's output has rank 0's
# output and all ranks' errors, with the prefix "RANK: ".
torchrun_logs() {
  local rank shown=2
  launch_options=()
  if [[ -z ${RUN_DIR:-} ]]; then return; fi
  if [[ $NODE_RANK == 0 ]]; then
    # torchrun accepts only single-digit ranks in this list. On larger nodes (Trainium) the first node shows all its ranks.
    shown=3
    if ((NPROC_PER_NODE <= 10)); then
      shown=0:3
      for ((rank = 1; rank < NPROC_PER_NODE; rank++)); do shown+=",$rank:2"; done
    fi
  fi
  # shellcheck disable=SC2016 # torchrun fills in the rank
  export TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE='${rank}: '
  launch_options=(--log-dir "$(log_folder)/${SLURMD_NODENAME:-$(hostname)}" --redirects 3 --tee "$shown")
}

# keep_output [all]: also writes the output of a rank that srun or mpirun started into files, one per stream, since lines
# of both would mix. The job's output then has only errors of ranks other than 0. With `all` both streams are combined in
# one file and in the job's output. The launcher labels the lines.
keep_output() {
  local file
  if [[ -z ${RUN_DIR:-} ]] || ((${#launch_tees[@]})); then return; fi
  file="$(log_folder)/rank-$RANK"
  if [[ ! -d ${file%/*} ]]; then mkdir -p "${file%/*}"; fi
  if [[ ${1:-} == all ]]; then
    exec > >(trap '' TERM && exec tee -a "$file.log") 2>&1
    launch_tees+=("$!")
    return
  fi
  exec 2> >(trap '' TERM && exec tee -a "$file.stderr.log" >&2)
  launch_tees+=("$!")
  if [[ $RANK == 0 ]]; then
    exec > >(trap '' TERM && exec tee -a "$file.stdout.log")
    launch_tees+=("$!")
  else
    exec >>"$file.stdout.log"
  fi
}
launch_tees=()

# Waits at most a second until all output is written, since a process that outlives its rank may keep the stream open.
finish_output() {
  local -i tenths
  if ((${#launch_tees[@]} == 0)); then return; fi
  exec >/dev/null 2>&1
  for ((tenths = 0; tenths < 10; tenths++)); do
    kill -0 "${launch_tees[@]}" || return 0
    sleep 0.1
  done
}

# Preloads on CPU nodes what step 36-install-xeon-libraries.sh installed: an allocator for many threads, and Intel's
# OpenMP runtime.
preload_xeon_libraries() {
  local library
  if [[ ${ACCELERATOR_KIND:-none} != none ]] || is_in_container; then return; fi
  for library in "${TRAINING_OPT:-/opt/training-cluster}"/lib/{liballocator,libiomp5}.so; do
    if [[ -e $library ]]; then export LD_PRELOAD="$library${LD_PRELOAD:+:$LD_PRELOAD}"; fi
  done
}

# environment_python FOLDER: prints the interpreter of the workload's environment on this node.
environment_python() {
  local launch_venv
  launch_venv="$(environment_of "$1")" || return 1
  if [[ ! -x $launch_venv/bin/python ]]; then
    printf 'train.sh: %s has no environment %s: its image differs from the image of the first node, or a deploy has changed it.\n  %s\n' \
      "$(hostname)" "$launch_venv" 'Replace nodes of an older image, and submit again with the same RUN_NAME.' >&2
    return 1
  fi
  if [[ $launch_venv != "${TRAINING_OPT:-/opt/training-cluster}"/* ]]; then
    launch_venv="$(local_environment "$launch_venv")" || return 1
  fi
  printf '%s\n' "$launch_venv/bin/python"
}

# start_ranks FOLDER SCRIPT [ARGUMENT...]: runs a Python script as this node's ranks, or as this rank. Does not return.
#
# World size, node rank and rendezvous are explicit. Without them torchrun starts a separate world on each node, which
# trains alone without an error.
start_ranks() {
  local python script
  local -a torchrun=()
  python="$(environment_python "$1")" || exit
  script="$(local_script "$2")"
  process_environment
  if [[ $script != "$2" ]]; then
    PYTHONPATH="$(dirname "$(dirname "$script")")${PYTHONPATH#"$launch_training"}"
  fi
  record_collectives
  rank_environment
  if [[ ${LAUNCHER:-torchrun} != torchrun ]]; then
    keep_output
  else
    torchrun_logs
    if [[ -n ${NUMA_BINDING:-} ]]; then launch_options+=(--numa-binding "$NUMA_BINDING"); fi
    # Not with -m, which would search the current folder first for every module.
    torchrun=(
      "$(dirname "$python")/torchrun" "${launch_options[@]}"
      --nnodes "$NNODES" --node-rank "$NODE_RANK" --nproc-per-node "$NPROC_PER_NODE"
      --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT"
    )
  fi
  supervise "$python" -B "${torchrun[@]}" "$script" "${@:3}"
}

# supervise COMMAND...: runs it, passes a SIGTERM on to its ranks, and exits with its exit code, or with 143 if a SIGTERM
# ended them. It records an unrequested failure in $RUN_DIR/failed, with the sentence of the first rank that had one
# (trainkit's die, by REASON_FILE), since the ranks of other nodes then get a SIGTERM too, and job.slurm reports the first
# failure.
#
# Slurm signals only the process that it started (proctrack/cgroup), which is this shell.
supervise() {
  local status told="" why="" fence child
  if [[ -n ${RUN_DIR:-} ]]; then
    REASON_FILE="$(log_folder)/reason"
    export REASON_FILE
  fi
  trap 'told=yes; stop' TERM
  "$@" &
  child=$!
  fence "$child" &
  fence=$! launch_child="$child" # from now on the trap starts a process, too
  if [[ -n $told ]]; then stop; fi
  while true; do
    status=0
    wait "$launch_child" || status=$?
    # A signal also ends the wait.
    kill -0 "$launch_child" 2>/dev/null || break
  done
  { kill -KILL "$fence" && wait "$fence"; } 2>/dev/null || true
  if ((status)) && [[ -n ${RUN_DIR:-} && ! -f ${RUN_DIR:-}/failed ]]; then
    if [[ -n $told ]]; then
      status=143               # torchrun ends with 1 if SIGTERM ended its ranks
    elif is_newest_start; then # an older one must not end the ranks of the newest
      if [[ -f ${REASON_FILE:-} ]]; then read -r why <"$REASON_FILE" || true; fi
      note_failure "${why:-${SLURMD_NODENAME:-$(hostname)}: exit code $status}"
    fi
  fi
  finish_output
  exit "$status"
}

# note_failure WHAT: the first failure is the cause, so another node's file is kept.
note_failure() { (set -o noclobber && printf '%s\n' "$1" >"$RUN_DIR/failed") 2>/dev/null || true; }

# is_newest_start: false if the run has a later start than that of these ranks. A full disk cuts lines.
is_newest_start() {
  local number job
  read -r number _ _ _ job _ < <(tail -n 1 "$RUN_DIR/starts" 2>/dev/null) || return 0
  [[ ! $number-$job =~ ^[0-9]+-[0-9]+$ || "$number $job" == "${START_NUMBER:-$number} ${SLURM_JOB_ID:-$job}" ]]
}

# fence CHILD: kills the ranks, which may not save any more, when the run has a later start, or when the node of job.slurm gives no
# sign of life for twice WATCH_S, within which another node has asked it (nodes.sh): both without Slurm, which may not reach
# this node. It looks every 5 s, or where each rank has its own, every 20 s. Reads are counted, not seconds, since a file system
# may stop everywhere; a full one keeps an empty sign. While a file server is replaced, Lustre reads from its cache, and writes
# wait: so the sign is written back, and read twice again, before ranks are killed.
fence() {
  local -i every=5 silent=0 limit=$((2 * ${WATCH_S:-60})) never # 60: a job.slurm of an older deploy exports none
  local sign="" last asked=""
  trap '' TERM
  launch_child="$1"
  if [[ -z ${RUN_DIR:-} || -z ${START_NUMBER:-} ]]; then return; fi # not started by job.slurm
  if [[ ${LAUNCHER:-torchrun} != torchrun ]]; then every=20; fi
  exec {never}<> <(:) # not sleep, which would outlive this shell, and count as a rank that is left (nodes.sh)
  while kill -0 "$launch_child" 2>/dev/null; do
    read -t "$every" -r -u "$never" || true
    last="$sign" sign=""
    { read -r sign <"${SIGN:-/dev/null}"; } 2>/dev/null || true
    if [[ -n $sign && $sign == "$last" ]]; then silent+=$every; else silent=0 asked=""; fi
    if ! is_newest_start; then
      printf 'train.sh: a later start has the run: the ranks of start %s on %s end\n' "$START_NUMBER" "${SLURMD_NODENAME:-}" >&2
    elif ((silent >= limit)) && [[ -z $asked ]]; then
      asked=yes silent=$((limit - 2 * every))
      printf '%s\n' "$sign" 1<>"$SIGN" || true
      continue
    elif ((silent >= limit)); then
      note_failure "$SCRIPT_NODE: no sign of life for $silent s"
    else
      continue
    fi
    # The child last, since supervise ends this shell at its end, before the ranks were killed.
    # shellcheck disable=SC2046 # one word a rank
    kill -KILL $(ranks) "$launch_child"
    return
  done
}

# Starts stop_ranks, once; supervise does it if the signal came before the child.
stop() {
  # No `return`: in a trap it gives the status of what the signal interrupted, and set -e then ends this shell.
  if [[ -n $launch_child && -z $launch_stop ]]; then
    stop_ranks >/dev/null 2>&1 &
    launch_stop=$!
  fi
}
launch_child="" launch_stop=""

# Sends SIGTERM to each rank once, also to those that torchrun starts later, until the child of supervise ends. torchrun
# itself gets the signal only while it has no rank: it would kill ranks 30 s later, even while they save. When its ranks
# have ended well, it waits 300 s for the torchrun of failed nodes, too, and no signal but SIGKILL ends that (_exit_barrier).
stop_ranks() {
  local rank left now end="" without=0
  local -A told=()
  trap '' TERM # of a second scancel
  set +e
  while kill -0 "$launch_child"; do
    left="$(ranks)"
    for rank in $left; do
      if [[ -z ${told[$rank]:-} ]]; then
        told[$rank]=yes
        kill -TERM "$rank"
      fi
    done
    if ((${#told[@]} == 0)); then
      told[$launch_child]=yes
      kill -TERM "$launch_child"
    elif [[ -z $left && -f ${RUN_DIR:-}/failed ]] && ((++without > 5)); then # a second, for their last lines
      kill -KILL "$launch_child"
    fi
    # When another node's ranks are dead, these ranks cannot finish a step, and may wait in NCCL until KillWait.
    clock
    if [[ -z $end && -f ${RUN_DIR:-}/failed ]]; then end=$((now + 100 * ${AFTER_FAILURE_S:-60})); fi
    # shellcheck disable=SC2046 # one word a rank
    if [[ -n $end ]] && ((now >= end)); then kill -KILL $(ranks); fi
    sleep 0.2
  done
}

# Prints the process ids of the ranks that run.
ranks() {
  if [[ ${LAUNCHER:-torchrun} != torchrun ]]; then
    printf '%s\n' "$launch_child"
  elif command -v pgrep >/dev/null; then
    pgrep -P "$launch_child"
  else # an image without it
    cat "/proc/$launch_child/task/$launch_child/children"
  fi
}
