#!/usr/bin/env bash
#
# Keeps the jobs of several users apart on the nodes of a queue with `shared: true`: each job has its own /tmp and /dev/shm
# (job_container/tmpfs), and opens the GPUs that Slurm gave it and no others (ConstrainDevices). docs/security.md says what
# they still share.
#
# Slurm has both settings in files that all nodes read. Elsewhere ConstrainDevices would take the GPUs from each step that
# does not name them, in a job that takes whole nodes. So only a shared node mounts files of its own over these two, before
# slurmd starts; without them slurmd does not start. The head node enables the plugin, which its file disables for all other
# nodes, in slurm.conf: the cluster config would name it before the file exists. slurmd reads all of it at its start, and
# ParallelCluster replaces the running nodes of a queue that becomes shared (cluster/queues.py).
#
# Called by: run-steps.sh, as root. Environment: BUNDLE, NODE_TYPE, PARTITION, TRAINING_ETC, TRAINING_ROOT; SLURM_CONF.
#   Safe to run again.
# Nodes: HeadNode ComputeFleet
# Budget: 5 s
set -euo pipefail
shopt -s inherit_errexit nullglob
source "$BUNDLE/bootstrap/lib/put.sh"

readonly CONF="${SLURM_CONF:-$TRAINING_ROOT/opt/slurm/etc/slurm.conf}" OWN="$TRAINING_ETC/slurm"
readonly ETC="${CONF%/*}" PLUGIN=JobContainerType=job_container/tmpfs

# is_shared FILE...: true if one of these settings of partitions is of a shared queue.
is_shared() { grep --quiet --no-messages '^export SHARED_NODES=' "$@" /dev/null; }

enable_plugin() {
  local -r own="$ETC/pcluster/custom_slurm_settings_include_file_slurm.conf"
  if grep -Eiqs '^(JobContainerType|NamespaceType)=' "$own"; then
    printf 'a queue is shared, and the overrides set JobContainerType or NamespaceType, which it needs: leave one out\n' >&2
    return 1
  fi
  put "$ETC/job_container.conf" <<<'BasePath=none'
  if grep -qx "$PLUGIN" "$CONF"; then return; fi
  put "$CONF" < <(cat "$CONF" && printf '%s\n' "$PLUGIN")
  PATH="/opt/slurm/bin:$PATH" scontrol reconfigure
}

# Slurm makes the folder, and removes a job's part of it at the job's end.
protect_node() {
  local file commands=""
  put "$OWN/job_container.conf" <<<"AutoBasePath=true"$'\n'"BasePath=$TRAINING_ROOT/var/lib/training-cluster/jobs"
  put "$OWN/cgroup.conf" < <(sed '/^ConstrainDevices=/d' "$ETC/cgroup.conf" && printf 'ConstrainDevices=yes\n')
  for file in cgroup.conf job_container.conf; do
    commands+=$'\n'"ExecStartPre=-/usr/bin/umount --lazy $ETC/$file"
    commands+=$'\n'"ExecStartPre=/usr/bin/mount --bind $OWN/$file $ETC/$file"
  done
  put "$TRAINING_ROOT/etc/systemd/system/slurmd.service.d/training-cluster-shared.conf" <<<"[Service]$commands"
  timeout 4 systemctl daemon-reload
}

if [[ $NODE_TYPE == HeadNode ]]; then
  if is_shared "$BUNDLE"/partitions/*.env; then enable_plugin; fi
elif is_shared "$BUNDLE/partitions/$PARTITION.env"; then
  protect_node
fi
