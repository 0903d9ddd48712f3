#!/usr/bin/env bash
#
# Enters a throw-away machine: mounts its disk, gives it /proc, /sys, /dev and /run, and runs a command in it.
#
#   enter.sh ROOT LOWER UPPER WORK HOSTNAME [HERE THERE ro|rw ...] -- COMMAND...
#
# HERE is a file or folder of this machine that appears as THERE in the throw-away one. Without LOWER (folders, the
# topmost first, separated by colons) the folder UPPER is its whole disk.
#
# Called by: machine.py, as root and as process 1 of new mount, PID, IPC and UTS namespaces: when it ends or is killed,
#   all mounts and processes in it end as well.
set -euo pipefail
shopt -s inherit_errexit

readonly ROOT="$1" LOWER="$2" UPPER="$3" WORK="$4" HOSTNAME="$5"
shift 5

# Rights that could reach beyond the namespaces: kernel modules and devices, the clock, this machine's network.
readonly KEPT_FROM_IT=-sys_module,-sys_rawio,-sys_boot,-sys_time,-mknod,-net_admin

# show HERE THERE ro|rw
show() {
  local -r target="$ROOT$2"
  if [[ -d $1 ]]; then
    mkdir -p "$target"
  else
    mkdir -p "$(dirname "$target")"
    [[ -e $target ]] || : >"$target"
  fi
  mount --bind "$1" "$target"
  if [[ $3 == ro ]]; then mount -o remount,bind,ro "$target"; fi
}

mount_devices() {
  local device
  mount -t tmpfs -o mode=755 tmpfs "$ROOT/dev"
  for device in null zero full random urandom tty; do
    : >"$ROOT/dev/$device"
    mount --bind "/dev/$device" "$ROOT/dev/$device"
  done
  mkdir "$ROOT/dev/pts" "$ROOT/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$ROOT/dev/pts"
  mount -t tmpfs -o mode=1777 tmpfs "$ROOT/dev/shm"
  ln -s pts/ptmx "$ROOT/dev/ptmx"
  ln -s /proc/self/fd "$ROOT/dev/fd"
  ln -s /proc/self/fd/0 "$ROOT/dev/stdin"
  ln -s /proc/self/fd/1 "$ROOT/dev/stdout"
  ln -s /proc/self/fd/2 "$ROOT/dev/stderr"
}

if [[ -n $LOWER ]]; then
  mount -t overlay -o "lowerdir=$LOWER,upperdir=$UPPER,workdir=$WORK" overlay "$ROOT"
else
  mount --bind "$UPPER" "$ROOT"
fi
mount -t proc proc "$ROOT/proc"
# The kernel is this machine's, so its settings are read-only.
mount --bind "$ROOT/proc/sys" "$ROOT/proc/sys"
mount -o remount,bind,ro "$ROOT/proc/sys"
mount -t sysfs -o ro sysfs "$ROOT/sys"
mount_devices
mount -t tmpfs -o mode=755 tmpfs "$ROOT/run"
mkdir "$ROOT/run/lock"
while [[ $1 != -- ]]; do
  show "$1" "$2" "$3"
  shift 3
done
shift
hostname "$HOSTNAME"
setpriv --bounding-set "$KEPT_FROM_IT" --inh-caps "$KEPT_FROM_IT" chroot "$ROOT" "$@"
