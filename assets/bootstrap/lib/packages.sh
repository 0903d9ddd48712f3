#!/usr/bin/env bash
#
# Packages of the distribution: apt on Ubuntu, dnf on Amazon Linux 2023.
#
# Sourced by: install steps, with `# Reads: bootstrap/lib/packages.sh` in their header.

export DEBIAN_FRONTEND=noninteractive
# Its questions about restarts would wait, and its restarts hit what a booting node needs.
export NEEDRESTART_SUSPEND=1

uses_apt() { command -v apt-get >/dev/null; }

# Another package run may hold the lock while a node boots.
apt() { apt-get -o DPkg::Lock::Timeout=60 -qq "$@" >&2; }

# kernel_package VERSION: what the packages of a kernel of Amazon Linux 2023 begin with, of which it has several: kernel
# (6.1), kernel6.12, ...
kernel_package() {
  local major minor
  IFS=. read -r major minor _ <<<"$1"
  if [[ $major.$minor == 6.1 ]]; then printf 'kernel\n'; else printf 'kernel%s.%s\n' "$major" "$minor"; fi
}

# install_packages NAME...
install_packages() {
  if uses_apt; then
    # An installation that was ended in the middle, as by a step's budget, would fail all that come after it.
    dpkg --configure -a >&2 || true
    # One of an AMI's sources may not answer; what is wanted may come from the others.
    apt update || printf 'apt-get update failed: goes on with the lists that are there\n' >&2
    apt install -y --no-install-recommends "$@"
  else
    dnf install -y -q "$@" >&2
  fi || {
    printf 'could not install the packages %s: see the lines above\n' "$*" >&2
    return 1
  }
}
