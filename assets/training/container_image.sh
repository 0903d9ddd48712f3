#!/usr/bin/env bash
# Checks and translates the name of a container image, before anything is downloaded.
#
# Sourced by: job_settings.sh and container.sh, as the user, on a laptop or a node. Defines functions and does nothing by
#   itself; uses die of the script that sources it.
# Reads: CONTAINER_IMAGE, CONTAINER_MOUNTS, LAUNCHER.
#
# A name is a path of a squashfs file (/fsx/images/mine.sqsh), or an image of a registry as Docker or as Enroot writes it:
#   [docker://][USER@][REGISTRY/ or REGISTRY#]IMAGE[:TAG][@sha256:DIGEST]
# Without a registry it is an image of Docker Hub.

# True if the job requests a container.
wants_container() { [[ -n ${CONTAINER_IMAGE:-} ]]; }

# check_container: refuses an invalid image name, and settings that exclude a container.
check_container() {
  local -r types='Type nvcr.io/nvidia/pytorch:25.09-py3, or the path of a file: CONTAINER_IMAGE=/fsx/images/mine.sqsh sbatch ...'
  local what shown="${CONTAINER_IMAGE:-}"
  if ! wants_container; then
    [[ -z ${CONTAINER_MOUNTS:-} ]] || die "CONTAINER_MOUNTS is set, and CONTAINER_IMAGE is not." "$types"
    return
  fi
  # Remove a password, which must not appear in the job's output.
  if [[ $shown == *:*@* && $shown != *@sha256:* ]]; then shown="...@${shown##*@}"; fi
  what="$(wrong_image_name)" || die "CONTAINER_IMAGE is '$shown', which $what." "$types"
  [[ ${LAUNCHER:-} != @(mpirun|sweep) ]] || die "$LAUNCHER starts its ranks outside of containers." \
    "Take another launcher: LAUNCHER=srun sbatch ..."
  [[ -z ${CONTAINER_MOUNTS:-} || $CONTAINER_MOUNTS =~ ^/[^:,]+:/[^:,]+(:[a-z+]+)?(,/[^:,]+:/[^:,]+(:[a-z+]+)?)*$ ]] ||
    die "CONTAINER_MOUNTS is '$CONTAINER_MOUNTS', which is not a list of FOLDER:FOLDER-IN-THE-CONTAINER." \
      "Type it like this: CONTAINER_MOUNTS=/fsx/tools:/tools,/home/me/src:/src:ro sbatch ..."
}

# wrong_image_name: if CONTAINER_IMAGE is not an image name, prints the end of a sentence with the reason and fails.
wrong_image_name() {
  local -r name="${CONTAINER_IMAGE#docker://}"
  case $CONTAINER_IMAGE in
    *[[:space:]]*) printf 'has a blank in it' ;;
    *[[:cntrl:],\"\'\\\$\`]*) printf 'has a character that an image name cannot have' ;;
    http://* | https://*) printf 'is the address of a page: a registry has no %s here' "${CONTAINER_IMAGE%%://*}://" ;;
    dockerd://* | podman://*) printf 'is an image of a Docker daemon, which no node has: push it to a registry' ;;
    docker://*) wrong_reference "$name" && return ;;
    *://*) printf 'begins with %s://, which is none of: docker://' "${CONTAINER_IMAGE%%://*}" ;;
    *Dockerfile) printf 'is a recipe: build the image elsewhere (docker build) and push it to a registry' ;;
    localhost/*) printf 'is an image of one machine (podman shows such names): push it to a registry' ;;
    /*.sqsh | /*.squashfs) return 0 ;;
    /*) printf 'is a path that does not end with .sqsh: an archive is imported with enroot first' ;;
    *.sqsh | *.squashfs) printf 'is a file without its whole path, which begins with /' ;;
    *) wrong_reference "$name" && return ;;
  esac
  return 1
}

# wrong_reference NAME: if NAME is not an image of a registry, prints the end of a sentence with the reason and fails.
wrong_reference() {
  local user registry image tag digest
  split_reference "$1"
  if [[ -n $digest && ! $digest =~ ^sha256:[0-9a-f]{64}$ ]]; then
    printf 'has a digest that is not sha256: and 64 digits of 0-9a-f'
  elif [[ $user == *:* ]]; then
    printf 'has a password in it, which logs would show: trainctl registry login stores it'
  elif [[ -n $registry && ! $registry =~ ^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]+)?$ ]]; then
    printf 'has "%s" where the host name of a registry belongs' "$registry"
  elif [[ $registry == *.dkr.ecr.* && ! $registry =~ ^[0-9]{12}\. ]]; then
    printf 'is in an ECR whose host does not begin with the 12 digits of an account'
  elif [[ -z $registry && $image == *.* && $image != */* ]]; then
    printf 'is the host name of a registry without an image, or a file without its path'
  elif [[ -n $user && -z $registry && $image != */* ]]; then
    printf 'has "%s" after the @, where sha256: and 64 digits belong, or an image of the user before it' "$image"
  elif [[ $image =~ [A-Z] ]]; then
    printf 'has capital letters, which a repository cannot have (a tag can)'
  elif [[ ! $image =~ ^[a-z0-9]+([._/-]+[a-z0-9]+)*$ ]]; then
    printf 'has "%s" where the name of a repository belongs' "$image"
  elif [[ -n $tag && ! $tag =~ ^:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$ ]]; then
    printf 'has "%s" where one :TAG belongs' "$tag"
  else
    return 0
  fi
  return 1
}

# split_reference NAME: sets the caller's user, registry (empty: Docker Hub), image, tag (with its colon) and digest.
split_reference() {
  local rest="$1"
  user="" registry="" tag="" digest=""
  if [[ $rest == *@sha* ]]; then digest="${rest##*@}" rest="${rest%@*}"; fi
  if [[ $rest == *@* ]]; then user="${rest%%@*}" rest="${rest#*@}"; fi
  if [[ $rest == *'#'* ]]; then
    registry="${rest%%#*}" rest="${rest#*#}"
  elif [[ $rest == */* && ${rest%%/*} == *[.:]* ]]; then
    registry="${rest%%/*}" rest="${rest#*/}"
  fi
  # Releases of Enroot before 4.1 would contact these hosts, which are not registries.
  if [[ $registry == @(index.|registry-1.|)docker.io ]]; then registry=""; fi
  if [[ $rest == *:* ]]; then tag=":${rest#*:}" rest="${rest%%:*}"; fi
  image="$rest"
}

# image_uri NAME: prints the name in a form that every release of Enroot accepts.
image_uri() {
  local user registry image tag digest
  split_reference "${1#docker://}"
  # A digest makes the tag redundant, and older releases do not accept both.
  if [[ -n $digest ]]; then tag="@$digest"; fi
  printf 'docker://%s%s%s%s\n' "${user:+$user@}" "${registry:+$registry#}" "$image" "$tag"
}

# image_file_name NAME: prints the name of the file into which this image is imported.
image_file_name() {
  local user registry image tag digest
  split_reference "${1#docker://}"
  tag="${tag:-:latest}"
  if [[ -n $digest ]]; then tag=":${digest#*:}"; fi
  printf '%s.sqsh\n' "$(tr '/:' '++' <<<"${registry:+$registry/}$image$tag")"
}

# image_registry NAME: prints the host name of the image's registry.
image_registry() {
  local user registry image tag digest
  split_reference "${1#docker://}"
  printf '%s\n' "${registry:-registry-1.docker.io}"
}
