#!/usr/bin/env bash
# Copies a shared Python environment, as one archive, and the ranks' scripts to the local disks of a large job's nodes.
# Otherwise each rank that imports torch from a shared file system opens thousands of files there and looks for many more.
# For each module it also requests the state of the scripts' folders.
#
# Sourced by: environment.sh, which has what these functions call. Only defines functions.
# Reads: LOCAL_ENVIRONMENT (auto: jobs of LOCAL_FROM_NODES nodes or more; yes; no), SLURM_JOB_NUM_NODES, SLURM_JOB_ID,
#   START_NUMBER, SCRATCH (the folder of the local disks, from the partition's file; without it the environment
#   stays shared).
# Writes: ENVIRONMENT.SUM.tar beside the shared environment, and its path to $RUN_DIR/archives (broadcast.sh);
#   $SCRATCH/venvs-UID/NAME.SUM, once a node for each content; $SCRATCH/venvs-UID/scripts/JOB-START, once a node for each start.

readonly LOCAL_FROM_NODES=16

# Succeeds if this job's nodes take their environments from their local disks.
local_environment_is_wanted() {
  case ${LOCAL_ENVIRONMENT:-auto} in
    yes) ;;
    auto) ((${SLURM_JOB_NUM_NODES:-1} >= LOCAL_FROM_NODES)) || return 1 ;;
    *) return 1 ;;
  esac
  [[ -n ${SCRATCH:-} && -d $SCRATCH && -w $SCRATCH ]]
}

# local_environment_archive VENV: prints the path of the archive that fits the environment's content.
local_environment_archive() {
  local environment_sum
  environment_sum="$(sha256sum <"$1/requirements.sha256")" || return 1
  printf '%s.%s.tar\n' "$1" "${environment_sum:0:12}"
}

# archive_environment VENV: writes the archive for the other nodes, if this job uses local environments. Without space for
# it the environment remains shared.
archive_environment() {
  local environment_archive
  if ! local_environment_is_wanted; then return; fi
  environment_archive="$(local_environment_archive "$1")" || return 1
  if [[ -f $environment_archive ]]; then
    note_archive "$environment_archive"
    return
  fi
  environment_log "packing $1 for the local disks of ${SLURM_JOB_NUM_NODES:-1} nodes"
  rm -f "$1".*.tar "$1".tar.partial
  if tar --create --file "$1.tar.partial" --directory "$1" . && mv "$1.tar.partial" "$environment_archive"; then
    note_archive "$environment_archive"
  else
    rm -f "$1.tar.partial"
    environment_log "$1 could not be packed, so the nodes use the shared folder"
  fi
}

# note_archive ARCHIVE: tells job.slurm what its nodes will unpack; this may be a container.
note_archive() {
  if [[ -n ${RUN_DIR:-} ]]; then printf '%s\n' "$1" >>"$RUN_DIR/archives"; fi
}

# local_environment VENV: prints the environment on this node's disk, and unpacks it if it is missing. Prints VENV if this
# job does not use local environments, or if unpacking fails.
local_environment() {
  local environment_archive environment_folder
  if ! local_environment_is_wanted || ! environment_archive="$(local_environment_archive "$1")" ||
    [[ ! -f $environment_archive ]]; then
    printf '%s\n' "$1"
    return
  fi
  environment_folder="$(local_folder)/$(basename "$environment_archive" .tar)"
  if [[ -f $environment_folder.tar ]]; then environment_archive="$environment_folder.tar"; fi # broadcast.sh
  # The folder of the local disks is open to all users.
  if environment_is_safe "$environment_folder" && environment_paths_are_safe inside "$environment_archive" &&
    unpack_environment "$1" "$environment_archive" "$environment_folder"; then
    printf '%s\n' "$environment_folder"
  else
    environment_log "$1 is used from the shared folder: $environment_folder on $(hostname) could not be made"
    printf '%s\n' "$1"
  fi
}

# Makes this user's folder on the local disks, and prints it.
local_folder() {
  mkdir -m 700 "$SCRATCH/venvs-$EUID" 2>/dev/null || true
  printf '%s\n' "$SCRATCH/venvs-$EUID"
}

# local_script SCRIPT: copies a workload's script, its folder and trainkit to this node's disk, and prints the script's
# path there. Prints SCRIPT if this job does not use local environments, or if copying fails.
local_script() {
  local environment_scripts environment_here
  if [[ -z ${SLURM_JOB_ID:-} ]] || ! local_environment_is_wanted; then
    printf '%s\n' "$1"
    return
  fi
  environment_here="$(dirname "$1")"
  environment_scripts="$(local_folder)/scripts/$SLURM_JOB_ID-${START_NUMBER:-0}"
  if environment_is_safe "$environment_scripts" && copy_scripts "$environment_here" "$environment_scripts"; then
    printf '%s/%s/%s\n' "$environment_scripts" "$(basename "$environment_here")" "$(basename "$1")"
  else
    environment_log "$environment_here is used from the shared folder: $environment_scripts on $(hostname) could not be made"
    printf '%s\n' "$1"
  fi
}

# copy_scripts FOLDER TO: copies a workload's folder and trainkit, and renames the copy when it is complete. Other ranks of
# this node wait meanwhile. Copies older than a month are removed.
copy_scripts() {
  local -r environment_copies="$(dirname "$2")"
  mkdir -p "$environment_copies" || return 1
  (
    set -o pipefail
    flock 9 || exit 1
    if [[ -d $2 ]]; then exit; fi
    find "$environment_copies" -mindepth 1 -maxdepth 1 -mtime +30 -exec rm -rf {} +
    rm -rf "$2.partial"
    mkdir -m 755 "$2.partial" &&
      tar --create --dereference --directory "$(dirname "$1")" trainkit "$(basename "$1")" |
      tar --extract --directory "$2.partial" --no-same-owner &&
      mv -T "$2.partial" "$2" && exit
    rm -rf "$2.partial"
    exit 1
  ) 9>"$environment_copies.lock" >&2
}

# unpack_environment VENV ARCHIVE FOLDER: unpacks an environment under another name, and renames it when it is complete.
# Other jobs and ranks of this node wait meanwhile.
unpack_environment() {
  (
    flock 9 || exit 1
    if [[ -d $3 ]]; then exit; fi
    rm -rf "$3.partial"
    mkdir -m 755 "$3.partial" &&
      tar --extract --file "$2" --directory "$3.partial" --no-same-owner &&
      # Programs start with the path of the environment's Python.
      find "$3.partial/bin" -type f -size -64k -exec sed -i "1,3s|$1/bin/|$3/bin/|" {} + &&
      mv -T "$3.partial" "$3" && rm -f "$3.tar" && exit
    rm -rf "$3.partial"
    exit 1
  ) 9>"$3.lock" >&2
}
