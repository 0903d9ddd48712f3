#!/usr/bin/env bash
# Decides whether another user could put code into a Python environment that a job is about to use.
#
# Sourced by: environment.sh. Only defines functions.
# Reads: TRAINING_REHEARSAL, TRAINING_SHARED, TRAINING_ROOT (a folder in place of /, for tests).

# environment_is_safe VENV: succeeds if only root, this user and the cluster's user, who has sudo, can write to the
# environment: its folders, those above it, and links among them. Access control lists (ACLs) are not read.
environment_is_safe() {
  local environment_above environment_real environment_full="$1"
  local -a environment_folders=()
  if [[ $1 != /* ]]; then environment_full="$PWD/$1"; fi
  environment_paths_are_safe inside "$1"{,/.,/bin,/bin/python,/lib,/requirements.sha256} || return 1
  # job.slurm has checked the parent folders, whose owners a container does not show.
  if is_in_container; then return; fi
  # A rehearsal is in the user's own folders, and root may run it.
  if [[ ${TRAINING_REHEARSAL:-0} == 1 ]]; then
    environment_paths_are_safe above "$(dirname "$1")"
    return
  fi
  # Starts no program if the environment exists.
  environment_real="$(cd -P "$environment_full" 2>/dev/null && pwd)" || environment_real="$(realpath -m "$1")"
  if environment_is_imported "$environment_real"; then
    printf '%s on %s is in %s, where every job can write files of any owner by the bucket.\n  %s\n' "$1" "$(hostname)" \
      "${TRAINING_SHARED:-/fsx}/datasets" "Name a folder elsewhere: TRAINING_VENVS=/folder sbatch ..." >&2
    return 1
  fi
  for environment_above in "${environment_full%/}" "$environment_real"; do
    while [[ $environment_above == /?* ]]; do
      environment_above="${environment_above%/*}"
      environment_folders+=("${environment_above:-/}")
    done
  done
  environment_paths_are_safe above "${environment_folders[@]}"
}

# environment_is_imported PATH: true if a path without links is below the datasets. FSx takes owners there from the metadata
# of the bucket's objects, which every job may write, so an owner shows nothing.
environment_is_imported() {
  local environment_datasets
  environment_datasets="$(cd -P "${TRAINING_SHARED:-/fsx}/datasets" 2>/dev/null && pwd)" || return
  [[ $1/ == "$environment_datasets"/* ]]
}

# environment_paths_are_safe inside|above PATH...: the same for existing paths, of links themselves; reports an unsafe path.
# All nodes of a job check at once, so one process reads the owners of all paths.
environment_paths_are_safe() {
  local environment_path
  local -a environment_paths=() environment_owners=()
  local -i environment_number
  for environment_path in "${@:2}"; do
    if [[ -e $environment_path || -L $environment_path ]]; then environment_paths+=("$environment_path"); fi
  done
  if ((${#environment_paths[@]} == 0)); then return; fi
  mapfile -t environment_owners < <(stat --format %u:%U:%G:%a "${environment_paths[@]}")
  ((${#environment_owners[@]} == ${#environment_paths[@]})) || return 1
  for environment_number in "${!environment_paths[@]}"; do
    environment_path_is_safe "$1" "${environment_paths[environment_number]}" \
      "${environment_owners[environment_number]}" || return 1
  done
}

# environment_path_is_safe inside|above PATH UID:USER:GROUP:MODE. In a sticky parent folder other users may write, but cannot
# replace files that are not theirs.
environment_path_is_safe() {
  local environment_uid environment_user environment_group environment_mode environment_others=8#022
  local -a environment_trusted
  IFS=: read -r environment_uid environment_user environment_group environment_mode <<<"$3"
  if ((environment_uid && environment_uid != EUID)); then
    mapfile -t environment_trusted < <({ printf '%s\n' root "$(id -un)" && environment_cluster_user; } | sort -u)
    if [[ " ${environment_trusted[*]} " != *" $environment_user "* ]]; then
      printf '%s on %s belongs to %s, who could run code as %s by it. Allowed owners: %s.\n  %s\n' "$2" "$(hostname)" \
        "$environment_user" "$(id -un)" "${environment_trusted[*]}" \
        "Name a folder of your own: TRAINING_VENVS=/folder sbatch ..., or have it removed: sudo rm -r $2" >&2
      return 1
    fi
  fi
  if [[ -L $2 || ($1 == above && -k $2) ]]; then return; fi
  # A group with its owner's name has no other member. useradd makes it, and sets a umask that lets it write.
  if [[ $environment_group == "$environment_user" ]]; then environment_others=8#002; fi
  if ((8#$environment_mode & environment_others)); then
    printf '%s on %s has a mode by which other users could run code as %s.\n  %s\n' "$2" "$(hostname)" "$(id -un)" \
      "Name a folder of your own: TRAINING_VENVS=/folder sbatch ..., or, if you trust what it holds: chmod go-w $2" >&2
    return 1
  fi
}

# Prints the cluster's user (ubuntu, ec2-user), as ParallelCluster writes it on each node, or nothing elsewhere.
environment_cluster_user() {
  sed -n 's/^cfn_cluster_user=//p' "${TRAINING_ROOT:-}/etc/parallelcluster/cfnconfig" 2>/dev/null || true
}
