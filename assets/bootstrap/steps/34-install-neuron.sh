#!/usr/bin/env bash
#
# Installs the Neuron driver, runtime, collectives and tools of one Neuron release, from AWS's signed repository, and
# holds them and the kernel: dkms compiles the driver for the running kernel.
#
# Called by: run-steps.sh, as root. Safe to run again: it skips installed packages of these versions. Environment:
#   BUNDLE, NODE_TYPE, OS, NEURON_{DRIVER,RUNTIME,COLLECTIVES,TOOLS}_VERSION, NEURON_KEY_{URL,FINGERPRINT},
#   TRAINING_ROOT, TRAINING_OPT.
# Recipes: neuron
# Nodes: ComputeFleet
# Budget: 600 s
# Reads: bootstrap/lib/packages.sh bootstrap/lib/repository.sh
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/packages.sh"
source "$BUNDLE/bootstrap/lib/repository.sh"

readonly NAMES=(aws-neuronx-dkms aws-neuronx-runtime-lib aws-neuronx-collectives aws-neuronx-tools)
readonly VERSIONS=("$NEURON_DRIVER_VERSION" "$NEURON_RUNTIME_VERSION" "$NEURON_COLLECTIVES_VERSION"
  "$NEURON_TOOLS_VERSION")
kernel="$(uname -r)"
readonly kernel

die() {
  printf '%s\n' "$1" >&2
  exit 1
}

# installed_version NAME: prints a package's version; nothing if it is not installed.
installed_version() {
  if uses_apt; then
    dpkg-query --show --showformat='${Version}' "$1" 2>/dev/null
  else
    rpm --query --queryformat '%{VERSION}' "$1" 2>/dev/null
  fi || true
}

# A package's full version is the release's number and a suffix of the build.
all_installed() {
  local i
  for i in "${!NAMES[@]}"; do
    [[ $(installed_version "${NAMES[i]}") == "${VERSIONS[i]}"* ]] || return 1
  done
  modinfo -k "$kernel" neuron >/dev/null 2>&1
}

add_neuron_repository() {
  local -a source=("https://yum.repos.neuron.amazonaws.com")
  if uses_apt; then
    # shellcheck source=/dev/null
    source=("https://apt.repos.neuron.amazonaws.com" "$(source "$TRAINING_ROOT/etc/os-release" &&
      printf '%s' "$VERSION_CODENAME")" main)
  fi
  add_repository aws-neuron "$NEURON_KEY_URL" "$NEURON_KEY_FINGERPRINT" gpgcheck "${source[@]}"
}

install_pinned() {
  local i
  local -a wanted=()
  if uses_apt; then
    for i in "${!NAMES[@]}"; do wanted+=("${NAMES[i]}=${VERSIONS[i]}*"); done
    apt update && apt install -y --allow-downgrades --allow-change-held-packages "linux-headers-$kernel" "${wanted[@]}"
  else
    for i in "${!NAMES[@]}"; do wanted+=("${NAMES[i]}-${VERSIONS[i]}*"); done
    dnf install -y -q "$(kernel_package "$kernel")-devel-$kernel" "${wanted[@]}" >&2
  fi || die "could not install ${wanted[*]}: see the lines above"
}

# Holds the versions, since a newer kernel would start without the driver.
hold() {
  if uses_apt; then
    local each
    for each in "${NAMES[@]}" {linux-image,linux-headers}-"$kernel" linux{,-image,-headers}-aws; do
      if [[ -n $(installed_version "$each") ]]; then apt-mark hold "$each" >/dev/null; fi
    done
  else
    dnf versionlock add "${NAMES[@]}" "$(kernel_package "$kernel")" >/dev/null
  fi
}

add_path() {
  mkdir -p "$TRAINING_ROOT/etc/profile.d"
  # shellcheck disable=SC2016  # for the shells that read it
  printf '%s\n' 'export PATH="/opt/aws/neuron/bin:$PATH"' >"$TRAINING_ROOT/etc/profile.d/aws-neuron.sh"
}

if ! all_installed; then
  add_neuron_repository
  install_pinned
  hold
  all_installed || die "after its installation, kernel $kernel has no module neuron, or packages are of other versions"
fi
add_path
if [[ $NODE_TYPE != Image ]]; then modprobe neuron; fi
