#!/usr/bin/env bash
#
# Pins every package of the Python environments with hashes: in locks/, and for workloads in locks beside their
# requirements.txt.
#
# Called by: `make lock`, after a change of requirements*.txt. Safe to run again.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p locks .cache

# compile OUTPUT INPUT...: leaves out the editable line of requirements.txt, which has no hash.
compile() {
  local -r output="$1"
  shift
  {
    printf '# Made by "make lock" from %s.\n' "$*"
    grep -hv '^-e' "$@" | .venv/bin/uv pip compile --quiet --no-config --generate-hashes \
      --no-header --no-annotate - 2>.cache/lock.log
  } >".cache/lock.txt" || {
    tail -n 20 .cache/lock.log >&2
    exit 1
  }
  mv .cache/lock.txt "$output"
  printf 'wrote %s\n' "$output" >&2
}

compile locks/dev.txt requirements.txt requirements-dev.txt
compile locks/pcluster.txt requirements-pcluster.txt
compile locks/docs.txt requirements-docs.txt
.venv/bin/python -m tools.workload_locks
