#!/usr/bin/env bash
#
# After each job, on each of its nodes: drains a node that the job left unhealthy, before another job starts there, and removes
# the containers that job.slurm made for the user's jobs.
#
# Called by: Slurm (Epilog=/opt/slurm/etc/scripts/epilog.d/*), as root, on compute nodes, with no PATH, once all of the
#   job's processes have ended. Step 90-install-prolog.sh installs it on the head node, which shares the folder with all
#   nodes, and writes the TRAINING_ variables below the first line. Environment by Slurm: SLURMD_NODENAME, SLURM_JOB_ID,
#   SLURM_JOB_UID, SLURM_JOB_PARTITION. Safe to run again, and twice at a time.
#
# It always ends with 0. At another status Slurm drains the node with its own reason ("Epilog error"), but
# judge-node.sh has already drained an unhealthy node with a specific reason. The node takes no job until this script
# ends, after a few seconds.
set -uo pipefail

export TRAINING_ROOT="${TRAINING_ROOT:-}"
export TRAINING_ETC="${TRAINING_ETC:-/etc/training-cluster}"
export PATH="${TRAINING_ROOT:+$TRAINING_ROOT/usr/bin:}/opt/slurm/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
readonly JUDGE="${TRAINING_BUNDLES:-$TRAINING_ROOT/opt/training-cluster/bundles}/current/bootstrap/health/judge-node.sh"

if [[ -r $JUDGE ]]; then bash "$JUDGE" after; fi
# Pyxis keeps named containers (container.sh), of tens of gigabytes, and a cancelled job takes no further step. Those of earlier
# jobs are left over: job.slurm's nodes are exclusive. A disk that hangs must not keep the node from being judged.
if command -v enroot >/dev/null && [[ -n ${SLURM_JOB_UID:-} ]]; then
  groups=() # tests are not root
  if ((EUID == 0)); then groups=(--regid="$(id -g "$SLURM_JOB_UID" || printf 65534)" --clear-groups); fi
  timeout --kill-after=5 120 setpriv --reuid="$SLURM_JOB_UID" "${groups[@]}" --no-new-privs \
    bash -c 'enroot list | grep -E "^pyxis_train-[0-9]+-[0-9]+$" | xargs --no-run-if-empty enroot remove --force' >/dev/null 2>&1 || true
fi
exit 0
