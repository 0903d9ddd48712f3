#!/usr/bin/env bash
#
# Installs what workloads make their Python environments with: ParallelCluster's Ubuntu images have
# python3 without venv, Amazon Linux 2023's python3 is 3.9.
#
# Called by: bootstrap.sh, as root, on every node. Safe to run again: it skips what is there. Does
#   nothing on a machine that is no ParallelCluster node, such as a rehearsal's.
# Budget: 480 s
set -euo pipefail

[[ -e /etc/parallelcluster/cfnconfig ]] || exit 0

for python in python3.13 python3.12 python3.11 python3.10 python3; do
  if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    exit 0
  fi
done

if command -v apt-get >/dev/null; then
  # Another package run may hold the lock while the node boots.
  apt-get -o DPkg::Lock::Timeout=150 update -qq
  DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=150 install -y -qq python3-venv
else
  dnf install -y -q python3.11
fi
