#!/usr/bin/env bash
#
# Installs prolog.sh and epilog.sh, which Slurm runs before and after each job. All nodes share the head node's folders,
# which also contain ParallelCluster's own scripts (slurm.conf: Prolog=/opt/slurm/etc/scripts/prolog.d/*, and
# Epilog=/opt/slurm/etc/scripts/epilog.d/*).
#
# A rename activates each script on all nodes at once: Slurm runs every file of the folder whose name does not start with
# a dot.
#
# Called by: run-steps.sh, as root. Environment: BUNDLE, TRAINING_ variables, which are written into both scripts,
#   since Slurm does not set them. Safe to run again.
# Nodes: HeadNode
# Where: any
# Required: no
# Budget: 5 s
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/put.sh"

export TRAINING_BUNDLES="${TRAINING_BUNDLES:-$(dirname "$BUNDLE")}"
settings=""
for name in TRAINING_ROOT TRAINING_ETC TRAINING_BUNDLES TRAINING_SHARED TRAINING_EFS TRAINING_CLUSTER_CONFIG; do
  if [[ -n ${!name:-} ]]; then settings+="export $name=${!name@Q}"$'\n'; fi
done
for moment in prolog epilog; do
  script="$BUNDLE/bootstrap/$moment.sh"
  put "$TRAINING_ROOT/opt/slurm/etc/scripts/$moment.d/10-training-cluster" 755 <<<"$(head -n 1 "$script")
$settings$(tail -n +2 "$script")"
done
