#!/usr/bin/env bash
#
# Checks that the image has NVIDIA's DCGM, which node health and ParallelCluster's own GPU check use. ParallelCluster's
# AMI has it.
#
# Called by: run-steps.sh, as root. Changes nothing. Environment: BUNDLE, DCGM_FLOOR_VERSION.
# Recipes: gpu volta
# Nodes: ComputeFleet
# Required: no
# Budget: 20 s
# Reads: bootstrap/lib/download.sh
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/download.sh"

if ! command -v dcgmi >/dev/null; then
  printf 'this image has no DCGM, so GPUs are not diagnosed: use an image that is based on the ParallelCluster AMI\n' >&2
  exit 1
fi
version="$(dcgmi --version | sed -n 's/^.*[Vv]ersion *:* *\([0-9][0-9.]*\).*/\1/p' | head -n 1)"
if ! at_least "${version:-0}" "$DCGM_FLOOR_VERSION"; then
  printf 'this image has DCGM %s, older than %s\n' "${version:-of unknown version}" "$DCGM_FLOOR_VERSION" >&2
  exit 1
fi
printf 'DCGM %s\n' "$version" >&2
