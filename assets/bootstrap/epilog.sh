#!/usr/bin/env bash
#
# After each job, on each of its nodes: removes what the job left there and ends its nodes' access, then drains a node that
# it left unhealthy, before another job starts there.
#
# Called by: Slurm (Epilog=/opt/slurm/etc/scripts/epilog.d/*), as root, on compute nodes, with no PATH, once all of the
#   job's processes have ended. Step 90-install-prolog.sh installs it on the head node, which shares the folder with all
#   nodes, and writes the TRAINING_ variables below the first line. Environment by Slurm: SLURMD_NODENAME, SLURM_JOB_ID,
#   SLURM_JOB_UID, SLURM_JOB_PARTITION. Safe to run again, and twice at a time. It calls itself (`epilog.sh clean`).
#
# Slurm runs it once for each node of an allocation, not between the starts of a job inside it. The last job of a user on a
# node removes the user's files in /dev/shm, /tmp, /var/tmp and SCRATCH, and the user's System V IPC. These stay:
#   - what a user has while any process of the user runs here, such as an admin's ssh session;
#   - what users below 1000 have, the system's (as in 63-protect-file-systems.sh);
#   - environments and container images on local disks, which later jobs use: while a disk is filled over FULL_PERCENT, those
#     of users without a job here are removed, the oldest first.
#
# It always ends with 0. At another status Slurm drains the node with its own reason ("Epilog error"), but
# judge-node.sh has already drained an unhealthy node with a specific reason. The node takes no job until this script
# ends, after a few seconds.
set -uo pipefail

export TRAINING_ROOT="${TRAINING_ROOT:-}"
export TRAINING_ETC="${TRAINING_ETC:-/etc/training-cluster}"
export PATH="${TRAINING_ROOT:+$TRAINING_ROOT/usr/bin:}/opt/slurm/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
readonly JUDGE="${TRAINING_BUNDLES:-$TRAINING_ROOT/opt/training-cluster/bundles}/current/bootstrap/health/judge-node.sh"
readonly CFNCONFIG="$TRAINING_ROOT/etc/parallelcluster/cfnconfig" RUN="$TRAINING_ROOT/run/training-cluster"
readonly JOBS="$RUN/jobs-${SLURMD_NODENAME:-}" # prolog.sh makes UID/JOB in it
readonly FIRST_UID=1000 FULL_PERCENT=80 LIMIT_S=120

# as_user UID COMMAND...: runs it without root's rights.
as_user() {
  local groups=() # tests are not root
  if ((EUID == 0)); then groups=(--regid="$(id -g "$1" || printf 65534)" --clear-groups); fi
  setpriv --reuid="$1" "${groups[@]}" --no-new-privs "${@:2}"
}

# Pyxis keeps named containers (container.sh), of tens of gigabytes, and a cancelled job takes no further step. They are
# left over once the user has no job here.
remove_containers() {
  if ! command -v enroot >/dev/null; then return; fi
  as_user "$SLURM_JOB_UID" timeout --kill-after=5 120 \
    bash -c 'enroot list | grep -E "^pyxis_train-[0-9]+-[0-9]+$" | xargs --no-run-if-empty enroot remove --force'
}

# is_last: true once for the last job of its user on this node. A job without the prolog's folder is none: it started before
# an update brought the folders, and another running job may have none either.
# shellcheck disable=SC2153 # Slurm sets both
is_last() { rmdir "$JOBS/$SLURM_JOB_UID/$SLURM_JOB_ID" && rmdir "$JOBS/$SLURM_JOB_UID"; }

# runs_programs UID: true unless no process of the user runs here. A rehearsal's nodes share their process ids, but no IPC.
runs_programs() {
  local status=0
  pgrep --ns $$ --nslist ipc --euid "$1" >/dev/null || status=$?
  ((status != 1)) # 2 and above: pgrep failed
}

# Prints the folder of the local disks, if they are mounted.
scratch() {
  local SCRATCH=""
  set +u # not our files
  if [[ -r $CFNCONFIG ]]; then source "$CFNCONFIG"; fi
  source "$TRAINING_ETC/partitions/${cfn_scheduler_queue_name:-${SLURM_JOB_PARTITION:-}}.env"
  if [[ -n $SCRATCH ]] && mountpoint --quiet "$TRAINING_ROOT$SCRATCH"; then printf '%s\n' "$TRAINING_ROOT$SCRATCH"; fi
}

# remove_files FOLDER BEFORE [TEST...]: removes the user's files that last changed before that time: the user's next job
# may start meanwhile. A view without the mounts inside the folder keeps find from these (-xdev passes bind mounts).
remove_files() {
  mount --bind "$1" "$RUN/view" || return
  (cd "$RUN/view" && find . -xdev -mindepth 1 -uid "$SLURM_JOB_UID" ! -newerct "@$2" "${@:3}" -delete)
  umount "$RUN/view"
}

# remove_ipc BEFORE: removes the user's System V segments, queues and semaphores that are older than that time.
remove_ipc() {
  local each
  for each in shm:-m msg:-q sem:-s; do
    awk -v uid="$SLURM_JOB_UID" -v before="$1" 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
      $column["uid"] == uid && $column["ctime"] <= before { print $2 }' "/proc/sysvipc/${each%:*}" |
      xargs --no-run-if-empty --max-args=1 ipcrm "${each#*:}"
  done
}

# shrink_kept FOLDER: while its disk is too full, removes environments and layers of images of users without a job here. The
# owner renames each and removes it: a job would use what is left of it under its name.
shrink_kept() {
  local uid entry
  cd "$1" || return
  find venvs-* enroot/cache/user-* -mindepth 1 -maxdepth 1 ! -name '*.lock' -printf '%C@ %U %p\0' |
    sort --zero-terminated --numeric-sort |
    while read -r -d '' _ uid entry; do
      (($(df --output=pcent . | tr -dc 0-9) > FULL_PERCENT)) || break
      if ((uid < FIRST_UID)) || [[ -e $JOBS/$uid ]] || runs_programs "$uid"; then continue; fi
      # shellcheck disable=SC2016 # the owner's shell expands it
      as_user "$uid" bash -c 'mv -T "$1" "$1.removed" && rm -rf --one-file-system "$1.removed"' remove "$entry"
    done
}

clean() {
  local -r before="$EPOCHREALTIME"
  local folder disk
  if ! is_last; then return; fi
  remove_containers
  if ((EUID != 0 || SLURM_JOB_UID < FIRST_UID)) || runs_programs "$SLURM_JOB_UID"; then return; fi
  disk="$(scratch)"
  mkdir -p "$RUN/view"
  for folder in /dev/shm /tmp /var/tmp; do remove_files "$folder" "$before"; done
  if [[ -n $disk ]]; then
    remove_files "$disk" "$before" '(' ! -path "./venvs-$SLURM_JOB_UID/*" -o -name '*.sbcast' ')' \
      ! -path './enroot/data/*' ! -path './enroot/cache/*'
  fi
  remove_ipc "$before"
  for folder in "$TRAINING_ROOT/var" ${disk:+"$disk"}; do (shrink_kept "$folder"); done
}

if [[ ${1:-} == clean ]]; then
  clean
  exit
fi
if [[ -n ${SLURM_JOB_UID:-} ]]; then
  # A disk that hangs must not keep the node from being judged, and no signal ends a program that waits for it. In its own
  # session a removal that takes longer continues after this script. Only root has its own mounts.
  own=()
  if ((EUID == 0)); then own=(unshare --mount); fi
  setsid "${own[@]}" bash "$0" clean </dev/null >/dev/null 2>&1 &
  timeout "$LIMIT_S" tail --pid="$!" --sleep-interval=0.05 -f /dev/null
fi
if [[ -d $RUN/peers ]]; then timeout 10 bash "${JUDGE%/health/*}/peers.sh" close "$SLURM_JOB_ID" >/dev/null 2>&1; fi
if [[ -r $JUDGE ]]; then bash "$JUDGE" after; fi
exit 0
