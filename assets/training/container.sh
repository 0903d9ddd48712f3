#!/usr/bin/env bash
# shellcheck disable=SC2034,SC2154  # job.slurm's variables
# Imports a job's image once to shared storage, and runs the job's steps in its container.
#
# Sourced by: job.slurm, as the user, on the job's first node, with container_image.sh and environment.sh; uses its log
#   and die, and its variables training, RUN_DIR, TRAINING_SHARED, TRAINING_VENVS. Defines functions and does nothing by
#   itself. Without CONTAINER_IMAGE, steps run on the nodes themselves.
# Reads: CONTAINER_IMAGE, CONTAINER_MOUNTS (more folders: SRC:DST[:FLAGS],...), ACCELERATOR_KIND, SCRATCH, TRAINING_EFS;
#   ~/.config/enroot/.credentials; the node's enroot, unsquashfs, and Pyxis in its Slurm, whose settings are in TRAINING_ETC.
# Writes: $TRAINING_SHARED/images/USER/IMAGE.sqsh, and beside each image that the user may write to IMAGE.sqsh.digest;
#   exports CONTAINER_FILE, CONTAINER_DIGEST (sha256:...) and CONTAINER_BYTES, which reports show.

container_options=() # options of srun for every step of the job in its container

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
  export CONTAINER_FILE CONTAINER_BYTES CONTAINER_DIGEST JOB_OMP_NUM_THREADS="${OMP_NUM_THREADS:-}"
  log "container $CONTAINER_FILE, $((CONTAINER_BYTES >> 20)) MiB, $CONTAINER_DIGEST"
  check_container_environment
  set_container_options
  if is_mounted; then
    log "its image is mounted; what a step writes outside of the mounted folders is lost at the step's end"
    return
  fi
  log "each node unpacks its image, since Enroot mounts none here (it needs squashfuse, Enroot 4 and Pyxis 0.22)"
  container_options+=(--container-name="$(container_name)")
  CONTAINER_MARKS="$RUN_DIR/containers/$(container_name)" # inside.sh
  export CONTAINER_MARKS
  mkdir -p "$CONTAINER_MARKS"
}

# is_mounted: true if Pyxis mounts images instead of unpacking them (72-enable-containers.sh), as it does for containers without
# a name.
is_mounted() { grep -qs ' use_squashfuse=1' "$TRAINING_ETC/pyxis.conf"; }

# remove_partial_containers: before a restart on the same nodes, removes containers in which no program has begun: their
# unpacking may have been killed, and Pyxis would use what is there.
remove_partial_containers() {
  if [[ -z ${CONTAINER_MARKS:-} ]]; then return; fi
  step_on "${well[@]}"
  # shellcheck disable=SC2016 # the node's shell expands it
  "${each_node[@]}" /bin/bash -c '[[ -e $1/$SLURMD_NODENAME ]] || enroot remove --force "pyxis_$2"' remove \
    "$CONTAINER_MARKS" "$(container_name)" >/dev/null 2>&1 || true
}

container_name() { printf 'train-%s-%s' "$SLURM_JOB_ID" "${SLURM_RESTART_COUNT:-0}"; }

check_container_programs() {
  local program
  for program in enroot unsquashfs; do
    command -v "$program" >/dev/null || die "$(hostname) has no $program, so it starts no containers." \
      "Use a node image that has it (trainctl verify checks; docs/how-to/containers.md), or leave CONTAINER_IMAGE out."
  done
  srun --help 2>&1 | grep -q -- --container-image || die "this Slurm has no --container-image: Pyxis is not enabled." \
    "See the bootstrap's log of the head node (72-enable-containers), or leave CONTAINER_IMAGE out."
}

# image_folder: creates and prints the folder of this user's imported images. An image is code, so nobody else may write
# there. An image of a private registry is not for everyone, so other users read it only if the user allows that.
image_folder() {
  local folder
  folder="$TRAINING_SHARED/images/$(id -un)"
  if [[ ! -d $folder ]]; then mkdir -p "$TRAINING_SHARED/images" && mkdir -m 700 "$folder"; fi ||
    die "$(id -un) cannot make the folder of imported images $folder." \
      "Ask its owner: sudo mkdir -p $TRAINING_SHARED/images && sudo chmod 1777 $TRAINING_SHARED/images"
  [[ $(stat --format %u "$folder") == "$EUID" ]] ||
    die "the folder of your imported images, $folder, belongs to $(stat --format %U "$folder")." \
      "Have it removed, or import the image elsewhere and give the file: CONTAINER_IMAGE=/folder/image.sqsh sbatch ..."
  printf '%s\n' "$folder"
}

# import_image URI FILE: one job of the user imports an image at a time; the others wait and then find it.
import_image() {
  local told=""
  local -i lock
  if [[ -f $2 ]]; then
    log "the image was imported on $(date -r "$2" +%F); to import it again: rm $2"
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
      if [[ -n $told ]]; then exit 143; fi # as a SIGTERM ends the rest of the preparation
      die "the image $CONTAINER_IMAGE was not imported: see the lines of enroot above." \
        "Is its name correct? Does its registry require a password (trainctl registry login $(image_registry "$CONTAINER_IMAGE"))? \
trainctl diagnose explains most messages."
    }
    mv -T "$2.partial.$SLURM_JOB_ID" "$2"
  fi
  exec {lock}>&-
}

# import_with_progress URI FILE: sets the caller's `told` at a SIGTERM.
import_with_progress() {
  local importer status=0 began="$SECONDS" news="${IMPORT_NEWS_S:-30}"
  enroot import --output "$2" "$1" </dev/null &
  importer=$!
  trap 'told=yes; kill "$importer" 2>/dev/null || true' TERM
  while kill -0 "$importer" 2>/dev/null; do
    sleep "${IMPORT_LOOK_S:-1}"
    if ((SECONDS - began >= news)); then
      news=$((SECONDS - began + ${IMPORT_NEWS_S:-30}))
      log "importing for $((SECONDS - began)) s: $(du --block-size=1M "$2" 2>/dev/null | cut -f 1 || true) MiB of the image are written"
    fi
  done
  wait "$importer" || status=$?
  trap - TERM
  return "$status"
}

# check_registry NAME: Amazon ECR accepts the job's rights in AWS, with a token of 12 hours that enroot fetches at each import.
check_registry() {
  local registry version
  registry="$(image_registry "$1")"
  if [[ ! $registry =~ ^[0-9]{12}\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?$ ]]; then return; fi
  version="$(enroot version 2>/dev/null)" || version=""
  if [[ $version == [0-3].* ]]; then
    die "Enroot $version on $(hostname) cannot read images of Amazon ECR, which requires Enroot 4.0 or newer." \
      "Use a newer node image (-c image=official), or import the image elsewhere and give the file."
  fi
  bash "$training/registry.sh" add-ecr "$registry"
}

check_image_file() {
  [[ -f $1 && -r $1 ]] || die "there is no image $1 that $(id -un) can read." \
    "Look: ls -l $(dirname "$1"); or give an image of a registry: CONTAINER_IMAGE=nvcr.io/nvidia/pytorch:25.09-py3 sbatch ..."
  [[ $(head -c 4 "$1" | tr -d '\0') == hsqs ]] || die "$1 is not a squashfs image." \
    "Make one: enroot import --output $1 docker://IMAGE"
  case $1 in
    "$TRAINING_SHARED"/*) ;;
    /tmp/* | /var/* | /dev/* | "${SCRATCH:-/scratch}"/*)
      die "the image $1 is on this node's own disk, which other nodes cannot read." \
        "Copy it: cp $1 $TRAINING_SHARED/images/"
      ;;
  esac
  if environment_is_imported "$(realpath "$1")"; then
    log "the image $1 is in $TRAINING_SHARED/datasets, where every job can write by the bucket; its programs now run as $(id -un)"
  elif [[ ! $(stat --format %U "$1") =~ ^(root|$(id -un)|$(environment_cluster_user))$ ]]; then
    log "the image $1 belongs to $(stat --format %U "$1"), whose programs now run as $(id -un)"
  fi
}

# digest_of FILE: prints its sha256, which is computed once for each content, since tens of gigabytes take minutes.
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

# check_container_environment: checks the folders' owners outside, since a container shows all owners but the user as nobody.
check_container_environment() {
  local environment
  environment="$(container_environment "$training/$workload")" && environment_is_safe "$environment" || exit 1
}

set_container_options() {
  local mounts="" folder
  for folder in "$TRAINING_SHARED" "$TRAINING_VENVS" "${TRAINING_EFS:-/efs}" "${SCRATCH:-}"; do
    if [[ -n $folder && -d $folder && ",$mounts" != *",$folder:"* ]]; then mounts+="$folder:$folder,"; fi
  done
  # The older name of the shared folder, if it is a link.
  if [[ -L /lustre ]]; then mounts+="$TRAINING_SHARED:/lustre,"; fi
  mounts+="${CONTAINER_MOUNTS:-}"
  # For Enroot's hook: images of NVIDIA request GPUs on any node, other images on none.
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
    --container-image="$CONTAINER_FILE" --container-mounts="${mounts%,}"
    --container-workdir="$RUN_DIR" --container-writable --no-container-mount-home --no-container-remap-root
  )
}

# names_of_job: prints, separated by commas, the job's variables that override the image's: all but those that name
# paths and programs of a node.
names_of_job() {
  local name
  compgen -e | grep -Ev '^(PATH|HOME|USER|LOGNAME|SHELL|PWD|OLDPWD|SHLVL|TERM|LANG|LANGUAGE|TMPDIR|HOSTNAME|MAIL|_)$' |
    grep -Ev '^(LC|LD|PYTHON|PIP|CONDA|XDG|SSH|SUDO|BASH|SLURM|SPANK|NVIDIA|ENROOT|PYXIS)_?|_(HOME|PATH|VERSION)$' |
    while read -r name; do
      # enroot stores one variable per line.
      if [[ $name =~ ^[A-Za-z_][A-Za-z0-9_]*$ && ${!name} != *$'\n'* ]]; then printf '%s\n' "$name"; fi
    done | paste -sd ,
}

# set_program: sets `container` to the options of srun for a step with the current variables, `program` to the command
# that runs a script in it, and `one_node` to the command that runs it once, on this node.
set_program() {
  container=() program=(bash) one_node=()
  if ! wants_container; then return; fi
  container=("${container_options[@]}" --container-env="$(names_of_job)")
  # srun would find bash on the node, and use that path in the container.
  program=(/bin/bash "$training/inside.sh")
  one_node=(srun --nodes=1 --ntasks=1 --nodelist="$SLURMD_NODENAME" --mpi=none --overlap "${container[@]}")
}
