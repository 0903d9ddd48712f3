#!/usr/bin/env bash
#
# Installs a Python with venv and headers, for the environments and compiled extensions of workloads: ParallelCluster's
# Ubuntu images have python3 without venv, Amazon Linux 2023's python3 is 3.9.
#
# Called by: run-steps.sh, as root. Environment: BUNDLE, PYTHON_FLOOR_VERSION. Safe to run again: it skips an
#   installed Python.
# Budget: 230 s
# Reads: bootstrap/lib/packages.sh
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/packages.sh"

# Ends with 0 if an interpreter is new enough, has venv, and has its headers.
readonly COMPLETE='
import ensurepip, os, sys, sysconfig, venv

floor = tuple(int(part) for part in sys.argv[1].split("."))
headers = os.path.join(sysconfig.get_path("include"), "Python.h")
sys.exit(sys.version_info < floor or not os.path.exists(headers))
'

has_python() {
  local python
  for python in python3.13 python3.12 python3.11 python3.10 python3; do
    if "$python" -I -c "$COMPLETE" "$PYTHON_FLOOR_VERSION" 2>/dev/null; then return; fi
  done
  return 1
}

if has_python; then exit 0; fi
if uses_apt; then
  install_packages python3-venv python3-dev
else
  install_packages python3.12 python3.12-devel
fi
if ! has_python; then
  printf 'no Python %s or newer with venv and headers, after its packages were installed\n' "$PYTHON_FLOOR_VERSION" >&2
  exit 1
fi
