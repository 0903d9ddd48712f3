#!/usr/bin/env bash
#
# Installs everything that the app, the rehearsal and the tests need, in this folder; and Slurm with its accounting and
# MariaDB, munge, curl and squashfs-tools (images of containers) from the distribution.
#
# Called by: `make setup`. Safe to run again: existing parts are skipped. What has to be made again is made beside the
# old one, as .venv.new and the like, and takes its place when all of it is complete: a failure changes nothing.
# Environment: PYTHON, an interpreter of 3.11 or newer (default: the one that .venv has, else python3); PIP_CACHE_DIR
#   and npm_config_cache, default folders of this project's .cache/; PIP_EXTRA_INDEX_URL, an index of CPU builds of
#   PyTorch.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "${BASH_SOURCE[0]}")/.."

PYTHON="${PYTHON:-python3}"
export PATH="$PATH:/usr/sbin:/sbin"
readonly LOGS=.cache/logs
readonly NO_NETWORK='NewConnectionError|NameResolutionError|ConnectTimeout|[Nn]ame resolution|is unreachable|Could not resolve'
readonly NO_NETWORK_NPM='EAI_AGAIN|ENOTFOUND|ENETUNREACH|ECONNREFUSED|ETIMEDOUT'
# Debian's package of each program that the rehearsal and the tests call.
declare -rA PACKAGES=([slurmctld]=slurmctld [slurmd]=slurmd [sbatch]=slurm-client [munged]=munge [curl]=curl
  [mksquashfs]=squashfs-tools)
# Packages of Slurm's accounting, which `make rehearse USERS=2` and a nightly test start.
declare -rA ACCOUNTING=([slurmdbd]=slurmdbd [mariadbd]=mariadb-server-core [mariadb]=mariadb-client-core)
# Disk space of set-up and a rehearsal with PyTorch's CPU build; the extra space of PyPI's build with CUDA; and the
# space of a second environment beside the first.
readonly SETUP_GIB=4 CUDA_GIB=4 AGAIN_GIB=2
readonly -a PROMETHEUS=(prometheus prometheus-node-exporter prometheus-alertmanager)
readonly PARTS=(.venv .venv-pcluster node_modules)

say() { printf 'setup: %s\n' "$*" >&2; }

# die WHAT HOW-TO-MEND
die() {
  printf 'setup: %s\n  type: %s\n' "$1" "$2" >&2
  exit 1
}

# logged NAME COMMAND...: writes the command's output to a log. A service that apt-get starts must not keep the lock.
logged() {
  local -r log="$LOGS/$1.log"
  shift
  "$@" >"$log" 2>&1 8<&-
}

# explain NAME...: ends with the cause of a failure, from the newest of these logs.
explain() {
  local log="$LOGS/$1.log" name
  for name; do
    if [[ $LOGS/$name.log -nt $log ]]; then log="$LOGS/$name.log"; fi
  done
  if grep -qE 'No space left on device|ENOSPC' "$log"; then
    die "the disk is full ($log); what was set up before is unchanged." "df -h .    free some disk space, then make setup"
  elif grep -qE "$NO_NETWORK|$NO_NETWORK_NPM" "$log"; then
    die "the package index cannot be reached ($log); what was set up before is unchanged." \
      "make setup    when the network works"
  fi
  tail -n 20 "$log" >&2
  die "a command failed, and the last lines of its output are above; what was set up before is unchanged." "less $log"
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
  logged apt-update "${as_root[@]}" apt-get update || explain apt-update
  logged apt-install "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "$@" || explain apt-install
}

# slurm.conf cannot contain such a path: rehearsal/local_slurm/layout.py.
check_folder() {
  if [[ $PWD == *[[:space:]#]* ]]; then
    die "$PWD: the path contains a space or a #, which Slurm cannot read; nothing was changed." \
      "mv \"$PWD\" /path/without/them    then make setup there"
  fi
}

# wait_for_others: a second set-up at the same time would remove what the first one makes. The lock is on this file
# itself, which makes nothing, and ends with the process.
wait_for_others() {
  exec 8<tools/setup.sh
  if flock --nonblock 8; then return; fi
  say "another set-up is running in this folder: waiting for it to finish"
  flock 8
}

# check_disk GIB: GIB are required, more for PyPI's PyTorch.
check_disk() {
  local free_gib
  free_gib=$(($(df --output=avail --block-size=1 . | tail -n 1) >> 30))
  if ((free_gib < $1)); then
    die "$PWD: $free_gib GiB are free, and set-up requires $1; nothing was changed." \
      "df -h .    free some disk space, or move the project to a larger disk"
  fi
  if [[ ! -d .venv && -z ${PIP_EXTRA_INDEX_URL:-} ]] && ((free_gib < $1 + CUDA_GIB)); then
    say "$free_gib GiB are free: PyPI's PyTorch, which a rehearsal installs, takes $CUDA_GIB more; see TORCH_INDEX in README.md"
  fi
}

# check_no_rehearsal: a running rehearsal uses the environments that are about to be replaced.
check_no_rehearsal() {
  if [[ -n $(tools/rehearsal.sh pids) ]]; then
    die "a rehearsal is running from environments that must be made again; nothing was changed." "make stop"
  fi
}

check_python() {
  "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    die "$PYTHON is missing or older than 3.11; nothing was changed." "make setup PYTHON=/usr/bin/python3.11"
  # cfn-lint 1.58 refuses 3.15, and pinned packages have no wheels for it.
  "$PYTHON" -c 'import sys; sys.exit(sys.version_info >= (3, 15))' ||
    die "$PYTHON is 3.15 or newer, for which pinned packages do not exist; nothing was changed." \
      "make setup PYTHON=/usr/bin/python3.13"
}

check_venv_package() {
  if ! "$PYTHON" -c 'import venv, ensurepip' 2>/dev/null; then
    install_packages "$("$PYTHON" -c 'import sys; print(f"python3.{sys.version_info[1]}-venv")')"
  fi
}

# fingerprint FILE...: changes with the files, the interpreter and the folder's place.
fingerprint() {
  { cat "$@" && "$PYTHON" -c 'import sys; print(sys.version)' && pwd; } | sha256sum
}

# wanted PART: prints what the part's stamp says when the part is up to date.
wanted() {
  case "$1" in
    .venv) fingerprint locks/dev.txt pyproject.toml ;;
    .venv-pcluster) fingerprint locks/pcluster.txt pyproject.toml ;;
    node_modules) sha256sum <package-lock.json ;;
  esac
}

is_current() {
  [[ -f $1/.made-from && $(<"$1/.made-from") == "$(wanted "$1")" ]]
}

# make_venv FOLDER LOCK [editable]: makes FOLDER.new.
make_venv() {
  local -r venv="$1" lock="$2" editable="${3:-}"
  local -a pip=("$1.new/bin/python" -m pip install --disable-pip-version-check --no-deps)
  if is_current "$venv"; then return; fi
  say "making $venv from $lock"
  logged "venv$venv" "$PYTHON" -m venv --clear --prompt "$venv" "$venv.new" || return
  logged "pip$venv" "${pip[@]}" --require-hashes -r "$lock" || return
  if [[ -n $editable ]]; then
    logged "pip-editable$venv" "${pip[@]}" --no-build-isolation --editable . || return
  fi
  wanted "$venv" >"$venv.new/.made-from"
}

# make_event_loop VENV: the ParallelCluster library calls asyncio.get_event_loop(), which makes no loop from Python 3.14
# on. Lambda runs it on 3.12.
make_event_loop() {
  local site
  if [[ ! -d $1.new ]]; then return; fi
  site="$("$1.new/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
  printf 'import sys; sys.version_info >= (3, 14) and __import__("asyncio").set_event_loop(%s)\n' \
    '__import__("asyncio").new_event_loop()' >"$site/event_loop.pth"
}

# In an activated environment the pinned AWS CLI v1 would hide a person's v2, for which printed commands are written;
# rehearsals use it as rehearsal/programs/aws.
hide_aws_cli() {
  rm -f .venv/bin/aws .venv/bin/aws.cmd .venv/bin/aws_completer .venv/bin/aws_*_completer*
}

# make_node_modules: makes node_modules.new, with Node of the newest .venv.
make_node_modules() {
  local venv=.venv
  if [[ -d .venv.new ]]; then venv=.venv.new; fi
  if is_current node_modules; then return; fi
  say "installing the CDK CLI into node_modules"
  rm -rf .cache/npm-project
  mkdir -p .cache/npm-project
  cp package.json package-lock.json .cache/npm-project
  PATH="$PWD/$venv/bin:$PATH" logged npm npm ci --prefix .cache/npm-project --no-audit --no-fund --loglevel=error ||
    return
  mv -T .cache/npm-project/node_modules node_modules.new
  wanted node_modules >node_modules.new/.made-from
}

# put_in_place PART: replaces PART with PART.new if that exists. Scripts of a Python environment contain its path.
put_in_place() {
  local -r part="$1"
  if [[ ! -f $part.new/.made-from ]]; then return; fi
  if [[ -d $part.new/bin ]]; then
    grep -rlI "/$part\.new" "$part.new/bin" "$part.new/pyvenv.cfg" | xargs -r sed -i "s|/\\$part\.new|/$part|g"
  fi
  rm -rf "$part.old"
  if [[ -e $part ]]; then mv -T "$part" "$part.old"; fi
  mv -T "$part.new" "$part"
  rm -rf "$part.old"
}

# tidy: removes what an interrupted set-up left behind, and completes its unfinished renames.
tidy() {
  local part
  for part in "${PARTS[@]}"; do
    if [[ ! -e $part && -e $part.old ]]; then mv -T "$part.old" "$part"; fi
    rm -rf "$part.new" "$part.old"
  done
}

# mmdebstrap makes throw-away machines (tests/slow/node_root), and a test of the nodes' firewall runs iptables. Both need
# root's rights; without them their tests are skipped.
install_programs() {
  local program
  local -a missing=()
  for program in "${!PACKAGES[@]}"; do
    command -v "$program" >/dev/null || missing+=("${PACKAGES[$program]}")
  done
  if [[ $(id -u) != 0 ]]; then
    say "not root: the tests that start nodes in throw-away machines will be skipped"
  else
    for program in mmdebstrap iptables; do
      command -v "$program" >/dev/null || missing+=("$program")
    done
  fi
  if ((${#missing[@]})); then install_packages "${missing[@]}"; fi
  # `sbatch --version` would search for a slurm.conf.
  say "$(slurmctld -V) is installed"
}

# install_accounting: installs the packages of Slurm's accounting. It removes no other database server of this machine.
install_accounting() {
  local program
  local -a missing=()
  for program in "${!ACCOUNTING[@]}"; do
    command -v "$program" >/dev/null || missing+=("${ACCOUNTING[$program]}")
  done
  if ((${#missing[@]} == 0)) || (install_packages --no-remove "${missing[@]}"); then return; fi
  say "${missing[*]} cannot be installed: make rehearse USERS=2 and its nightly test will fail"
}

# unpack NAME FILE PACKAGE...: unpacks packages into .cache/NAME, unless it has FILE. Installed, their programs would listen
# on this machine at once.
unpack() {
  local -r folder=".cache/$1"
  local package
  if [[ -e $folder/$2 ]]; then return; fi
  say "unpacking $1 from the distribution"
  rm -rf "$folder" "$folder.part"
  mkdir -p "$folder.part"
  if ! (cd "$folder.part" && apt-get download "${@:3}" >apt.log 2>&1); then
    tail -n 5 "$folder.part/apt.log" >&2
    say "${*:3} cannot be downloaded: their tests fail; type: sudo apt-get update && make setup"
    return
  fi
  for package in "$folder.part"/*.deb; do dpkg-deb --extract "$package" "$folder.part"; done
  rm -f "$folder.part"/*.deb
  mv -T "$folder.part" "$folder"
}

# Prometheus, promtool and node_exporter for rehearsals and tests; and sshd with pam_slurm_adopt, which only root can start.
unpack_services() {
  local -a packages=("${PROMETHEUS[@]}")
  # Debian 13 has promtool in a package of its own.
  if [[ -n $(apt-cache search --names-only '^promtool$' 2>/dev/null) ]]; then packages+=(promtool); fi
  unpack prometheus usr/bin/promtool "${packages[@]}"
  if [[ $(id -u) != 0 ]]; then return; fi
  packages=(openssh-server libpam-slurm-adopt)
  # Of their libraries, the others come with Slurm and ssh.
  mapfile -t -O 2 packages < <(apt-cache depends "${packages[@]}" | sed -nE 's/.*Depends: (lib(slurm|wrap).*)/\1/p')
  unpack sshd lib/security/pam_slurm_adopt.so "${packages[@]}"
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

# end_installations: ends both installations and waits for their end, since the lock of this set-up ends with it. What
# still runs after ten seconds is killed.
end_installations() {
  local -i tenths
  kill -TERM -- "-$other" "-$first" 2>/dev/null || return 0
  for ((tenths = 0; tenths < 100; tenths++)); do
    kill -0 -- "-$other" "-$first" 2>/dev/null || return 0
    sleep 0.1
  done
  kill -KILL -- "-$other" "-$first" 2>/dev/null || true
}

main() {
  local part
  local -a stale=()
  check_folder
  wait_for_others
  tidy
  # Only PYTHON=... replaces the Python of a working environment; another python3 on the PATH does not.
  if [[ $PYTHON == python3 && -f .venv/.made-from ]] && .venv/bin/python -c '' 2>/dev/null; then PYTHON=.venv/bin/python; fi
  check_python
  for part in "${PARTS[@]}"; do
    if ! is_current "$part"; then stale+=("$part"); fi
  done
  if [[ ! -d .venv ]]; then
    check_disk "$SETUP_GIB"
  elif ((${#stale[@]})); then
    check_no_rehearsal
    check_disk "$AGAIN_GIB"
  fi
  export JSII_RUNTIME_PACKAGE_CACHE_ROOT="${JSII_RUNTIME_PACKAGE_CACHE_ROOT:-$PWD/.cache/jsii}"
  mkdir -p "$LOGS" .cache/tmp
  check_venv_package
  install_programs
  install_accounting
  # Both environments are made in parallel, since each mostly waits for the network. Each has a process group of its
  # own: a set-up that ends by Ctrl-C or a signal ends all of it, so that the next one is alone in the folders.
  set -m
  make_venv .venv-pcluster locks/pcluster.txt &
  readonly other=$!
  { make_venv .venv locks/dev.txt editable && make_node_modules; } &
  readonly first=$!
  set +m
  trap end_installations EXIT
  wait "$first" || explain venv.venv pip.venv pip-editable.venv npm
  wait "$other" || explain venv.venv-pcluster pip.venv-pcluster
  make_event_loop .venv-pcluster
  trap - EXIT
  for part in "${PARTS[@]}"; do put_in_place "$part"; done
  hide_aws_cli
  unpack_services
  unpack_jsii
  say "ready"
}

main
