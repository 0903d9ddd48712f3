#!/usr/bin/env bash
#
# Packages of the distribution: apt on Ubuntu, dnf on Amazon Linux 2023.
#
# Sourced by: install steps, with `# Reads: bootstrap/lib/packages.sh` in their header.

export DEBIAN_FRONTEND=noninteractive
# needrestart would wait for answers, and would restart services that a booting node needs.
export NEEDRESTART_SUSPEND=1

# uses_apt: true on Ubuntu.
uses_apt() { command -v apt-get >/dev/null; }

# Another package run may hold the lock while a node boots.
apt() { apt-get -o DPkg::Lock::Timeout=60 -qq "$@" >&2; }

# kernel_package VERSION: prints the prefix of a kernel's packages on Amazon Linux 2023, which has several kernels:
# kernel (6.1), kernel6.12, ...
kernel_package() {
  local major minor
  IFS=. read -r major minor _ <<<"$1"
  if [[ $major.$minor == 6.1 ]]; then printf 'kernel\n'; else printf 'kernel%s.%s\n' "$major" "$minor"; fi
}

# install_packages NAME...: installs packages of the distribution; prints the reason of a failure.
install_packages() {
  if uses_apt; then
    # A killed installation (by a step's budget, for example) would make all later ones fail.
    dpkg --configure -a >&2 || true
    # One of an AMI's package sources may not answer while the others have the packages.
    apt update || printf 'apt-get update failed: continues with the existing lists\n' >&2
    apt install -y --no-install-recommends "$@"
  else
    dnf install -y -q "$@" >&2
  fi || {
    printf 'could not install the packages %s: see the lines above\n' "$*" >&2
    return 1
  }
}
