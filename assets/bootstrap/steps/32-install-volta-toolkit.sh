#!/usr/bin/env bash
#
# Installs the CUDA toolkit of torch's last wheels for Volta, in addition to the AMI's own, which does not support Volta, and
# links /usr/local/cuda to it.
#
# Called by: run-steps.sh, as root, in an image build. Safe to run again: it skips an installed toolkit. Environment:
#   BUNDLE, CUDA_TOOLKIT_{VERSION,URL,SHA256}, TRAINING_ROOT, TRAINING_OPT.
# Moment: image
# Recipes: volta
# Nodes: ComputeFleet
# Budget: 1500 s
# Reads: bootstrap/lib/download.sh
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/download.sh"

readonly line="${CUDA_TOOLKIT_VERSION%.*}"
readonly toolkit="$TRAINING_ROOT/usr/local/cuda-$line" current="$TRAINING_ROOT/usr/local/cuda"
readonly installer="$TRAINING_OPT/src/cuda-$CUDA_TOOLKIT_VERSION.run"

if [[ ! -x $toolkit/bin/nvcc ]]; then
  download "$CUDA_TOOLKIT_URL" "$CUDA_TOOLKIT_SHA256" "$installer"
  # A separate temporary folder, since /tmp may be too small for 7 GB, or noexec.
  unpacked="$(mktemp -d "$TRAINING_OPT/src/cuda-XXXXXX")"
  # shellcheck disable=SC2064  # expands now, to this folder
  trap "rm -rf '$unpacked'" EXIT
  sh "$installer" --silent --toolkit --override --no-man-page --toolkitpath="$toolkit" --tmpdir="$unpacked"
  rm -f "$installer"
fi
if ! "$toolkit/bin/nvcc" --version | grep -q "release $line,"; then
  printf '%s is not the CUDA toolkit %s\n' "$toolkit" "$line" >&2
  exit 1
fi
if [[ $(readlink "$current") != "${toolkit#"$TRAINING_ROOT"}" ]]; then
  ln -sfn "${toolkit#"$TRAINING_ROOT"}" "$current"
fi
