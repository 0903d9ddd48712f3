#!/usr/bin/env bash
#
# Installs prolog.sh, which Slurm runs before each job. The head node shares the folder of prologs with all nodes, and
# ParallelCluster's own is in it too (slurm.conf: Prolog=/opt/slurm/etc/scripts/prolog.d/*).
#
# The rename activates it on all nodes at once: Slurm runs every file of the folder whose name does not start with a
# dot.
#
# Called by: run-steps.sh, as root. Environment: BUNDLE, TRAINING_ variables, which are written into the prolog:
#   Slurm sets none of them. Safe to run again.
# Moment: start
# Recipes: all
# Nodes: HeadNode
# Where: any
# Required: no
# Budget: 5 s
set -euo pipefail
shopt -s inherit_errexit
# shellcheck source=assets/bootstrap/lib/put.sh
source "$BUNDLE/bootstrap/lib/put.sh"

readonly PROLOG="$BUNDLE/bootstrap/prolog.sh"
export TRAINING_BUNDLES="${TRAINING_BUNDLES:-$(dirname "$BUNDLE")}"
settings=""
for name in TRAINING_ROOT TRAINING_ETC TRAINING_BUNDLES TRAINING_SHARED TRAINING_EFS TRAINING_CLUSTER_CONFIG; do
  if [[ -n ${!name:-} ]]; then settings+="export $name=${!name@Q}"$'\n'; fi
done
put "$TRAINING_ROOT/opt/slurm/etc/scripts/prolog.d/10-training-cluster" 755 <<<"$(head -n 1 "$PROLOG")
$settings$(tail -n +2 "$PROLOG")"
