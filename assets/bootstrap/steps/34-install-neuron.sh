#!/usr/bin/env bash
#
# Installs the Neuron driver, runtime, collectives and tools of one Neuron release, from AWS's signed repository, and
# holds them and the kernel: dkms compiles the driver for the kernel of now.
#
# Called by: run-steps.sh, as root. Safe to run again: it skips packages that are there in their versions. Environment:
#   BUNDLE, NODE_TYPE, OS, NEURON_{DRIVER,RUNTIME,COLLECTIVES,TOOLS}_VERSION, NEURON_KEY_{URL,FINGERPRINT},
#   TRAINING_ROOT, TRAINING_OPT.
# Moment: install
# Recipes: neuron
# Nodes: ComputeFleet
# Where: node
# Required: yes
# Budget: 600 s
# Reads: bootstrap/lib/download.sh bootstrap/lib/packages.sh
set -euo pipefail
shopt -s inherit_errexit
# shellcheck source=assets/bootstrap/lib/packages.sh
source "$BUNDLE/bootstrap/lib/packages.sh"

readonly NAMES=(aws-neuronx-dkms aws-neuronx-runtime-lib aws-neuronx-collectives aws-neuronx-tools)
readonly VERSIONS=("$NEURON_DRIVER_VERSION" "$NEURON_RUNTIME_VERSION" "$NEURON_COLLECTIVES_VERSION"
  "$NEURON_TOOLS_VERSION")
kernel="$(uname -r)"
readonly kernel
readonly key="$TRAINING_ROOT/usr/share/keyrings/aws-neuron.asc"

die() {
  printf '%s\n' "$1" >&2
  exit 1
}

# installed_version NAME: nothing where it is not.
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

# The file's SHA-256 changes whenever AWS moves the key's expiry; its fingerprint is the key.
fetch_key() {
  local found
  mkdir -p "$(dirname "$key")"
  curl --fail --location --silent --show-error --retry 5 --retry-delay 2 --connect-timeout 20 --output "$key.part" \
    "$NEURON_KEY_URL" || die "could not fetch $NEURON_KEY_URL: has this machine a way to it?"
  found="$(gpg --show-keys --with-colons "$key.part" | awk -F: '$1 == "fpr" { print $10; exit }')"
  if [[ $found != "$NEURON_KEY_FINGERPRINT" ]]; then
    rm -f "$key.part"
    die "$NEURON_KEY_URL has the key '$found', not AWS Neuron's $NEURON_KEY_FINGERPRINT: nothing was installed"
  fi
  mv -f "$key.part" "$key"
}

add_repository() {
  local codename
  if uses_apt; then
    # shellcheck source=/dev/null
    codename="$(source "$TRAINING_ROOT/etc/os-release" && printf '%s' "$VERSION_CODENAME")"
    printf 'deb [signed-by=%s] https://apt.repos.neuron.amazonaws.com %s main\n' "${key#"$TRAINING_ROOT"}" "$codename" \
      >"$TRAINING_ROOT/etc/apt/sources.list.d/aws-neuron.list"
  else
    printf '%s\n' '[aws-neuron]' 'name=AWS Neuron' 'baseurl=https://yum.repos.neuron.amazonaws.com' 'enabled=1' \
      'gpgcheck=1' "gpgkey=file://${key#"$TRAINING_ROOT"}" >"$TRAINING_ROOT/etc/yum.repos.d/aws-neuron.repo"
  fi
}

install_pinned() {
  local i
  local -a wanted=()
  if uses_apt; then
    for i in "${!NAMES[@]}"; do wanted+=("${NAMES[i]}=${VERSIONS[i]}*"); done
    apt update && apt install -y --allow-downgrades --allow-change-held-packages "linux-headers-$kernel" "${wanted[@]}"
  else
    for i in "${!NAMES[@]}"; do wanted+=("${NAMES[i]}-${VERSIONS[i]}*"); done
    dnf install -y -q "kernel-devel-$kernel" "${wanted[@]}" >&2
  fi || die "could not install ${wanted[*]}: see the lines above"
}

# A newer kernel would start without the driver.
hold() {
  if uses_apt; then
    local each
    for each in "${NAMES[@]}" {linux-image,linux-headers}-"$kernel" linux{,-image,-headers}-aws; do
      if [[ -n $(installed_version "$each") ]]; then apt-mark hold "$each" >/dev/null; fi
    done
  else
    dnf versionlock add "${NAMES[@]}" kernel >/dev/null
  fi
}

add_path() {
  mkdir -p "$TRAINING_ROOT/etc/profile.d"
  # shellcheck disable=SC2016  # for the shells that read it
  printf '%s\n' 'export PATH="/opt/aws/neuron/bin:$PATH"' >"$TRAINING_ROOT/etc/profile.d/aws-neuron.sh"
}

if ! all_installed; then
  fetch_key
  add_repository
  install_pinned
  hold
  all_installed || die "after its installation, kernel $kernel has no module neuron, or packages are of other versions"
fi
add_path
if [[ $NODE_TYPE != Image ]]; then modprobe neuron; fi
