#!/usr/bin/env bash
# Makes and finds the Python environments of workloads, for a job, the start of a node and an image build.
#
# Sourced by: prepare.sh and train.sh of the workloads, as the user; 50-install-workloads.sh, as its installer. Defines
#   functions only. They return 1 after they print what is wrong.
# Reads: PIP_* (pip's own settings: index, wheels, proxy), TRAINING_PYTHON (an interpreter, 3.10 or newer; default:
#   the first such on PATH), TRAINING_OPT (default /opt/training-cluster: environments and compiled wheels of the
#   node's image, the node's bundle), NODE_TYPE (Image in an image build), TRAINING_REHEARSAL.
#   IMAGE_RECIPE (of a job, from its partition's file) or RECIPE (of a step): on a node of the recipe volta torch comes
#   from TORCH_VOLTA_INDEX in TORCH_VOLTA_VERSION; default: as pinned in the node's bundle. All else comes from pip's
#   usual index.
#
# A workload's folder has requirements.txt, requirements.lock (from "make lock": all packages with hashes; without it they
# are installed unchecked) and, for what pip cannot do in one call, install.sh, which gets the environment's folder.
# Headers name the nodes and the time limit: `# Recipes: gpu cpu`, `# Budget: 300 s`; `# Rehearsals: torch==2.13.0` is the
# torch of rehearsals in place of the nodes' own (ADR 45). `# Moment: image` in install.sh limits it to image builds.
# `# Variants: -NAME` there means that environments differ: with --variant it prints -NAME, or nothing, for this node and
# these settings.
# `# Provides: MODULE` in install.sh: it is not called in a container whose image has that Python module.

readonly OLDEST_PYTHON="3.10"

environment_parts="$(dirname "${BASH_SOURCE[0]}")"
source "$environment_parts/environment_owners.sh"
source "$environment_parts/local_environment.sh"
source "$environment_parts/container_environment.sh"

environment_log() { printf '%s environment.sh: %s\n' "$(date +%H:%M:%S)" "$*" >&2; }

# find_python [FOLDER]: prints the first interpreter that is new enough; for a folder with a lock, the first one for which
# its packages are locked, or in a rehearsal any that is new enough as a last choice.
find_python() {
  local environment_python environment_version environment_first=""
  local -r environment_pythons="$(sed -n 's/^# Pythons: //p' "${1:-}/requirements.lock" 2>/dev/null)"
  for environment_python in ${TRAINING_PYTHON:-python3 python3.13 python3.12 python3.11 python3.10}; do
    environment_version="$("$environment_python" -I -c "import sys
print('%d.%d' % sys.version_info[:2])
sys.exit(sys.version_info < (${OLDEST_PYTHON/./, }))" 2>/dev/null)" || continue
    if [[ -z $environment_pythons || " $environment_pythons " == *" $environment_version "* ]]; then
      command -v "$environment_python"
      return
    fi
    environment_first="${environment_first:-$environment_python}"
  done
  if [[ -n $environment_first && ${TRAINING_REHEARSAL:-0} == 1 ]]; then
    command -v "$environment_first"
    return
  fi
  printf 'no Python %s on %s%s.\n  %s\n' "${environment_pythons:-$OLDEST_PYTHON or newer}" "$(hostname)" \
    "${1:+ for the environment of $(basename "$1")}" \
    'Install one and name it: TRAINING_PYTHON=/usr/bin/python3.12 sbatch ... New clusters have it: -c os=ubuntu2404' >&2
  return 1
}

# torch_build FOLDER: prints `VERSION INDEX` of the torch that this node's GPUs need if pip's usual index does not have it,
# since CUDA 13 does not support the V100. Prints nothing for a workload without torch, for other nodes, and in a
# rehearsal, which uses torch for CPUs.
torch_build() {
  local -r environment_pins="${TRAINING_OPT:-/opt/training-cluster}/bundles/current/versions.env"
  if [[ ${IMAGE_RECIPE:-${RECIPE:-}} != volta || ${TRAINING_REHEARSAL:-0} == 1 ]] || uses_container ||
    ! grep -Eq '^torch *==' "$1/requirements.txt"; then
    return 0
  fi
  ( # keeps the other pins out of the shell that sources this file
    if [[ -z ${TORCH_VOLTA_VERSION:-} || -z ${TORCH_VOLTA_INDEX:-} ]]; then
      source "$environment_pins" || exit 1
    fi
    printf '%s %s\n' "${TORCH_VOLTA_VERSION:?is not in $environment_pins}" \
      "${TORCH_VOLTA_INDEX:?is not in $environment_pins}"
  )
}

# requirements_here FOLDER: prints requirements.txt without comments; in a rehearsal with the torch of its header, if any.
requirements_here() {
  local environment_torch=""
  if [[ ${TRAINING_REHEARSAL:-0} == 1 ]]; then
    environment_torch="$(sed -n 's/^# Rehearsals: //p' "$1/requirements.txt")"
  fi
  sed -E "/^#/d; s/^torch *==.*/${environment_torch:-&}/" "$1/requirements.txt"
}

# environment_content FOLDER: prints a checksum of the environment's inputs without their comments.
environment_content() {
  {
    requirements_here "$1"
    if [[ -f $1/requirements.lock ]]; then cat "$1/requirements.lock"; fi
    if [[ -f $1/install.sh ]]; then cat "$1/install.sh"; fi
    torch_build "$1"
  } | sha256sum
}

# environment_is_made FOLDER VENV: succeeds if the environment exists and belongs to this folder.
environment_is_made() {
  [[ -f $2/requirements.sha256 && $(<"$2/requirements.sha256") == "$(environment_content "$1")" ]] &&
    environment_is_safe "$2" && "$2/bin/python" -I -c '' 2>/dev/null
}

# environment_of FOLDER: prints the environment that this job makes and uses: the node's image's or the one shared by
# all users if it belongs to this folder, otherwise the one in TRAINING_VENVS unless another user could write to it.
environment_of() {
  local environment_name environment_own environment_end environment_all
  if uses_container; then
    environment_own="$(container_environment "$1")" && environment_own="$(unchanged "$1" "$environment_own")" &&
      environment_is_safe "$environment_own" || return 1
    printf '%s\n' "$environment_own"
    return
  fi
  environment_name="${1##*/}"
  environment_own="${TRAINING_OPT:-/opt/training-cluster}/venvs/$environment_name"
  if environment_is_made "$1" "$environment_own"; then
    printf '%s\n' "$environment_own"
  else
    environment_end="$(environment_variant "$1")" || return 1
    environment_own="${TRAINING_VENVS:?job.slurm sets it}/$environment_name$environment_end"
    environment_own="$(unchanged "$1" "$environment_own")" || return 1
    environment_all="$(unchanged "$1" "${TRAINING_SHARED:-/fsx}/venvs/$environment_name$environment_end")" || return 1
    if environment_is_made "$1" "$environment_all" 2>/dev/null; then
      environment_own="$environment_all"
    else
      environment_is_safe "$environment_own" || return 1
    fi
    printf '%s\n' "$environment_own"
  fi
}

# unchanged FOLDER VENV: prints VENV, or VENV-SUM if VENV is complete and has other content, since running jobs may still
# import from it.
unchanged() {
  local environment_sum
  if [[ -f $2/requirements.sha256 ]]; then
    environment_sum="$(environment_content "$1")" || return 1
    if [[ $(<"$2/requirements.sha256") != "$environment_sum" ]]; then
      printf '%s-%s\n' "$2" "${environment_sum:0:8}"
      return
    fi
  fi
  printf '%s\n' "$2"
}

# environment_variant FOLDER: prints the end of the shared environment's name, which differs with the content, since nodes
# with another torch and nodes of `cpu_queue` share the folder.
environment_variant() {
  if [[ -n $(torch_build "$1") ]]; then printf -- '-volta'; fi
  if [[ -f $1/install.sh ]] && grep -q '^# Variants: ' "$1/install.sh"; then bash "$1/install.sh" --variant; fi
}

# make_environment FOLDER VENV: skips what is done, finishes what was interrupted, and runs no code of another user.
make_environment() {
  if [[ ${2:?the folder of the environment is missing} != "${TRAINING_OPT:-/opt/training-cluster}"/* ]]; then
    make_shared_environment "$1" "$2"
  elif ! environment_is_made "$1" "$2"; then
    install_environment "$1" "$2" || return 1
  fi
}

# make_shared_environment FOLDER VENV: makes the environment and its archive, one job at a time. job.slurm's lock differs
# with TRAINING_SHARED and with the workload (ENVIRONMENT_OF of nccl-tests). Without the right to write the lock, the
# environment belongs to another user, and nothing is changed.
make_shared_environment() {
  local environment_was_complete=""
  if [[ -f $2/requirements.sha256 ]]; then environment_was_complete=yes; fi
  mkdir -p "$(dirname "$2")" || return 1
  (
    if command -v flock >/dev/null && { exec 9>>"$2.lock"; } 2>/dev/null && ! flock --nonblock 9; then
      environment_log "another job makes $2: waiting for it"
      flock 9 || exit 1
    fi
    if ! environment_is_made "$1" "$2"; then
      if [[ -z $environment_was_complete && -f $2/requirements.sha256 ]]; then
        printf 'another job has just made %s from other requirements than %s has.\n  %s\n' "$2" "$1" \
          'Submit again: this job then makes another one beside it' >&2
        exit 1
      fi
      install_environment "$1" "$2" || exit 1
    fi
    archive_environment "$2"
  )
}

# install_environment FOLDER VENV
install_environment() {
  # These names differ from those that a sourcing script may have made read-only.
  local -r environment_from="$1" environment_at="$2"
  local environment_python
  if grep -qs '^# Moment: image$' "$environment_from/install.sh" && [[ ${NODE_TYPE:-} != Image ]]; then
    printf 'the environment of %s takes too long for a job or a start: deploy with -c image=build\n' \
      "$(basename "$environment_from")" >&2
    return 1
  fi
  environment_is_safe "$environment_at" || return 1
  if ! venv_is_whole "$environment_at"; then
    environment_python="$(find_python "$environment_from")" || return 1
    # The folder is made before the check, since another user could make it in between.
    mkdir -p "$(dirname "$environment_at")" || return 1
    if [[ ! -d $environment_at ]]; then mkdir -m 755 "$environment_at" || return 1; fi
    environment_is_safe "$environment_at" || return 1
    environment_log "making the Python environment $environment_at with $environment_python"
    if ! make_venv "$environment_python" "$environment_at"; then
      printf '%s -m venv failed; on Ubuntu: sudo apt-get install python3-venv\n' "$environment_python" >&2
      return 1
    fi
  fi
  fill_environment "$environment_from" "$environment_at"
}

# venv_is_whole VENV: true if it is complete; an interrupted venv has no pip yet.
venv_is_whole() {
  if uses_container; then "$1/bin/python" -I -c '' 2>/dev/null; else "$1/bin/python" -I -m pip --version >/dev/null 2>&1; fi
}

# make_venv PYTHON VENV
make_venv() {
  if uses_container; then
    make_container_venv "$1" "$2"
  else
    (umask 022 && "$1" -I -m venv --clear "$2" >&2)
  fi
}

# fill_environment FOLDER VENV
fill_environment() {
  local -r environment_wheels="${TRAINING_OPT:-/opt/training-cluster}/wheels"
  local environment_torch environment_wanted
  environment_torch="$(torch_build "$1")" || return 1
  environment_wanted="$(sed -nE 's/^torch *== *([^ ;+]+).*/\1/p' "$1/requirements.txt")"
  if [[ -n $environment_torch && ${environment_torch%%+*} != "$environment_wanted" ]]; then
    printf '%s asks for torch %s, and nodes with V100 GPUs have %s: change it, or torch_volta in %s\n' \
      "$1/requirements.txt" "$environment_wanted" "${environment_torch% *}" cluster_configs/versions.yaml >&2
    return 1
  fi
  environment_log "installing $1/requirements.txt into $2 (minutes, once)"
  (
    umask 022
    # The image build compiled these wheels for its nodes.
    if [[ -d $environment_wheels ]]; then export PIP_FIND_LINKS="$environment_wheels ${PIP_FIND_LINKS:-}"; fi
    if [[ -n $environment_torch ]]; then
      # torch is installed first and alone, since its index has other packages too. The constraint prevents its replacement.
      printf 'torch==%s\n' "${environment_torch% *}" >"$2/torch.txt"
      export PIP_CONSTRAINT="$2/torch.txt ${PIP_CONSTRAINT:-}"
      environment_pip "$2" --no-deps --index-url "${environment_torch#* }" --requirement "$2/torch.txt"
    fi &&
      install_packages "$1" "$2" "$environment_torch" &&
      if [[ -f $1/install.sh ]] && ! image_provides "$1" "$2/bin/python"; then bash "$1/install.sh" "$2"; fi &&
      if uses_container; then finish_container_venv "$2"; fi
  ) >&2 || {
    printf 'could not install %s into %s: see the lines above\n' "$1/requirements.txt" "$2" >&2
    return 1
  }
  if [[ -n $environment_torch ]]; then torch_knows_volta "$2" || return 1; fi
  # The stamp is written last, so that an interrupted installation has none.
  environment_content "$1" >"$2/.requirements.sha256"
  mv -f "$2/.requirements.sha256" "$2/requirements.sha256"
}

# install_packages FOLDER VENV TORCH: installs only wheels of the lock if the lock supports this Python. TORCH is empty or
# names a build of another index.
install_packages() {
  local environment_lock="" environment_requirements="$2/wanted.txt"
  local -a environment_deps=()
  requirements_here "$1" >"$environment_requirements" || return 1
  environment_lock="$(environment_lock_of "$1" "$2")" || return 1
  if uses_container; then
    lacking "${environment_lock:-$environment_requirements}" "$2" >"$2/lacking.txt" || return 1
    if ! grep -q '^[A-Za-z0-9]' "$2/lacking.txt"; then return; fi
    check_container_pip "$2" || return 1
    # pip would replace packages of the image whose versions differ from another package's requirements.
    environment_deps=(--no-deps)
    if [[ -n $environment_lock ]]; then environment_lock="$2/lacking.txt"; fi
    lacking "$environment_requirements" "$2" >"$2/requirements.txt" 2>/dev/null || return 1
    environment_requirements="$2/requirements.txt"
  fi
  if [[ -z $environment_lock ]]; then
    environment_pip "$2" --requirement "$environment_requirements"
    return
  fi
  if grep -q '^--no-binary ' "$environment_lock"; then
    # Installed here with hashes, since pip downloads build tools of source archives without them. An image may have them.
    if grep -E '^(setuptools|wheel)==' "$environment_lock" >"$2/locked.txt"; then
      environment_pip "$2" --no-deps --require-hashes --only-binary :all: --requirement "$2/locked.txt" || return 1
    fi
  fi
  if [[ -z $3 && ${TRAINING_REHEARSAL:-0} != 1 ]]; then
    environment_pip "$2" "${environment_deps[@]}" --require-hashes --no-build-isolation --requirement "$environment_lock"
  else
    # The lock has PyPI's torch. A torch of another index, for V100 or CPUs, requires other libraries or none.
    grep -Ev '^(torch|triton|nvidia-[a-z0-9-]+|cuda-[a-z0-9-]+)==' "$environment_lock" >"$2/locked.txt" || return 1
    environment_pip "$2" --no-deps --require-hashes --no-build-isolation --requirement "$2/locked.txt" &&
      environment_pip "$2" --requirement "$environment_requirements"
  fi
}

# environment_lock_of FOLDER VENV: prints the lock's path, or nothing if packages are installed unchecked: without a lock,
# and in a rehearsal on a machine that the lock does not support.
environment_lock_of() {
  local -r environment_lock_file="$1/requirements.lock"
  local environment_sum environment_version environment_pythons environment_machines
  if [[ ! -f $environment_lock_file ]]; then
    environment_log "$1 has no requirements.lock, so its packages are installed unchecked; make lock writes it"
    return
  fi
  environment_sum="$(grep -v '^#' "$1/requirements.txt" | sha256sum)"
  if ! grep -qx "# Of: ${environment_sum%% *}" "$environment_lock_file"; then
    printf '%s was not made from the requirements.txt beside it.\n  %s\n' "$environment_lock_file" \
      'Type "make lock" and deploy, or remove it: packages are then installed without a check of their hashes' >&2
    return 1
  fi
  environment_version="$("$2/bin/python" -I -c 'import sys; print("%d.%d" % sys.version_info[:2])')" || return 1
  environment_pythons="$(sed -n 's/^# Pythons: //p' "$environment_lock_file")"
  environment_machines="$(sed -n 's/^# Machines: //p' "$environment_lock_file")"
  : "${environment_machines:=x86_64}" # of a lock that an older release made
  if [[ " $environment_pythons " == *" $environment_version "* && " $environment_machines " == *" $HOSTTYPE "* ]]; then
    printf '%s\n' "$environment_lock_file"
  elif [[ ${TRAINING_REHEARSAL:-0} == 1 ]]; then
    environment_log "$environment_lock_file is not for Python $environment_version on $HOSTTYPE: no hash is checked"
  else
    printf '%s is not for Python %s on %s. Allowed: %s on %s.\n  %s\n' "$environment_lock_file" \
      "$environment_version" "$HOSTTYPE" "$environment_pythons" "$environment_machines" \
      'Name another Python: TRAINING_PYTHON=/usr/bin/python3.12 sbatch ..., or type "make lock" and deploy' >&2
    return 1
  fi
}

# environment_pip VENV ARGUMENT...
environment_pip() {
  "$1/bin/python" -I -m pip install --quiet --quiet --disable-pip-version-check "${@:2}"
}

# torch_knows_volta VENV: true if its torch has code for the V100. torch.cuda.get_arch_list() is empty on a machine without
# a GPU, such as one that builds an image, so its underlying function is called. A torch for CPUs has no such function.
torch_knows_volta() {
  "$1/bin/python" -I - <<'PYTHON' >&2
import sys
import torch

compiled_for = (getattr(torch._C, "_cuda_getArchFlags", str)() or "").split()
if "sm_70" not in compiled_for:
    sys.exit(
        f"torch {torch.__version__} has no code for V100 GPUs (sm_70), only for: {' '.join(compiled_for) or 'CPUs'}. "
        "Take a build for CUDA 12.6, at most 2.14: torch_volta in cluster_configs/versions.yaml, and the same version "
        "in requirements.txt"
    )
PYTHON
}
