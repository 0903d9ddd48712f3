#!/usr/bin/env bash
#
# Enables containers in jobs (`srun --container-image=...`): ParallelCluster's images have Enroot and Pyxis, disabled,
# with example settings.
#
# A node with Enroot gets Enroot's settings. Images and unpacked containers are stored on mounted local NVMe disks, or on
# the root volume if there are none; ParallelCluster's example keeps them in memory. Enroot creates a user's folders and
# their parents with mode 700, so this step creates the parents for all users: otherwise the first user would lock out the
# others. A user's registry passwords are in the home directory, which all nodes share (trainctl registry login). A hook
# mounts the node's EFA software in containers whose image has none. If AppArmor forbids users to create namespaces, as on
# Ubuntu 24.04, this step disables that restriction, as Enroot requires and ParallelCluster's own tests do.
#
# A node with Pyxis, Slurm's plug-in, gets a local file with the plug-in's line, which the shared plugstack.conf
# includes. The line has `required`: with `optional` Slurm would ignore a failure of Pyxis, and run the program outside
# of the container. In the shared file, `required` would prevent a node without Pyxis from joining the cluster. Pyxis is
# enabled without Enroot too: a container then fails to start. On a node without Pyxis the head node's plug-in still
# accepts `--container-image`, but Slurm ignores it on the node and runs the program on the host; 43-install-pyxis.sh
# makes sure that no such node exists. Pyxis's container_scope=job is not set: its epilog would call Enroot after every
# job, and Slurm drains a node whose epilog fails, such as a node without Enroot.
#
# Where Pyxis and Enroot can mount an image (squashfuse) instead of unpacking it, Pyxis does so for containers without a name.
#
# Called by: run-steps.sh, as root. Environment: NODE_TYPE, RECIPE, PARTITION, BUNDLE, TRAINING_ETC,
#   TRAINING_ROOT. Safe to run again.
# Required: no
# Budget: 25 s
# Reads: bootstrap/enroot/97-efa.sh
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/put.sh"

readonly EXAMPLES="$TRAINING_ROOT/opt/parallelcluster/examples" ETC="$TRAINING_ROOT/opt/slurm/etc"
readonly OWN="$TRAINING_ETC/pyxis.conf" PLUGIN=/usr/local/lib/slurm/spank_pyxis.so
readonly INCLUDE='include /opt/slurm/etc/plugstack.conf.d/*'
export PATH="$PATH:/opt/slurm/bin"

# Prints the folder for large files: on the local disks of the node, if they are mounted.
storage() {
  local SCRATCH=""
  if [[ -n $PARTITION ]]; then
    # shellcheck source=/dev/null
    source "$TRAINING_ETC/partitions/$PARTITION.env"
  fi
  if [[ -n $SCRATCH ]] && mountpoint --quiet "$TRAINING_ROOT$SCRATCH"; then
    printf '%s/enroot\n' "$SCRATCH"
  else
    printf '/var/enroot\n'
  fi
}

# example FILE: prints the lines of ParallelCluster's example; nothing on an image without it.
example() { grep -vE '^[[:space:]]*(#|$)' "$EXAMPLES/$1" 2>/dev/null || true; }

# /run is empty after a boot. Pyxis creates its own folder when slurmd loads it, which may be later.
create_run_folders() {
  local -r file="$TRAINING_ROOT/etc/tmpfiles.d/training-cluster-containers.conf"
  put "$file" <<'END'
# Training Cluster: steps/72-enable-containers.sh
d /run/enroot 1777 root root -
d /run/enroot/runtime 1777 root root -
d /run/pyxis 0755 root root -
END
  systemd-tmpfiles --create "$file"
}

# own FOLDER: prints an expression that Enroot evaluates: to the user's folder in FOLDER, or, if another user created that
# folder, to a path that cannot be created. Enroot itself does not check the owner, who could change the programs of the
# containers in it.
own() {
  # shellcheck disable=SC2016  # for Enroot
  printf '$(f=%s/user-$(id -u); mkdir -m 700 $f 2>/dev/null || :; [ ! -L $f ] && [ -O $f ] && echo $f || %s)\n' "$1" \
    'echo /dev/null$f-belongs-to-another-user'
}

configure_enroot() {
  local -r large="$1"
  local folder hook rest
  # Every user may create a folder, and only the owner may delete it.
  for folder in "$large" "$large"/{data,cache,tmp}; do
    install -d -m 1777 "$TRAINING_ROOT$folder"
  done
  rest="$(example enroot/enroot.conf | grep -vE '^ENROOT_(RUNTIME|DATA|CACHE|CONFIG|TEMP)_PATH')" || rest=""
  put "$TRAINING_ROOT/etc/enroot/enroot.conf" <<END
# Training Cluster: steps/72-enable-containers.sh, from ParallelCluster's example
ENROOT_RUNTIME_PATH $(own /run/enroot/runtime)
ENROOT_DATA_PATH $(own "$large/data")
ENROOT_CACHE_PATH $(own "$large/cache")
ENROOT_TEMP_PATH $large/tmp
ENROOT_CONFIG_PATH \${HOME:-\$(echo ~)}/.config/enroot
$rest
END
  put "$TRAINING_ROOT/etc/enroot/hooks.d/97-efa.sh" 755 <"$BUNDLE/bootstrap/enroot/97-efa.sh"
  # These hooks give PMI and PyTorch in a container their rank: the Ubuntu images enable them, Amazon Linux does not.
  for hook in 50-slurm-pmi.sh 50-slurm-pytorch.sh; do
    if [[ -e $TRAINING_ROOT/usr/share/enroot/hooks.d/$hook ]]; then
      mkdir -p "$TRAINING_ROOT/etc/enroot/hooks.d"
      ln -sfn "/usr/share/enroot/hooks.d/$hook" "$TRAINING_ROOT/etc/enroot/hooks.d/$hook"
    fi
  done
}

allow_user_namespaces() {
  local -r setting=kernel.apparmor_restrict_unprivileged_userns
  local -r file="$TRAINING_ROOT/etc/sysctl.d/99-training-cluster-containers.conf"
  if [[ ! -e $TRAINING_ROOT/proc/sys/${setting//.//} ]]; then return; fi
  put "$file" <<<"$setting = 0"
  sysctl --quiet --load="$file"
}

has_enroot() { [[ -e $TRAINING_ROOT/usr/bin/enroot ]]; }
has_pyxis() { [[ -e $TRAINING_ROOT$PLUGIN ]]; }

# Enroot 3 would need fuse-overlayfs, too. An older Pyxis refuses the setting, and every step with it.
can_mount() {
  local version
  command -v squashfuse >/dev/null && grep -qs use_squashfuse "$TRAINING_ROOT$PLUGIN" &&
    version="$(enroot version 2>/dev/null)" && [[ $version != [0-3].* ]]
}

configure_node() {
  local pyxis
  pyxis="$(example pyxis/pyxis.conf)"
  pyxis="${pyxis:-required $PLUGIN runtime_path=/run/pyxis}"
  if [[ $pyxis != *use_squashfuse=* ]] && can_mount; then pyxis+=" use_squashfuse=1"; fi
  if has_pyxis; then put "$OWN" <<<"$pyxis"; else rm -f "$OWN"; fi
}

configure_slurm() {
  local plugins=""
  changed=no
  # Slurm ignores an include whose file does not exist.
  put "$ETC/plugstack.conf.d/pyxis.conf" <<<"include $OWN"
  # Plug-ins that a user added stay.
  if [[ -e $ETC/plugstack.conf ]]; then plugins="$(<"$ETC/plugstack.conf")"; fi
  if [[ $plugins != *"$INCLUDE"* ]]; then put "$ETC/plugstack.conf" <<<"${plugins:+$plugins$'\n'}$INCLUDE"; fi
}

# report_gaps: reports the container programs that this node lacks; fails if it lacks one.
report_gaps() {
  local status=0
  if ! has_enroot; then
    printf 'this image has no Enroot: containers do not start\n' >&2
    status=1
  fi
  if [[ $RECIPE == @(gpu|volta) ]] && ! command -v nvidia-container-cli >/dev/null; then
    printf 'this image has no nvidia-container-cli: containers get no GPUs, and images of NVIDIA do not start\n' >&2
    status=1
  fi
  if ! has_pyxis; then
    printf 'this image has no Pyxis (%s): Slurm ignores --container-image here, and the program runs on the host\n' \
      "$PLUGIN" >&2
    status=1
  fi
  return "$status"
}

if has_enroot; then
  large="$(storage)"
  configure_enroot "$large"
  allow_user_namespaces
fi
create_run_folders
configure_node
if [[ $NODE_TYPE == HeadNode ]]; then
  configure_slurm
  if [[ $changed == yes ]]; then scontrol reconfigure; fi
fi
report_gaps
