#!/usr/bin/env bash
#
# Creates the Python environments of the node's workloads, as their prepare.sh would at the first job:
# /opt/training-cluster/venvs/WORKLOAD. A separate user, who can write only to that folder, installs the packages and
# compiles those without a wheel. Afterwards the folder belongs to root.
#
# Called by: run-steps.sh, as root. Safe to run again: it skips complete environments, finishes interrupted ones, and
#   needs no network if all are complete. requirements.txt and install.sh state each environment's budget; the budget
#   below is for an image build. At a node's start the budget is the sum for the workloads of the flag
#   (constructs/training_cluster/catalog/workloads.py). Environment: BUNDLE, WORKLOADS, RECIPE, NODE_TYPE, TRAINING_OPT;
#   PIP_*, TRAINING_PYTHON; for the recipe volta TORCH_VOLTA_VERSION, TORCH_VOLTA_INDEX.
# Nodes: ComputeFleet
# Budget: 4200 s
# Reads: bootstrap/lib/installer.sh training/environment.sh training/environment_owners.sh training/local_environment.sh training/container_environment.sh training/*/requirements.txt training/*/requirements.lock training/*/install.sh
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/installer.sh"

die() {
  printf '%s\n' "$1" >&2
  exit 1
}

# header FILE NAME: prints a value from the file's header.
header() { sed -n "/^#/!q; s/^# $2: //p" "$1"; }

# suits FOLDER: true if the workload supports this node's recipe.
suits() {
  local recipes
  recipes="$(header "$1/requirements.txt" Recipes)"
  [[ $recipes == all || " $recipes " == *" $RECIPE "* ]]
}

# budget_of FOLDER: prints the workload's budget in seconds.
budget_of() {
  local file text
  local -i seconds=0
  for file in "$1/requirements.txt" "$1/install.sh"; do
    if [[ ! -f $file ]]; then continue; fi
    text="$(header "$file" Budget)"
    [[ $text =~ ^([0-9]+)\ s$ ]] || die "$file: its header states no budget; add '# Budget: 300 s'"
    seconds+=${BASH_REMATCH[1]}
  done
  printf '%s\n' "$seconds"
}

# make_one FOLDER: creates one environment, in a separate shell, which `timeout` can end.
make_one() {
  local -r folder="$1" name="$(basename "$1")"
  local budget status=0
  budget="$(budget_of "$folder")"
  # shellcheck disable=SC2016  # for that shell
  as_installer "$TRAINING_OPT/venvs/$name" timeout --kill-after=10 "$budget" bash -euo pipefail -c 'source "$1" && make_environment "$2" "$3"' _ \
    "$BUNDLE/training/environment.sh" "$folder" "$TRAINING_OPT/venvs/$name" || status=$?
  case $status in
    0) ;;
    124 | 137) die "the environment of $name was not complete within the $budget s that its header states" ;;
    *) die "could not create the environment of $name: see the lines above" ;;
  esac
}

mkdir -p "$TRAINING_OPT/venvs"
for workload in ${WORKLOADS:-}; do
  folder="$BUNDLE/training/$workload"
  if [[ ! -f $folder/requirements.txt ]]; then die "there is no workload $workload with a requirements.txt"; fi
  if suits "$folder"; then
    make_one "$folder"
  else
    printf '%s: not for nodes of the recipe %s\n' "$workload" "$RECIPE" >&2
  fi
done
