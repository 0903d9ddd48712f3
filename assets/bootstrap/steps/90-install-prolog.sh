#!/usr/bin/env bash
#
# Installs prolog.sh and epilog.sh, which Slurm runs before and after each job. All nodes share the head node's folders,
# which also contain ParallelCluster's own scripts (slurm.conf: Prolog=/opt/slurm/etc/scripts/prolog.d/*, and
# Epilog=/opt/slurm/etc/scripts/epilog.d/*).
#
# Where several people share the cluster, it also installs task-prolog.sh, which slurm.conf then names, not the cluster
# config: a task whose prolog does not exist yet would fail. An update of ParallelCluster writes slurm.conf without the line:
# until this step runs again, jobs start without credentials.
#
# A rename activates each script on all nodes at once: Slurm runs every file of the folder whose name does not start with
# a dot.
#
# Called by: run-steps.sh, as root. Environment: BUNDLE, TRAINING_ variables, which are written into both scripts,
#   since Slurm does not set them; SLURM_CONF. Safe to run again.
# Nodes: HeadNode
# Where: any
# Required: no
# Budget: 10 s
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/put.sh"

readonly SCRIPTS="$TRAINING_ROOT/opt/slurm/etc/scripts"
readonly conf="${SLURM_CONF:-$TRAINING_ROOT/opt/slurm/etc/slurm.conf}"
export TRAINING_BUNDLES="${TRAINING_BUNDLES:-$(dirname "$BUNDLE")}"
settings=""
for name in TRAINING_ROOT TRAINING_ETC TRAINING_BUNDLES TRAINING_SHARED TRAINING_EFS TRAINING_CLUSTER_CONFIG; do
  if [[ -n ${!name:-} ]]; then settings+="export $name=${!name@Q}"$'\n'; fi
done

# install_script NAME FILE SETTINGS: installs a script of the bundle with these lines below its first one.
install_script() {
  put "$SCRIPTS/$2" 755 <<<"$(head -n 1 "$BUNDLE/bootstrap/$1.sh")
$3$(tail -n +2 "$BUNDLE/bootstrap/$1.sh")"
}
for moment in prolog epilog; do install_script "$moment" "$moment.d/10-training-cluster" "$settings"; done

line=""
if grep -qs users-role= "${TRAINING_CLUSTER_CONFIG:-$TRAINING_ROOT/opt/parallelcluster/shared/cluster-config.yaml}"; then
  # shellcheck source=/dev/null
  source "$TRAINING_ROOT/etc/parallelcluster/cfnconfig"
  # The last line of a setting counts, which is ours.
  another="$(sed -n 's/^TaskProlog=//p' "$(dirname "$conf")/pcluster/custom_slurm_settings_include_file_slurm.conf" 2>/dev/null || true)"
  install_script task-prolog task-prolog "region=${cfn_region:?is not in cfnconfig} another=${another@Q}"$'\n'
  line="TaskProlog=$SCRIPTS/task-prolog"
fi
if [[ -e $conf && $line != "$(sed -n '/^TaskProlog=/p' "$conf")" ]]; then
  put "$conf" < <(
    sed '/^TaskProlog=/d' "$conf"
    printf '%s' "${line:+$line$'\n'}"
  )
  PATH="/opt/slurm/bin:$PATH" scontrol reconfigure
fi
