#!/usr/bin/env bash
#
# Gives a container the node's EFA software, if the image has none: libfabric, NCCL's plugin for it (aws-ofi-nccl), and
# the libraries of the kernel's verbs, as Enroot's own hook 99-mellanox.sh does for other cards. An image with EFA
# software keeps its own, and only its folders are added to LD_LIBRARY_PATH. It gets NCCL's settings of the node, too.
#
# Called by: enroot, as the user, before a container starts (/etc/enroot/hooks.d; doc/cmd/start.md). Must not fail: the
#   container would not start. Environment: ENROOT_ROOTFS, the container's root; ENROOT_MOUNTS and ENROOT_ENVIRON, files
#   to which it adds lines; TRAINING_ROOT, a folder in the place of / in tests. Prints nothing, since nobody would read it.
#   assets/training/inside.sh prints the software's version in the job's output.
# The node's libraries need a C library as recent as the node's. A much older image cannot load them, and NCCL reports that.
set -euo pipefail
shopt -s nullglob

readonly node="${TRAINING_ROOT:-}" amazon=/opt/amazon
readonly etc="/etc/libibverbs.d"

# mount_in PATH KIND: mounts the node's file or folder at the same path in the container.
mount_in() { printf '%s %s none x-create=%s,bind,ro,nosuid,nodev,private,nofail,silent\n' "$node$1" "$1" "$2" >>"$ENROOT_MOUNTS"; }

# image_library NAME: true if the image has such a library in a usual folder. A container that starts again still has the empty
# files and folders on which this hook mounted.
image_library() {
  local found
  for found in "$ENROOT_ROOTFS"/{usr/,}lib{,64}/{,*-linux-gnu/}"$1"*; do
    if [[ -s $found ]]; then return; fi
  done
  return 1
}

# Adds the libraries between libfabric and the kernel that the image lacks, each where the node has it.
mount_verbs() {
  local library name folder
  for name in libibverbs.so.1 libefa.so.1 libnl-3.so.200 libnl-route-3.so.200; do
    if image_library "$name"; then continue; fi
    for library in "$node"/usr/lib{64,/*-linux-gnu}/"$name"; do
      if [[ ! -e $library ]]; then continue; fi
      mount_in "${library#"$node"}" file
      folder="$(dirname "${library#"$node"}")"
      if [[ ":$folders:" != *":$folder:"* ]]; then folders+=":$folder"; fi
    done
  done
  # libibverbs looks for its drivers in these.
  for library in "$node"/usr/lib{64,/*-linux-gnu}/libibverbs/libefa-*.so; do mount_in "${library#"$node"}" file; done
  if [[ -e $node$etc/efa.driver && ! -s $ENROOT_ROOTFS$etc/efa.driver ]]; then mount_in "$etc/efa.driver" file; fi
}

# Prints the folders of EFA's libraries and of NCCL's plugin below a root: lib on Ubuntu, lib64 on Amazon Linux.
library_folders() {
  local folder
  for folder in "$1$amazon"/efa/lib{,64} "$1$amazon"/{ofi-nccl,aws-ofi-nccl}/lib{,64} \
    "$1$amazon"/{ofi-nccl,aws-ofi-nccl}/lib/*-linux-gnu; do
    if [[ -d $folder ]]; then printf ':%s' "${folder#"$1"}"; fi
  done
}

if [[ -e $node/etc/nccl.conf && ! -s $ENROOT_ROOTFS/etc/nccl.conf ]]; then mount_in /etc/nccl.conf file; fi
cards=("$node"/dev/infiniband/uverbs*)
if ((${#cards[@]} == 0)) || [[ ! -d $node$amazon/efa ]]; then exit 0; fi
if compgen -G "$ENROOT_ROOTFS$amazon/efa/lib*/*" >/dev/null; then
  folders="$(library_folders "$ENROOT_ROOTFS")"
else
  folders="$(library_folders "$node")"
  mount_in "$amazon/efa" dir
  if [[ -e $node$amazon/efa_installed_packages ]]; then mount_in "$amazon/efa_installed_packages" file; fi
  if [[ -d $node$amazon/ofi-nccl ]]; then mount_in "$amazon/ofi-nccl" dir; fi
  mount_verbs
  printf 'CONTAINER_EFA=host\n' >>"$ENROOT_ENVIRON"
fi
own="$(sed -n 's/^LD_LIBRARY_PATH=//p' "$ENROOT_ENVIRON" | tail -n 1)"
# The image's own libraries come first.
printf 'LD_LIBRARY_PATH=%s\n' "${own:+$own}${folders:+${own:+:}${folders#:}}" >>"$ENROOT_ENVIRON"
