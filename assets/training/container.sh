#!/usr/bin/env bash
# shellcheck disable=SC2034,SC2154  # job.slurm's variables
# Imports the image of a job once to shared storage, and runs the job's steps in its container.
#
# Sourced by: job.slurm, as the user, on the job's first node, with container_image.sh and environment.sh; uses its log
#   and die, and its variables training, RUN_DIR, TRAINING_SHARED, TRAINING_VENVS. Defines functions and does nothing by
#   itself. Without CONTAINER_IMAGE, steps run on the nodes themselves.
# Reads: CONTAINER_IMAGE, CONTAINER_MOUNTS (more folders: SRC:DST[:FLAGS],...), ACCELERATOR_KIND, SCRATCH, TRAINING_EFS;
#   ~/.config/enroot/.credentials; the node's enroot, unsquashfs, and Pyxis in its Slurm.
# Writes: $TRAINING_SHARED/images/USER/IMAGE.sqsh, and beside each image that the user may write to IMAGE.sqsh.digest;
#   exports CONTAINER_FILE, CONTAINER_DIGEST (sha256:...) and CONTAINER_BYTES, which reports show.

container_options=() # of srun, the same for each step of the job in its container

# find_container: imports the image unless that is done, and sets container_options.
find_container() {
  if ! wants_container; then return; fi
  check_container_programs
  if [[ $CONTAINER_IMAGE == /* ]]; then
    CONTAINER_FILE="$CONTAINER_IMAGE"
  else
    CONTAINER_FILE="$(image_folder)/$(image_file_name "$CONTAINER_IMAGE")"
    import_image "$(image_uri "$CONTAINER_IMAGE")" "$CONTAINER_FILE"
  fi
  check_image_file "$CONTAINER_FILE"
  CONTAINER_BYTES="$(stat --format %s "$CONTAINER_FILE")"
  CONTAINER_DIGEST="sha256:$(digest_of "$CONTAINER_FILE")" || die "the image $CONTAINER_FILE cannot be read." \
    "Look at it: ls -l $CONTAINER_FILE"
  export CONTAINER_FILE CONTAINER_BYTES CONTAINER_DIGEST
  log "container $CONTAINER_FILE, $((CONTAINER_BYTES >> 20)) MiB, $CONTAINER_DIGEST"
  check_container_environment
  set_container_options
  remove_containers
}

# remove_containers: removes the job's containers from the disks of its nodes, and those of jobs that were killed. The nodes
# are this job's alone. Pyxis calls a container pyxis_NAME, and keeps those with a name, so that preparation and ranks
# share one, which takes minutes to unpack.
remove_containers() {
  if ((${#container_options[@]} == 0)); then return; fi
  # shellcheck disable=SC2016 # the node's shell expands it
  srun --overlap --quiet --mpi=none --ntasks-per-node=1 /bin/bash -c \
    'enroot list | grep "^pyxis_train-" | xargs --no-run-if-empty -n 1 enroot remove --force' >/dev/null 2>&1 || true
}

check_container_programs() {
  local program
  for program in enroot unsquashfs; do
    command -v "$program" >/dev/null || die "$(hostname) has no $program, so it starts no containers." \
      "Take an image of nodes that has it (trainctl verify says; docs/how-to/containers.md), or leave CONTAINER_IMAGE out."
  done
  srun --help 2>&1 | grep -q -- --container-image || die "this Slurm has no --container-image: Pyxis is not enabled." \
    "See the bootstrap's log of the head node (72-enable-containers), or leave CONTAINER_IMAGE out."
}

# image_folder: makes and prints the folder of this user's imported images. An image is code, so nobody else may put one
# there; and a registry that asked for a password may not show its images to all, so others read them if the user lets them.
image_folder() {
  local folder
  folder="$TRAINING_SHARED/images/$(id -un)"
  if [[ ! -d $folder ]]; then mkdir -p "$TRAINING_SHARED/images" && mkdir -m 700 "$folder"; fi ||
    die "$(id -un) cannot make the folder of imported images $folder." \
      "Ask its owner: sudo mkdir -p $TRAINING_SHARED/images && sudo chmod 1777 $TRAINING_SHARED/images"
  [[ $(stat --format %u "$folder") == "$EUID" ]] ||
    die "the folder of your imported images, $folder, belongs to $(stat --format %U "$folder")." \
      "Have it removed, or import the image elsewhere and name the file: CONTAINER_IMAGE=/folder/image.sqsh sbatch ..."
  printf '%s\n' "$folder"
}

# import_image URI FILE: one job of the user at a time imports an image; the others wait, and find it.
import_image() {
  local -i lock
  if [[ -f $2 ]]; then
    log "the image is imported already, on $(date -r "$2" +%F); to import it anew: rm $2"
    return
  fi
  check_registry "$CONTAINER_IMAGE"
  exec {lock}>>"$2.lock"
  if ! flock --nonblock "$lock"; then
    log "another job imports $1: waiting for it"
    flock "$lock"
  fi
  if [[ ! -f $2 ]]; then
    log "importing $1 (minutes, once)"
    if ((SLURM_JOB_NUM_NODES > 2)); then
      log "$((SLURM_JOB_NUM_NODES - 1)) nodes wait for it; next time import first: PREPARE_ONLY=1 sbatch --nodes 1 ..."
    fi
    rm -f "$2".partial.*
    import_with_progress "$1" "$2.partial.$SLURM_JOB_ID" || {
      rm -f "$2.partial.$SLURM_JOB_ID"
      die "the image $CONTAINER_IMAGE was not imported: see the lines of enroot above." \
        "Is its name right? Does its registry ask for a password (trainctl registry login $(image_registry "$CONTAINER_IMAGE"))? \
trainctl diagnose knows most messages."
    }
    mv -T "$2.partial.$SLURM_JOB_ID" "$2"
  fi
  exec {lock}>&-
}

# import_with_progress URI FILE
import_with_progress() {
  local importer status=0 began="$SECONDS"
  enroot import --output "$2" "$1" </dev/null &
  importer=$!
  trap 'kill "$importer" 2>/dev/null || true' TERM
  while kill -0 "$importer" 2>/dev/null; do
    sleep 1
    if (((SECONDS - began) % ${IMPORT_NEWS_S:-30} == 0)); then
      log "importing for $((SECONDS - began)) s: $(du --block-size=1M "$2" 2>/dev/null | cut -f 1 || true) MiB of the image are written"
    fi
  done
  wait "$importer" || status=$?
  trap - TERM
  return "$status"
}

# check_registry NAME: Amazon's registry takes the nodes' role, with a token of 12 hours that enroot fetches at each import.
check_registry() {
  local registry version
  registry="$(image_registry "$1")"
  if [[ ! $registry =~ ^[0-9]{12}\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?$ ]]; then return; fi
  version="$(enroot version 2>/dev/null)" || version=""
  if [[ $version == [0-3].* ]]; then
    die "Enroot $version on $(hostname) cannot read images of Amazon ECR, which takes 4.0 or newer." \
      "Take a newer image of the nodes (-c image=official), or import the image elsewhere and name the file."
  fi
  bash "$training/registry.sh" add-ecr "$registry"
}

check_image_file() {
  [[ -f $1 && -r $1 ]] || die "there is no image $1 that $(id -un) can read." \
    "Look: ls -l $(dirname "$1"); or name an image of a registry: CONTAINER_IMAGE=nvcr.io/nvidia/pytorch:25.09-py3 sbatch ..."
  [[ $(head -c 4 "$1" | tr -d '\0') == hsqs ]] || die "$1 is not a squashfs image." \
    "Make one: enroot import --output $1 docker://IMAGE"
  case $1 in
    "$TRAINING_SHARED"/*) ;;
    /tmp/* | /var/* | /dev/* | "${SCRATCH:-/scratch}"/*)
      die "the image $1 is on this node's own disk, and other nodes have not got it." \
        "Copy it: cp $1 $TRAINING_SHARED/images/"
      ;;
  esac
  if [[ ! $(stat --format %U "$1") =~ ^(root|$(id -un)|$(environment_cluster_user))$ ]]; then
    log "the image $1 belongs to $(stat --format %U "$1"), whose programs now run as $(id -un)"
  fi
}

# digest_of FILE: prints its sha256, which is computed once for each content: it takes minutes for tens of gigabytes.
digest_of() {
  local -r kept="$1.digest"
  local state sum
  state="$(stat --format '%s %Y' "$1")" || return 1
  if [[ -r $kept && $(stat --format %u "$kept" 2>/dev/null) == "$(stat --format %u "$1")" ]]; then
    read -r sum _ <"$kept" || true
    if [[ $(<"$kept") == "$sum $state" ]]; then
      printf '%s\n' "$sum"
      return
    fi
  fi
  log "computing the digest of $1 (once)"
  sum="$(sha256sum "$1")" || return 1
  sum="${sum%% *}"
  if [[ -O $1 && -w $(dirname "$1") ]]; then
    printf '%s %s\n' "$sum" "$state" >"$kept.$$" && mv -T "$kept.$$" "$kept"
  fi
  printf '%s\n' "$sum"
}

# check_container_environment: the container cannot tell whose folders these are: all owners but the user are nobody there.
check_container_environment() {
  local environment
  environment="$(container_environment "$training/$workload")" && environment_is_safe "$environment" || exit 1
}

set_container_options() {
  local mounts="" folder
  for folder in "$TRAINING_SHARED" "$TRAINING_VENVS" "${TRAINING_EFS:-/efs}" "${SCRATCH:-}"; do
    if [[ -n $folder && -d $folder && ",$mounts" != *",$folder:"* ]]; then mounts+="$folder:$folder,"; fi
  done
  # The older name of the shared folder, where it is linked.
  if [[ -L /lustre ]]; then mounts+="$TRAINING_SHARED:/lustre,"; fi
  mounts+="${CONTAINER_MOUNTS:-}"
  # Enroot's hook: images of NVIDIA ask for GPUs wherever they run, others ask nowhere.
  if [[ ${ACCELERATOR_KIND:-none} == gpu && ${DEVICE:-cuda} != cpu ]]; then
    export NVIDIA_VISIBLE_DEVICES="${NVIDIA_VISIBLE_DEVICES:-all}"
    export NVIDIA_DRIVER_CAPABILITIES="${NVIDIA_DRIVER_CAPABILITIES:-compute,utility}"
  else
    export NVIDIA_VISIBLE_DEVICES=void
  fi
  EFA_FLOOR="$(sed -n "s/^\(export \)\?EFA_INSTALLER_FLOOR_VERSION=//p" \
    "${TRAINING_OPT:-/opt/training-cluster}/bundles/current/versions.env" 2>/dev/null | tr -d "'\"")" || true
  export EFA_FLOOR
  container_options=(
    --container-image="$CONTAINER_FILE" --container-name="train-$SLURM_JOB_ID-${SLURM_RESTART_COUNT:-0}"
    --container-mounts="${mounts%,}"
    --container-workdir="$RUN_DIR" --container-writable --no-container-mount-home --no-container-remap-root
  )
}

# names_of_job: prints the variables of the job that count in the container although its image sets them, with commas:
# all but those that name places and programs of a node.
names_of_job() {
  local name
  compgen -e | grep -Ev '^(PATH|HOME|USER|LOGNAME|SHELL|PWD|OLDPWD|SHLVL|TERM|LANG|LANGUAGE|TMPDIR|HOSTNAME|MAIL|_)$' |
    grep -Ev '^(LC|LD|PYTHON|PIP|CONDA|XDG|SSH|SUDO|BASH|SLURM|SPANK|NVIDIA|ENROOT|PYXIS)_?|_(HOME|PATH|VERSION)$' |
    while read -r name; do
      # enroot keeps variables in lines.
      if [[ $name =~ ^[A-Za-z_][A-Za-z0-9_]*$ && ${!name} != *$'\n'* ]]; then printf '%s\n' "$name"; fi
    done | paste -sd ,
}

# set_program: sets `container` to the options of srun for a step with the present variables, `program` to what runs a
# script in it, and `one_node` to the command that runs it once, on this node.
set_program() {
  container=() program=(bash) one_node=()
  if ! wants_container; then return; fi
  container=("${container_options[@]}" --container-env="$(names_of_job)")
  # srun would look for bash on the node, and ask the container for that path.
  program=(/bin/bash "$training/inside.sh")
  one_node=(srun --nodes=1 --ntasks=1 --nodelist="$SLURMD_NODENAME" --mpi=none --overlap "${container[@]}")
}
