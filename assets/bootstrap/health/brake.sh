# shellcheck shell=bash
#
# Sourced by check-node.sh: keeps a check that is wrong about all nodes from taking them all from the cluster.
#
# What each node's last checks said stands in one small file a node, in a folder a partition, on the file system from
# which nodes have Slurm's commands and the prolog itself (ParallelCluster's cookbook exports /opt/slurm writeable, with
# no_root_squash). Slurm keeps no such record: clustermgtd writes its own reason over ours when it replaces a node.
#
# A line: SECONDS BOOT [CHECK...]: in that boot these checks called the node unfit, or none did. A replaced node is
# another boot under the same name.
#
# Environment: TRAINING_ROOT; SLURMD_NODENAME, of Slurm's. HEALTH_SETTLE_S, of tests.
readonly VERDICTS="$TRAINING_ROOT/opt/slurm/etc/training-cluster-verdicts"
readonly BRAKE_WINDOW_S=3600 SETTLE_S="${HEALTH_SETTLE_S:-3}"
# The limits, and why they are these: README.md.
readonly BRAKE_UNFIT=3 BRAKE_NODES=2
declare -A braked=()

# note PARTITION [CHECK...]: writes down which checks call this node unfit, in one rename. It is for `if`: each command
# counts.
note() {
  local -r folder="$VERDICTS/$1"
  local -r mine="$folder/$SLURMD_NODENAME" fresh="$folder/.$SLURMD_NODENAME-$$"
  local boot
  boot="$(</proc/sys/kernel/random/boot_id)" && mkdir -p "$folder" && touch -a "$mine" &&
    awk -v since="$((EPOCHSECONDS - BRAKE_WINDOW_S))" -v boot="$boot" '$1 >= since && $2 != boot' "$mine" >"$fresh" &&
    printf '%s %s %s\n' "$EPOCHSECONDS" "$boot" "${*:2}" >>"$fresh" && mv -f "$fresh" "$mine"
}

# is_braked PARTITION CHECK: whether the check has called most of the partition's nodes unfit lately.
is_braked() {
  awk -v since="$((EPOCHSECONDS - BRAKE_WINDOW_S))" -v check="$2" -v least="$BRAKE_UNFIT" -v names="$BRAKE_NODES" '
    $1 < since { next }
    { boots++ }
    { for (i = 3; i <= NF; i++) if ($i == check) { unfit++; if (!seen[FILENAME]++) nodes++ } }
    END { exit !(unfit >= least && nodes >= names && 2 * unfit > boots) }
  ' "$VERDICTS/$1"/* </dev/null
}

# apply_brake PARTITION [CHECK...]: notes what these checks say; those that are not to drain nodes are keys of `braked`.
apply_brake() {
  local check
  if ! note "$@"; then
    say "could not write to $VERDICTS: no check is braked, whatever it says of other nodes"
    return
  fi
  if (($# == 1)); then return; fi
  # Other nodes of the same job are about to say how they are. Written again, the folder is seen as it is now: NFS
  # answers from what it has kept for seconds, until the node itself changes something there.
  sleep "$SETTLE_S"
  if ! note "$@"; then return; fi
  for check in "${@:2}"; do
    # node_states.py counts the files that are touched.
    if is_braked "$1" "$check" && touch "$VERDICTS/$1/.braked-$check"; then
      # shellcheck disable=SC2034  # check-node.sh reads it
      braked[$check]=yes
      say "$check: BRAKED: it calls most nodes of $1 unfit, so it does not drain this one. On the head node, if it is" \
        "wrong: echo $check | sudo tee -a $SKIPPED; if it is right: sudo rm -r $VERDICTS/$1"
    fi
  done
}
