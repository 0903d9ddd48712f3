#!/usr/bin/env bash
# Adds fairseq to the environment of the roberta workload: from its source, which compiles for some minutes.
#
# Called by: environment.sh (fill_environment), as the user or the installer, with the environment's folder, after its
#   requirements.txt. Safe to run again: pip skips what is installed.
# Provides: fairseq
# Recipes: gpu volta cpu
# Budget: 600 s
set -euo pipefail

readonly python="$1/bin/python"
# fairseq itself (0.12.2) installs neither on Python 3.11 nor with pip 24.1; this is the same code, fixed.
readonly package="fairseq-fixed==0.12.3.1"
# The checksum of its source archive, which pip reported on 2026-11-22.
readonly sha256=c607577a54ab30e2ee0f0b0a754ea5cdbc6ad0a9f99a1726638a2201445bc1cc

header="$("$python" -I -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h"
readonly header
if [[ ! -f $header ]] || ! command -v g++ >/dev/null; then
  printf 'install.sh: %s is compiled here, and there is no g++ or no %s.\n  %s\n' "$package" "$header" \
    'On Ubuntu: sudo apt-get install g++ python3-dev; on Amazon Linux: sudo dnf install gcc-c++ python3-devel' >&2
  exit 1
fi
# --no-deps: requirements.txt has what masked language modelling needs. --no-build-isolation: compile against the
# environment's own torch and numpy. Without CUDA_HOME: its CUDA kernels are for generation, not for training.
env -u CUDA_HOME "$python" -I -m pip install --quiet --quiet --disable-pip-version-check --no-deps --no-build-isolation \
  --require-hashes --requirement <(printf '%s --hash=sha256:%s\n' "$package" "$sha256")
