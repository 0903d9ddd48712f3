#!/usr/bin/env bash
# shellcheck disable=SC2154  # job.slurm's variables
# Copies the packed environment and the container's image to the local disks of a job's nodes. The shared file system is read
# once: Slurm's sbcast passes each block on from node to node, in a tree of width 8.
#
# Sourced by: job.slurm, as the user, on the job's first node; uses its log and use_nodes and step_on of nodes.sh, and its
#   variables RUN_DIR, CONTAINER_FILE, CONTAINER_DIGEST, container_options. Run by: job.slurm through srun, on each node:
#   broadcast.sh take NAME BYTES | send FILE NAME
# Reads: $RUN_DIR/archives, which local_environment.sh writes; SCRATCH (the folder of the local disks).
# Writes: $SCRATCH/venvs-UID/NAME: ENVIRONMENT.SUM.tar, IMAGE.DIGEST.sqsh; until it is whole, NAME.JOB.sbcast (epilog.sh removes
#   what is left of it).
#
# sbcast sends to all nodes of a step, writes as the user, and ends at the first block that a node does not take. A copy of
# the right size is whole, since blocks come in order, and Slurm checks a hash of each message (hash/k12).

declare -A given=() # "NAME NODE" for each node that has a file

# broadcast_files: gives the nodes of the next start the files that they all read.
broadcast_files() {
  local archive image
  if [[ -f $RUN_DIR/archives ]]; then
    while read -r archive; do broadcast "$archive" "${archive##*/}" || true; done <"$RUN_DIR/archives"
  fi
  if ((${#container_options[@]} == 0)); then return; fi
  image="${CONTAINER_FILE##*/}"
  image="${image%.*}.${CONTAINER_DIGEST:7:12}.sqsh"
  container_options[0]="--container-image=$CONTAINER_FILE"
  if broadcast "$CONTAINER_FILE" "$image"; then container_options[0]="--container-image=$SCRATCH/venvs-$EUID/$image"; fi
}

# broadcast FILE NAME: succeeds if all nodes of the next start have the file as NAME; otherwise it logs why not.
broadcast() {
  local why="" said
  local -i bytes began
  if all_have "$2"; then return; fi
  bytes="$(stat --format %s "$1")" || return 1
  if ((NNODES == 1)); then
    why="one node trains"
  elif [[ -z ${SCRATCH:-} ]]; then
    why="the nodes have no local disks"
  else
    take "$2" "$bytes"
    if all_have "$2"; then return; fi
  fi
  if [[ -z $why ]]; then
    clock
    began=now
    if said="$("${each_node[@]}" --wait=0 bash "$training/broadcast.sh" send "$1" "$2" 2>&1 </dev/null)"; then
      take "$2" "$bytes"
      clock
    else
      why="${said%%$'\n'*}"
    fi
  fi
  if [[ -z $why ]] && all_have "$2"; then
    log "copied $1 ($((bytes >> 20)) MiB) to the local disks of ${#well[@]} nodes in $(((now - began) / 100)) s (sbcast)"
  else
    log "each node reads $1 ($((bytes >> 20)) MiB) from the shared file system: ${why:-see the lines above}"
    return 1
  fi
}

# all_have NAME: true if all nodes of the next start have the file.
all_have() {
  local node
  for node in ${NODES//,/ }; do [[ -v given["$1 $node"] ]] || return; done
}

# take NAME BYTES: asks the nodes for the file, of which they complete what sbcast has sent; sets `given`, and the caller's `why`
# if a node takes no file.
take() {
  local node said
  step_on "${well[@]}"
  while read -r node said; do
    case $said in
      has) given["$1 $node"]=1 ;;
      lacks) ;;
      *) why="$node $said" ;;
    esac
  done < <(timeout "${CHECK_S:-75}" "${each_node[@]}" bash "$training/broadcast.sh" take "$1" "$2" </dev/null)
}

# take_here NAME BYTES: prints the name of this node, and `has`, `lacks`, or why it takes no file. An environment that was unpacked
# stands for its archive.
take_here() {
  local -r part="$1.$SLURM_JOB_ID.sbcast"
  local said=lacks
  if ! cd "$(local_folder)" || ! environment_is_safe "$PWD"; then
    said="has no folder of your own in $SCRATCH"
  else
    if [[ $(stat --format %s "$part" 2>/dev/null) == "$2" ]]; then mv -T "$part" "$1"; fi
    if [[ -d ${1%.tar} || $(stat --format %s "$1" 2>/dev/null) == "$2" ]]; then
      said=has
    elif (($(df --output=avail --block-size=1 . | tail -n 1) < 4 * $2)); then # an image unpacks to two to three times its size
      said="has no room for it in $SCRATCH"
    fi
  fi
  printf '%s %s\n' "$SLURMD_NODENAME" "$said"
}

# send FILE NAME: sends a file to the nodes of this step, from one of them. A node of the job that is silent, and that Slurm
# does not yet hold for lost, is not among them.
send() {
  if ((SLURM_PROCID)); then return; fi
  sbcast --force --send-libs=no "--jobid=$SLURM_JOB_ID.$SLURM_STEP_ID" "$1" "$SCRATCH/venvs-$EUID/$2.$SLURM_JOB_ID.sbcast"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  # shellcheck source=assets/training/environment.sh
  source "$(dirname "$0")/environment.sh"
  case $1 in
    take) take_here "${@:2}" ;;
    send) send "${@:2}" ;;
  esac
fi
