#!/usr/bin/env bash
# Adds Transformer Engine to the environment of the gpt2-megatron workload, on nodes with GPUs: the wheel that
# 48-build-megatron.sh compiled into the nodes' image. On other nodes (which prepare data, or rehearse) it does nothing.
#
# Called by: environment.sh, as the user or the installer: with the environment's folder, after its requirements.txt; with
#   --variant, to print the end of the shared environment's name. Safe to run again: pip skips what is installed.
# Environment: RECIPE (of a step) or IMAGE_RECIPE (of a job), TRAINING_REHEARSAL, TRAINING_OPT; PIP_FIND_LINKS has the
#   image's wheels. NODE_TYPE (Image in an image build). TRANSFORMER_IMPL=local: the run needs no Transformer Engine.
# Provides: transformer_engine
# Variants: -local
# Recipes: gpu cpu
# Image: gpu
# Budget: 300 s
set -euo pipefail

if [[ ${IMAGE_RECIPE:-${RECIPE:-}} != gpu || ${TRAINING_REHEARSAL:-0} == 1 || ${TRANSFORMER_IMPL:-} == local ]]; then
  # A separate environment, so that a run with Transformer Engine does not mistake it for its own complete one.
  if [[ $1 == --variant ]]; then printf '%s\n' -local; fi
  exit 0
fi
if [[ $1 == --variant ]]; then exit 0; fi
wheel=""
for found in "${TRAINING_OPT:-/opt/training-cluster}"/wheels/transformer_engine_torch-*.whl; do
  if [[ -f $found ]]; then wheel="$found"; fi
done
readonly wheel
if [[ -z $wheel && ${NODE_TYPE:-} == Image ]]; then
  printf 'install.sh: this image has no Transformer Engine: 48-build-megatron, above, shows why its build failed.\n  %s\n' \
    'Fix that, or leave gpt2-megatron out of the flag: -c workloads=...' >&2
  exit 1
elif [[ -z $wheel ]]; then
  printf 'install.sh: Transformer Engine is compiled into the image of the nodes, and this one lacks it.\n  %s\n' \
    'Deploy with -c image=build, or train slowly without its kernels: TRANSFORMER_IMPL=local sbatch ...' >&2
  exit 1
fi
version="$(basename "$wheel")"
version="${version#transformer_engine_torch-}"
"$1/bin/python" -I -m pip install --quiet --quiet --disable-pip-version-check --only-binary transformer-engine-torch \
  "transformer_engine[core_cu13,pytorch]==${version%%-*}"
