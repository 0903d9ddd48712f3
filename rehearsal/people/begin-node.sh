#!/usr/bin/env bash
#
# Makes a node of `python -m rehearsal.people` a compute node: step 74, then sshd with its file of PAM.
#
#   begin-node.sh NODE
#
# Called by: the program that starts the node, in its namespaces, before slurmd. Without the packages that make setup
#   unpacks, there is no sshd.
set -euo pipefail

SSHD="$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.cache" && pwd)/sshd"
readonly SSHD NODE="$1" ROOT=/mnt/root
export BUNDLE=/mnt/bundle NODE_TYPE=ComputeFleet TRAINING_ETC=/mnt/root/etc/training-cluster TRAINING_ROOT="$ROOT"
for folder in etc run lib; do
  mkdir -p "$ROOT/$folder"
  mount -t tmpfs tmpfs "$ROOT/$folder"
done
mkdir -p "$ROOT"/{etc/parallelcluster/slurm_plugin,etc/pam.d,lib/security,usr/bin,var/log}
printf 'cfn_cluster_user=clusteruser\n' >"$ROOT/etc/parallelcluster/cfnconfig"
printf '%s\n' "$NODE" >"$ROOT/etc/parallelcluster/slurm_plugin/slurm_nodename"
ln -sf /bin/true "$ROOT/usr/bin/systemctl"
cp -a /etc/pam.d/. "$ROOT/etc/pam.d"
if [[ -d $SSHD ]]; then
  cp "$SSHD/etc/pam.d/sshd" "$ROOT/etc/pam.d"
  cp "$SSHD/lib/security/pam_slurm_adopt.so" "$ROOT/lib/security"
else
  printf 'account required pam_deny.so\n' >"$ROOT/etc/pam.d/sshd"
fi
export PARTITION="${NODE%-[sd][ty]-*}"
for step in 74-isolate-jobs 76-share-nodes; do PATH="$ROOT/usr/bin:$PATH" bash "$BUNDLE/bootstrap/steps/$step.sh"; done
slurmd="$ROOT/etc/systemd/system/slurmd.service.d/training-cluster-shared.conf"
if [[ -e $slurmd ]]; then
  # As systemd does before it starts slurmd.
  sed -n 's/^ExecStartPre=\([^-]\)/\1/p' "$slurmd" | bash -e
else
  # Slurm 22.05 cannot disable the plugin on a node: BasePath=none is newer.
  sed '/^JobContainerType=/d' "$SLURM_CONF" >"$ROOT/etc/slurm.conf"
  mount --bind "$ROOT/etc/slurm.conf" "$SLURM_CONF"
fi
mount --bind "$ROOT/etc/pam.d" /etc/pam.d
if [[ -d $SSHD ]]; then
  mount -t tmpfs tmpfs /run
  mkdir /run/sshd
  export LD_LIBRARY_PATH
  LD_LIBRARY_PATH="$(printf '%s:' "$SSHD"/usr/lib/*-linux-gnu)"
  # Whoever stops the Slurm finds processes by their environment, which sshd writes over, and so ends this shell.
  (
    setpriv --pdeathsig KILL "$SSHD/usr/sbin/sshd" -D -f /mnt/sshd_config -E "/mnt/slurm/log/sshd-$NODE" &
    wait
  ) </dev/null >/dev/null 2>&1 &
fi
