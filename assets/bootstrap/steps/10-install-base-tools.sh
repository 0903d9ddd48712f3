#!/usr/bin/env bash
#
# Installs programs that jobs, users and later steps rely on, from the distribution.
#
# Called by: run-steps.sh, as root. Environment: BUNDLE. Safe to run again: it installs only missing
#   programs, and uses no network if it finds all of them.
# Required: no
# Budget: 110 s
# Reads: bootstrap/lib/packages.sh
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/packages.sh"

# Prints lines of a program, its package of apt and its package of dnf.
tools() {
  cat <<'END_OF_TOOLS'
git git git
curl curl curl-minimal
jq jq jq
make make make
g++ g++ gcc-c++
lspci pciutils pciutils
numactl numactl numactl
nvme nvme-cli nvme-cli
hwloc-info hwloc hwloc
chronyc chrony chrony
gpg gnupg gnupg2-minimal
rsync rsync rsync
tmux tmux tmux
htop htop htop
unzip unzip unzip
zstd zstd zstd
END_OF_TOOLS
}

missing=()
while read -r program of_apt of_dnf; do
  if command -v "$program" >/dev/null; then continue; fi
  if uses_apt; then missing+=("$of_apt"); else missing+=("$of_dnf"); fi
done < <(tools)

if ((${#missing[@]})); then install_packages "${missing[@]}"; fi
