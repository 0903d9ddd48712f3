#!/usr/bin/env bash
#
# Tunes the Lustre client as AWS recommends for the node's memory and CPUs, and with fsx_efa=on connects it over EFA.
#
# The values are of the FSx for Lustre guide, "Performance tips", and commands and interfaces of "Configuring EFA clients"
# there and of the EKS guide, "Optimize Amazon FSx for Lustre performance on nodes (EFA)". It has not run on Lustre.
#
# EFA interfaces are added when the modules are loaded, and ParallelCluster has mounted Lustre by now. A node that starts
# runs no job yet: with fsx_efa=on the step unmounts Lustre, loads the modules again, and mounts it. If that fails, the node
# uses Lustre over TCP. Without the mount the step fails. Without fsx_efa it unmounts nothing: options of the modules are
# part of a built image (39-set-lustre-options.sh). A reboot loses parameters and interfaces: units apply them after and
# before the mount.
#
#   61-tune-lustre.sh               does all this
#   61-tune-lustre.sh reload        unmounts Lustre, loads its modules, adds interfaces
#   61-tune-lustre.sh interfaces    adds the EFA interfaces, unless they exist
#   61-tune-lustre.sh parameters    sets the parameters
#   61-tune-lustre.sh check         prints `NAME WANTED SEEN` for each module's option, parameter, and the interfaces
#
# Called by: run-steps.sh, as root; the units; `trainctl verify` (check). Environment: BUNDLE, MOMENT, PARTITION,
#   TRAINING_ETC, TRAINING_ROOT. Safe to run again. A running node reloads nothing.
# Nodes: ComputeFleet
# Budget: 110 s
set -euo pipefail
shopt -s inherit_errexit nullglob

readonly ROOT="${TRAINING_ROOT:-}" ETC="${TRAINING_ETC:-/etc/training-cluster}"
cpus="$(nproc --all)"
memory_kib="$(awk '/^MemTotal:/ {print $2}' "$ROOT/proc/meminfo")"
wanted="$(source "$ETC/partitions/$PARTITION.env" && printf '%s' "${LUSTRE_EFA_INTERFACES:-0}")"
readonly cpus memory_kib wanted

# Prints the options of modules that the image has.
options() { grep -s ^options "$ROOT/etc/modprobe.d/training-cluster-lustre.conf" || true; }

# Prints parameters of lctl, in the order in which they are set.
parameters_of_node() {
  if ((memory_kib > 64 << 20)); then
    printf '%s\n' 'ldlm.namespaces.*.lru_max_age=600000' "ldlm.namespaces.*.lru_size=$((100 * cpus))"
  fi
  if ((cpus > 64)); then
    printf '%s\n' 'osc.*OST*.max_rpcs_in_flight=32' 'mdc.*.max_rpcs_in_flight=64' 'mdc.*.max_mod_rpcs_in_flight=50'
  fi
  printf '%s\n' 'llite.*.statahead_max=512' 'llite.*.statahead_agl=1'
  # Older clients lack it.
  if lctl get_param 'llite.*.statahead_xattr' >/dev/null 2>&1; then printf '%s\n' 'llite.*.statahead_xattr=1'; fi
}

parameters() {
  local pair
  while read -r pair; do
    lctl set_param "$pair" >/dev/null || printf 'could not set %s\n' "$pair" >&2
  done < <(parameters_of_node)
}

# Prints the names of the EFA devices.
efa_devices() {
  local device
  for device in "$ROOT"/sys/class/infiniband/*; do
    if [[ $(readlink -f "$device/device/driver") == */efa ]]; then basename "$device"; fi
  done
}

interfaces() {
  local interface pid
  local -i index
  local -a devices pids=()
  if ((wanted == 0)) || lnetctl net show --net efa 2>/dev/null | grep -q @efa; then return; fi
  mapfile -t devices < <(efa_devices)
  if ((${#devices[@]} < wanted)); then
    printf '%s of %s EFA devices: Lustre stays on TCP\n' "${#devices[@]}" "$wanted" >&2
    return 1
  fi
  interface="$(ip -4 -oneline route show default | sed -n '1s/.* dev \([^ ]*\).*/\1/p')"
  [[ -n $interface ]] || return 1
  modprobe lnet
  modprobe kefalnd "ipif_name=$interface"
  modprobe ksocklnd
  lnetctl lnet configure
  lnetctl net del --net tcp 2>/dev/null || true
  lnetctl net add --net tcp --if "$interface"
  # Spread over the devices: on p5, every fourth is one a PCI bus. At the same time, since each takes seconds.
  for ((index = 0; index < wanted; index++)); do
    lnetctl net add --net efa --if "${devices[index * ${#devices[@]} / wanted]}" --peer-credits 32 &
    pids+=("$!")
  done
  for pid in "${pids[@]}"; do wait "$pid"; done
  lnetctl set discovery 1
  lnetctl udsp add --src efa --priority 0
  modprobe lustre
}

reload() {
  umount --all --types lustre
  # lustre_rmmod may fail directly behind umount (Lustre's LU-20306).
  for _ in {1..10}; do
    if [[ -z "$(lctl dl 2>/dev/null)" ]]; then break; fi
    sleep 1
  done
  lustre_rmmod
  interfaces
}

# Prints what applies when the modules are loaded: NAME WANTED SEEN.
loaded() {
  local module pair name
  while read -r _ module pair; do
    name="${pair%%=*}"
    printf '%s %s %s\n' "$module.$name" "${pair#*=}" "$(cat "$ROOT/sys/module/$module/parameters/$name" 2>/dev/null || echo none)"
  done < <(options)
  if ((wanted)); then
    printf 'efa_interfaces %s %s\n' "$wanted" "$(lnetctl net show --net efa | grep -c @efa)"
  fi
}

check() {
  local pair seen
  loaded
  while read -r pair; do
    seen="$(lctl get_param -n "${pair%%=*}" 2>/dev/null | sort -u | paste -sd ,)" || true
    printf '%s %s %s\n' "${pair%%=*}" "${pair#*=}" "${seen:-none}"
  done < <(parameters_of_node)
}

# mount_again: mounts each Lustre by fstab.
mount_again() {
  local mount
  for mount in "${mounts[@]}"; do
    for _ in {1..3}; do
      if mountpoint --quiet "$mount" || timeout 8 mount "$mount"; then continue 2; fi
      sleep 1
    done
    printf '%s cannot be mounted again: see the line above\n' "$mount" >&2
    return 1
  done
}

unload() { timeout 10 lustre_rmmod || printf "Lustre's modules cannot be unloaded: see the line above\n" >&2; }

case ${1:-} in
  reload | interfaces | parameters | check)
    "$1"
    exit
    ;;
esac

mapfile -t mounts < <(findmnt --noheadings --raw --types lustre --output TARGET)
if ((${#mounts[@]} == 0)); then exit; fi # a cluster without Lustre

source "$BUNDLE/bootstrap/lib/put.sh"
readonly UNITS="$ROOT/etc/systemd/system" UNIT=training-cluster-lustre
put "$UNITS/$UNIT@.service" <<END
[Unit]
Description=Training Cluster: %i of the Lustre client
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
Environment="PATH=$PATH"
ExecStart=/usr/bin/env PARTITION=$PARTITION TRAINING_ETC=$ETC bash $BUNDLE/bootstrap/steps/61-tune-lustre.sh %i
END
for mount in "${mounts[@]}"; do
  put "$UNITS/$(systemd-escape --path --suffix=mount "$mount").d/training-cluster.conf" <<END
[Unit]
Wants=$UNIT@interfaces.service $UNIT@parameters.service
After=$UNIT@interfaces.service
Before=$UNIT@parameters.service
END
done
# shellcheck disable=SC2154  # of put.sh
if [[ $changed == yes ]]; then timeout 10 systemctl daemon-reload || printf 'systemd keeps its former units\n' >&2; fi

if [[ $MOMENT == start ]] && ((wanted)) && ! lnetctl net show --net efa 2>/dev/null | grep -q @efa; then
  in_fstab="$(findmnt --fstab --noheadings --raw --types lustre --output TARGET)" || true
  if [[ -n "$(printf '%s\n' "${mounts[@]}" | grep -vFx -- "$in_fstab" || true)" ]]; then
    printf 'not all of %s are in fstab, so none is mounted again: Lustre stays on TCP\n' "${mounts[*]}" >&2
  else
    # A process of its own ends at its first error.
    if ! timeout 30 bash "${BASH_SOURCE[0]}" reload; then
      printf 'the EFA interfaces of Lustre could not be added: see the line above\n' >&2
      # Half of the interfaces may exist.
      if ! findmnt --types lustre >/dev/null; then unload; fi
    fi
    if ! mount_again; then
      unload
      mount_again
    fi
  fi
fi
parameters
