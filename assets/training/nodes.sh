#!/usr/bin/env bash
# shellcheck disable=SC2034,SC2154  # job.slurm's variables
# Chooses the nodes of a start among the job's, and returns the job to the queue if the node of job.slurm is lost.
#
# Sourced by: restarts.sh, in job.slurm, as the user, on the job's first node; uses its log and address_of, and its variables RUN_DIR,
#   SPARES, THIS_JOB, START_NUMBER, arguments, starts_here, wanted. Only defines functions. Run by: job.slurm through srun, on each node of a job:
#   nodes.sh watch | answer CHECKS, with 1 for a check of the node
# Reads: CHECK_S, WATCH_S (seconds); $RUN_DIR/suspect-<job>.<node>. Exports: NODES, NNODES, EXPECTED_WORLD_SIZE, MASTER_ADDR, MASTER_PORT,
#   STEP_OPTIONS, and for launch.sh SCRIPT_NODE, SIGN, WATCH_S.
# Writes: $RUN_DIR/sign-<job>-<restart>, $RUN_DIR/watch.log, and a line into the job's output.
#
# With sbatch --no-kill a job keeps the nodes that are left when it loses one. Slurm then ends the steps that used the lost
# node, but not steps with srun --no-kill; the ranks' step does not have it, since --kill-on-bad-exit has no effect with it.
# Without this script, whose node may be lost as well, such a job would keep its other nodes until its time limit.

# shellcheck source=assets/training/clock.sh
source "$(dirname "${BASH_SOURCE[0]}")/clock.sh"

# Nodes that train, at most and at least; job.slurm leaves spares out.
declare -i wanted="${SLURM_JOB_NUM_NODES:-1}" least="${SLURM_JOB_NUM_NODES:-1}"

# host_list NODE...: prints Slurm's short form, such as gpu-dy-p5-[1-1250]: a list of all names has up to 75 kB, in each
# argument and variable that every program here gets.
host_list() { scontrol show hostlist "$(IFS=, && printf '%s' "$*")" || (IFS=, && printf '%s\n' "$*"); }

# use_nodes NODE...: sets where the ranks of the next start run. The rendezvous is the first of these nodes, never the
# submitting host.
use_nodes() {
  NODES="$(IFS=, && printf '%s' "$*")" NNODES=$#
  STEP_OPTIONS="--nodes=$NNODES --nodelist=$(host_list "$@")"
  MASTER_ADDR="$(address_of "$1")"
  EXPECTED_WORLD_SIZE=$((NNODES * NPROC_PER_NODE))
  export NODES NNODES STEP_OPTIONS MASTER_ADDR EXPECTED_WORLD_SIZE
}

# The port of the rendezvous comes from the job id, so that two jobs on one machine differ, and from the start, since a rank of
# the last one may still hold its port. It stays below the range of outgoing ports (32768 up).
set_port() { export MASTER_PORT=$((12000 + (SLURM_JOB_ID + 1009 * START_NUMBER) % 10000)); }

# in_tree_order: prints the nodes that it reads, one a line, in the order of Slurm's tree of the network, whose leaves are in
# EC2's order (services/topology.py); without a tree, as they come. The file is read, since slurmctld reads it at most every ten
# minutes. srun and mpirun number their ranks themselves, by Slurm's own order. TopologyParam=SwitchAsNodeRank would change that
# order under running jobs.
in_tree_order() {
  local -r tree="$(dirname "${SLURM_CONF:-/opt/slurm/etc/slurm.conf}")/topology.conf"
  local names
  names="$(cat)"
  if [[ ${LAUNCHER:-torchrun} == torchrun && -r $tree ]]; then
    names="$(sed -n 's/^SwitchName=[^ ]* Nodes=//p' "$tree" | tr , '\n' | grep -Fx -- "$names" || true)"$'\n'"$names"
  fi
  awk 'NF && !seen[$0]++' <<<"$names"
}

# members: sets `all` to the nodes that the job has, without those that Slurm holds for lost or that drain, in the order of its tree,
# and `bad` to the reasons of the others, by their names. Asks again while slurmctld does not answer. Returns 1 if this script's start of the job is over:
# this node was out of reach, and Slurm has queued the job again.
members() {
  local state nodes listed node word reason
  local -i restarts
  all=() bad=()
  while true; do
    if read -r state restarts nodes < <(squeue --noheader --jobs="$THIS_JOB" --Format=State:20,RestartCnt:20,NodeList:100000); then
      if [[ $state == PENDING ]] || ((restarts > ${SLURM_RESTART_COUNT:-0})); then return 1; fi
      if [[ -n $told ]]; then return; fi
      if [[ $state == RUNNING ]] && listed="$(sinfo --noheader --Node --nodes="$nodes" --format='%N %T %E')"; then break; fi
    fi
    sleep 2
  done
  # %T ends with * if the node does not respond.
  while read -r node word reason; do
    if [[ $word =~ down|drain|fail|\* ]]; then bad[$node]="$reason"; fi
  done <<<"$listed"
  for node in $(scontrol show hostnames "$nodes" | in_tree_order); do
    if [[ ! -v bad[$node] ]]; then all+=("$node"); fi
  done
}
all=()
declare -A bad=()

# is_taken NODE: true if EC2 takes it: services/node_service.py or clustermgtd has heard so.
is_taken() { [[ ${bad[$1]:-} =~ 'EC2 takes it'|scheduled_events ]]; }

# step_on NODE...: sets `each_node` to an srun of one task on each of the nodes; without any, on those that the job got.
step_on() {
  local -a nodes=("$@")
  if (($# == 0)); then mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST"); fi
  each_node=(srun --no-kill --overlap --quiet --mpi=none --ntasks-per-node=1 "--nodes=${#nodes[@]}"
    "--nodelist=$(host_list "${nodes[@]}")")
}
each_node=()

# answering NODE...: sets `well` to those of the nodes on which a step starts within CHECK_S, and whose checks find them
# healthy. Enough nodes for a start do not wait as long for the others. The prologs have checked the nodes of the first start.
answering() {
  local -i began end soon from
  local now left step node said
  local -A healthy=() sick=()
  well=()
  if (($# == 0)); then return; fi
  clock
  began=now end=$((now + 100 * ${CHECK_S:-75})) # more than ParallelCluster's MessageTimeout, 60 s
  step_on "$@"
  exec {from}< <(exec setsid "${each_node[@]}" bash "$training/nodes.sh" answer "$((starts_here > 0))" </dev/null 2>/dev/null)
  step=$!
  while clock && ((${#healthy[@]} + ${#sick[@]} < $# && now < end)); do
    printf -v left '%d.%02d' $(((end - now) / 100)) $(((end - now) % 100))
    read -r -t "$left" -u "$from" node said || break
    if [[ -n $said ]]; then
      sick[$node]="$said"
      continue
    fi
    healthy[$node]=1
    if ((${#healthy[@]} == wanted)); then
      clock
      soon=$((now + 2 * (now - began) + 50)) end=$((soon < end ? soon : end))
    fi
  done
  { kill -KILL -- "-$step" && wait "$step"; } 2>/dev/null || true
  exec {from}<&-
  # A check that is wrong about all nodes is braked in the prolog (drain_limit.sh), and not here.
  if ((${#sick[@]} > 1 && ${#healthy[@]} == 0)); then
    log "all nodes report themselves as unhealthy, which is taken for a fault of the check: ${sick[*]}"
    for node in "${!sick[@]}"; do healthy[$node]=1; done
    sick=()
  fi
  for node in "$@"; do
    if [[ -v healthy[$node] ]]; then well+=("$node"); fi
    if [[ -v sick[$node] ]]; then log "$node is left out: ${sick[$node]}"; fi
  done
}
well=()

# answer CHECKS: prints the name of this node, and why the ranks cannot start here. Its root service checks it; a node without
# the service is not checked.
answer() {
  local -r node="$SLURMD_NODENAME"
  local -i tries=0
  local said="" left=""
  if (($1)); then
    left="$(ranks_left "$node")"
    while [[ -n $left ]] && ((tries++ < 40)); do
      sleep 0.5
      left="$(ranks_left "$node")"
    done
    said="$(cd "${TRAINING_ROOT:-}/run/training-cluster" 2>/dev/null && timeout 70 python3 -I -c 'import socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
print(s.makefile().read())' "$node.health" 2>/dev/null)" || said=""
  fi
  if [[ -n $left ]]; then said="ranks of the last start have not ended ($(wc -w <<<"$left"))"; fi
  printf '%s %s\n' "$node" "${said//[^[:print:]]/ }"
}

# ranks_left NODE: prints the environments of this job's ranks on this node. SIGKILL ends none that waits for a device, whose
# memory it holds. Several nodes may be on one machine.
ranks_left() {
  grep -lzsxF "SLURM_JOB_ID=$SLURM_JOB_ID" /proc/[0-9]*/environ | xargs --no-run-if-empty grep -lzsxF "SLURMD_NODENAME=$1" |
    xargs --no-run-if-empty grep -lzs '^RANK=' || true
}

# choose_nodes: sets `well` to the job's healthy nodes; to none if Slurm asked the job to end meanwhile. Ends this script if the
# job is no longer its own. Nothing starts beside this script on a node that EC2 takes: `size` is 0.
choose_nodes() {
  local -i tries
  local mark node
  for ((tries = 0; tries < 3; tries++)); do # a check may coincide with a restart of slurmctld
    members || die "this job was queued again while its first node was out of reach." "Nothing is to be done."
    answering "${all[@]}"
    if ((${#well[@]})) || [[ -n $told ]]; then break; fi
  done
  # Nodes that the ranks suspect of wrong results (trainkit/suspects.py) give way to spares alone: a comparison may be wrong.
  for mark in "$RUN_DIR/suspect-$SLURM_JOB_ID".*; do
    node="${mark#"$RUN_DIR/suspect-$SLURM_JOB_ID".}"
    if ((${#well[@]} > wanted)) && [[ " ${well[*]} " == *" $node "* ]]; then
      log "$node is left out: $(<"$mark")"
      mapfile -t well < <(printf '%s\n' "${well[@]}" | grep -vxF -- "$node")
    fi
  done
  set_size
  if is_taken "$SLURMD_NODENAME"; then size=0; fi
}

# set_size: sets `size` to the number of nodes of the next start: `wanted`, or the largest one from MIN_NODES on that the nodes
# allow; 0 if there are too few. Ends this script if the workload takes none of the numbers.
set_size() {
  local python
  size=$((${#well[@]} < wanted ? ${#well[@]} : wanted))
  if ((size < least)); then
    size=0
  elif ((least < wanted)); then
    python="$(find_python)" || exit 1
    size="$("$python" -I -B "$training/run_module.py" trainkit.node_count "$training/$workload" "$least" "$size" \
      "${arguments[@]}")" || die "$workload takes no number of nodes from $least to $size: see the line above." \
      "Give other numbers: MIN_NODES=$wanted sbatch --nodes $wanted ..."
  fi
}
size=0

# lost_nodes: prints those nodes of the last start that are not well, by Slurm's reasons.
lost_nodes() {
  local node reason
  local -A by=() kept=()
  for node in "${well[@]}"; do kept[$node]=1; done
  for node in ${NODES//,/ }; do
    if [[ ! -v kept[$node] ]]; then by[" ${bad[$node]:+(${bad[$node]})}"]+=",$node"; fi
  done
  for reason in "${!by[@]}"; do
    printf '%s%s\n' "$(scontrol show hostlist "${by[$reason]#,}")" "${reason% }"
  done | paste -sd ' '
}

# Starts the step that returns the job to the queue if this script's node is lost, and gives it signs of life.
start_lifeline() {
  local -a near
  if ((SLURM_JOB_NUM_NODES == 1)) || { ((${#lifeline[@]})) && kill -0 "${lifeline[1]}" 2>/dev/null; }; then return; fi
  export SCRIPT_NODE="$SLURMD_NODENAME" SIGN="$RUN_DIR/sign-$SLURM_JOB_ID-${SLURM_RESTART_COUNT:-0}" WATCH_S="${WATCH_S:-25}"
  end_lifeline
  rm -f "$RUN_DIR"/sign-* # of earlier starts, whose script was lost
  # A full file system keeps no sign; watch then asks the node itself.
  # scancel --full signals all processes of the script, and ranks save without its signs for as long as KillWait.
  (
    trap '' TERM
    while clock; do
      printf '%s\n' "$now" >"$SIGN" || true
      sleep 5
    done
  ) 2>/dev/null &
  lifeline=("$!")
  disown "$!" # bash reports a job that is killed
  if ((${#well[@]})); then near=("${well[@]}"); else mapfile -t near < <(scontrol show hostnames "$SLURM_JOB_NODELIST"); fi
  # Up to eight, in all racks: the turn of a ninth would come after four minutes.
  mapfile -t near < <(printf '%s\n' "${near[@]}" | sed -n "0~$(((${#near[@]} + 7) / 8))p")
  step_on "${near[@]}"
  # Slurm kills it at the end, which the job's output need not show.
  "${each_node[@]}" --job-name=watch bash "$training/nodes.sh" watch 2>>"$RUN_DIR/watch.log" &
  lifeline+=("$!")
}
lifeline=()

end_lifeline() {
  if ((${#lifeline[@]})); then
    kill -KILL "${lifeline[0]}" 2>/dev/null || true
    kill "${lifeline[1]}" 2>/dev/null || true
  fi
}

# watch: waits until SCRIPT_NODE gives no sign of life, and returns the job to the queue. The step's first other node does so
# after WATCH_S, the next one after twice that; the ranks of all nodes end then (launch.sh), unless the node has answered. Reads
# are counted, not seconds, since a file system may stop everywhere.
watch() {
  local -r limit="${WATCH_S:-60}"
  local -i stale=0 place restarts
  local last="" now output
  trap 'exit 0' TERM
  while sleep 2; do
    now="$(cat "$SIGN" 2>/dev/null)" || now=""
    if [[ $now != "$last" ]]; then
      last="$now" stale=0
      continue
    fi
    stale+=2
    # Three questions in each period: all nodes ask, as long as a full disk takes no sign.
    if ((stale <= limit || (stale - 2) % limit > 4)); then continue; fi
    read -r restarts < <(squeue --noheader --jobs="$THIS_JOB" --states=RUNNING --Format=RestartCnt:20) || continue
    if ((restarts > ${SLURM_RESTART_COUNT:-0})); then return; fi
    place="$(scontrol show hostnames "$SLURM_STEP_NODELIST" | grep -vx "$SCRIPT_NODE" | grep -nx "$SLURMD_NODENAME" | cut -d : -f 1)"
    if ((place == 0 || stale <= limit * place)); then continue; fi
    # A file system that is full, or that one node alone cannot write to, loses no node; one that a node has lost does.
    if timeout 30 srun --overlap --quiet --mpi=none --nodes=1 --ntasks=1 --nodelist="$SCRIPT_NODE" ls "$RUN_DIR" \
      >/dev/null 2>&1; then
      stale=0
      printf '%s asked at %s\n' "$SLURMD_NODENAME" "$SECONDS" >"$SIGN" || true
      continue
    fi
    output="$(scontrol show job "$THIS_JOB" | sed -n 's/^ *StdOut=//p')" || output=/dev/null
    printf '%s nodes.sh: %s gave no sign of life for %s s; %s queues the job again\n' "$(date +%H:%M:%S)" "$SCRIPT_NODE" \
      "$stale" "$SLURMD_NODENAME" >>"${output:-/dev/null}" || true
    trap '' TERM # Slurm's
    if scontrol requeue "$THIS_JOB"; then return; fi
    trap 'exit 0' TERM
  done
}

if [[ ${1:-} == @(watch|answer) && ${BASH_SOURCE[0]} == "$0" ]]; then "$@"; fi
