#!/usr/bin/env bash
# Adds torch to the environment of the bert-trainium workload: AWS's build for Trainium on a neuron node, PyPI's elsewhere,
# with which a rehearsal trains on CPUs and a CPU node prepares data.
#
# Called by: environment.sh, as the user or the installer: with the environment's folder, after its requirements.txt; with
#   --variant, to print the end of the shared environment's name. Safe to run again: pip skips what is installed.
# Environment: IMAGE_RECIPE (of a job) or RECIPE (of a step), TRAINING_REHEARSAL; PIP_*.
# Provides: torch_neuronx
# Variants: -cpu
# Recipes: neuron
# Budget: 1500 s
set -euo pipefail

# Versions of Neuron 2.31.1, the last release with PyTorch/XLA, which fit the driver and the runtime in
# cluster_configs/versions.yaml. Later packages of these names are another library. The local versions (after the +) keep
# pip from installing PyPI's packages of the same names, since PyPI accepts no local versions. Read 2026-11-22 in users'
# reports of this release, not at AWS's index.
readonly NEURON=(torch-neuronx==2.9.0.2.15.32035+de43f57c neuronx-cc==2.26.6360.0+6f180f47)
# Their dependencies from the same index and from PyPI; the last two have the versions of AWS's image of this release.
readonly NEURON_REQUIRED=(libneuronxla==2.2.17544.0+fb9962bf nki==0.5.0+28631259367.ga768afa6
  torch==2.9.1 torch-xla==2.9.0)
readonly NEURON_INDEX=https://pip.repos.neuron.amazonaws.com
readonly TORCH=torch==2.13.0

install() { "$python" -I -m pip install --quiet --quiet --disable-pip-version-check "$@"; }

for_neuron() { [[ ${IMAGE_RECIPE:-${RECIPE:-}} == neuron && ${TRAINING_REHEARSAL:-0} != 1 ]]; }

if [[ $1 == --variant ]]; then
  # A separate environment, so that a job on Trainium does not mistake it for its own complete one.
  for_neuron || printf '%s\n' -cpu
  exit 0
fi
readonly python="$1/bin/python"
if ! for_neuron; then
  install "$TORCH"
else
  printf '%s\n' "${NEURON_REQUIRED[@]}" >"$1/neuron.txt"
  install --extra-index-url "$NEURON_INDEX" --constraint "$1/neuron.txt" \
    --requirement "$(dirname "${BASH_SOURCE[0]}")/requirements.txt" "${NEURON[@]}"
  # A custom package index may have empty packages of these versions.
  if [[ ! -x $1/bin/neuron_parallel_compile ]]; then
    printf 'install.sh: %s brought no neuron_parallel_compile: did they come from %s?\n' "${NEURON[*]}" \
      "$NEURON_INDEX" >&2
    exit 1
  fi
fi
