#!/usr/bin/env bash
#
# Installs everything that the app, the rehearsal and the tests need, in this folder; and Slurm, munge and curl
# from the distribution.
#
# Called by: `make setup`. Safe to run again: existing parts are skipped.
# Environment: PYTHON, an interpreter of 3.11 or newer (default python3); PIP_CACHE_DIR and
#   npm_config_cache, default folders of this project's .cache/; PIP_EXTRA_INDEX_URL, an index of
#   CPU builds of PyTorch.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly PYTHON="${PYTHON:-python3}"
export PATH="$PATH:/usr/sbin:/sbin"
readonly LOGS=.cache/logs
# Debian's package of each program that the rehearsal and the tests call.
declare -rA PACKAGES=([slurmctld]=slurmctld [slurmd]=slurmd [sbatch]=slurm-client [munged]=munge [curl]=curl)
# Disk space of set-up and a rehearsal with PyTorch's CPU build; and the extra space of PyPI's build with CUDA.
readonly SETUP_GIB=4 CUDA_GIB=4
readonly -a PROMETHEUS=(prometheus prometheus-node-exporter prometheus-alertmanager)

say() { printf 'setup: %s\n' "$*" >&2; }

# die WHAT HOW-TO-MEND
die() {
  printf 'setup: %s\n  type: %s\n' "$1" "$2" >&2
  exit 1
}

# logged NAME COMMAND...: writes the output to a file, whose end is printed if the command fails.
logged() {
  local -r log="$LOGS/$1.log"
  shift
  if ! "$@" >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    say "failed: $* (all of it: $log)"
    return 1
  fi
}

# install_packages PACKAGE...: installs from the distribution, as root or with sudo; otherwise prints what to type.
install_packages() {
  local -a as_root=()
  if [[ $(id -u) != 0 ]]; then
    if ! sudo -n true 2>/dev/null && ! { [[ -t 0 ]] && sudo -v; }; then
      die "$* must be installed, and neither root nor sudo is available here." \
        "sudo apt-get update && sudo apt-get install -y --no-install-recommends $*"
    fi
    as_root=(sudo)
  fi
  command -v apt-get >/dev/null ||
    die "this is neither Debian nor Ubuntu; install the equivalents of: $*" "make setup, afterwards"
  say "installing $* from the distribution"
  logged apt-update "${as_root[@]}" apt-get update
  logged apt-install "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "$@"
}

# slurm.conf cannot contain such a path: rehearsal/local_slurm/layout.py.
check_folder() {
  if [[ $PWD == *[[:space:]#]* ]]; then
    die "$PWD: the path has a blank or a # in it, which Slurm cannot read; nothing was made." \
      "mv \"$PWD\" /path/without/them    and make setup there"
  fi
}

check_disk() {
  local -r stamp=.venv/.made-from
  local free_gib
  free_gib=$(($(df --output=avail --block-size=1 . | tail -n 1) >> 30))
  if [[ ! -f $stamp ]] && ((free_gib < SETUP_GIB)); then
    die "$PWD: $free_gib GiB are free, and set-up needs $SETUP_GIB; nothing was made." \
      "df -h .    and make room, or move the project to a larger disk"
  fi
  if [[ ! -f $stamp && -z ${PIP_EXTRA_INDEX_URL:-} ]] && ((free_gib < SETUP_GIB + CUDA_GIB)); then
    say "$free_gib GiB are free: PyPI's PyTorch, which a rehearsal installs, takes $CUDA_GIB more; see TORCH_INDEX in README.md"
  fi
}

check_python() {
  "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    die "$PYTHON is missing or older than 3.11." "make setup PYTHON=/usr/bin/python3.11"
  if ! "$PYTHON" -c 'import venv, ensurepip' 2>/dev/null; then
    install_packages "$("$PYTHON" -c 'import sys; print(f"python3.{sys.version_info[1]}-venv")')"
  fi
}

# fingerprint FILE...: changes with the files, the interpreter and the folder's place.
fingerprint() {
  { cat "$@" && "$PYTHON" -c 'import sys; print(sys.version)' && pwd; } | sha256sum
}

# make_venv FOLDER LOCK [editable]
make_venv() {
  local -r venv="$1" lock="$2" editable="${3:-}"
  local -r stamp="$venv/.made-from"
  local wanted
  wanted="$(fingerprint "$lock" pyproject.toml)"
  if [[ -f $stamp && $(<"$stamp") == "$wanted" ]]; then
    say "$venv is up to date"
    return
  fi
  say "making $venv from $lock"
  rm -f "$stamp"
  logged "venv$venv" "$PYTHON" -m venv --clear "$venv"
  logged "pip$venv" "$venv/bin/python" -m pip install --disable-pip-version-check --no-deps --require-hashes -r "$lock"
  if [[ -n $editable ]]; then
    logged "pip-editable$venv" "$venv/bin/python" -m pip install --disable-pip-version-check \
      --no-deps --no-build-isolation --editable .
  fi
  printf '%s\n' "$wanted" >"$stamp"
}

# In an activated environment the pinned AWS CLI v1 would hide a person's v2, for which printed commands are written;
# rehearsals use it as rehearsal/programs/aws.
hide_aws_cli() {
  rm -f .venv/bin/aws .venv/bin/aws.cmd .venv/bin/aws_completer .venv/bin/aws_*_completer*
}

make_node_modules() {
  local -r stamp=node_modules/.made-from
  local wanted
  wanted="$(sha256sum <package-lock.json)"
  if [[ -f $stamp && $(<"$stamp") == "$wanted" ]]; then
    say "node_modules is up to date"
    return
  fi
  say "installing the CDK CLI into node_modules"
  PATH="$PWD/.venv/bin:$PATH" logged npm npm ci --no-audit --no-fund --loglevel=error
  printf '%s\n' "$wanted" >"$stamp"
}

# mmdebstrap makes throw-away machines (rehearsal/node_root), which need root's rights; without them their tests are
# skipped.
install_programs() {
  local program
  local -a missing=()
  for program in "${!PACKAGES[@]}"; do
    command -v "$program" >/dev/null || missing+=("${PACKAGES[$program]}")
  done
  if [[ $(id -u) != 0 ]]; then
    say "not root: the tests that start nodes in throw-away machines will be skipped"
  elif ! command -v mmdebstrap >/dev/null; then
    missing+=(mmdebstrap)
  fi
  if ((${#missing[@]})); then install_packages "${missing[@]}"; fi
  # `sbatch --version` would search for a slurm.conf.
  say "$(slurmctld -V) is installed"
}

# Prometheus, promtool and node_exporter for rehearsals and tests, unpacked and not installed: installed, they would
# listen on this machine at once.
unpack_prometheus() {
  local -r folder=.cache/prometheus
  local package
  if [[ -x $folder/usr/bin/promtool && -x $folder/usr/bin/prometheus-node-exporter ]]; then return; fi
  say "unpacking Prometheus from the distribution"
  rm -rf "$folder" "$folder.part"
  mkdir -p "$folder.part"
  if ! (cd "$folder.part" && apt-get download "${PROMETHEUS[@]}" >apt.log 2>&1); then
    tail -n 5 "$folder.part/apt.log" >&2
    say "${PROMETHEUS[*]} cannot be downloaded: their tests fail; type: sudo apt-get update && make setup"
    return
  fi
  for package in "$folder.part"/*.deb; do dpkg-deb --extract "$package" "$folder.part"; done
  rm -f "$folder.part"/*.deb
  mv -T "$folder.part" "$folder"
}

# jsii unpacks aws-cdk-lib at its first use. It is done once here: parallel processes would wait for each other, and
# its lock expires after 5 s.
unpack_jsii() {
  if [[ -d $JSII_RUNTIME_PACKAGE_CACHE_ROOT ]]; then return; fi
  say "unpacking aws-cdk-lib"
  PATH="$PWD/.venv/bin:$PATH" .venv/bin/python -c 'import aws_cdk' || {
    rm -rf "$JSII_RUNTIME_PACKAGE_CACHE_ROOT"
    return 1
  }
}

main() {
  check_folder
  check_disk
  export JSII_RUNTIME_PACKAGE_CACHE_ROOT="${JSII_RUNTIME_PACKAGE_CACHE_ROOT:-$PWD/.cache/jsii}"
  mkdir -p "$LOGS" .cache/tmp
  check_python
  install_programs
  # Both environments are made in parallel, since each mostly waits for the network. The second has a process group
  # of its own, so that Ctrl-C (which a shell's background jobs do not get) can end all of it.
  set -m
  make_venv .venv-pcluster locks/pcluster.txt &
  readonly other=$!
  set +m
  trap 'kill -TERM -- "-$other" 2>/dev/null || true' EXIT
  make_venv .venv locks/dev.txt editable
  hide_aws_cli
  unpack_prometheus
  make_node_modules
  unpack_jsii
  wait "$other"
  trap - EXIT
  say "ready"
}

main
