# shellcheck shell=bash
#
# Sourced by check-node.sh: limits how many nodes a check may drain, since a check that is wrong about all nodes would
# drain the whole cluster.
#
# Each node has a small file with the results of its last checks, in a folder for each partition, on the file system
# with Slurm's commands and the prolog itself (ParallelCluster's cookbook exports /opt/slurm writeable, with
# no_root_squash). Slurm has no such record: clustermgtd overwrites the drain reason when it replaces a node.
#
# A line is SECONDS BOOT VERSION [CHECK...]: the checks that reported the node as unhealthy in that boot. A replaced node
# has another boot under the same name. VERSION names the checks: results of older checks are no evidence for or
# against the current ones, and after a deploy idle nodes keep the older checks until their next job.
#
# Environment: TRAINING_ROOT; SLURMD_NODENAME, set by Slurm or judge-node.sh. HEALTH_SETTLE_S, set by tests.
readonly VERDICTS="$TRAINING_ROOT/opt/slurm/etc/training-cluster-verdicts"
readonly WINDOW_S=3600 SETTLE_S="${HEALTH_SETTLE_S:-3}"
# README.md gives the reasons of these limits.
readonly LIMIT_VERDICTS=3 LIMIT_NODES=2
declare -A braked=()

# Prints the version of this node's checks.
version() { cat "$HERE"/checks/*.sh "$HERE"/*.py | cksum | tr ' ' -; }

# write_verdict PARTITION [CHECK...]: writes the checks that report this node as unhealthy, in one rename. All commands
# are joined by &&, since `set -e` is off where `if` calls it.
write_verdict() {
  local -r folder="$VERDICTS/$1"
  local -r mine="$folder/$SLURMD_NODENAME" fresh="$folder/.$SLURMD_NODENAME-$$"
  local boot
  boot="$(</proc/sys/kernel/random/boot_id)" && mkdir -p "$folder" && touch -a "$mine" &&
    awk -v since="$((EPOCHSECONDS - WINDOW_S))" -v boot="$boot" '$1 >= since && $2 != boot' "$mine" >"$fresh" &&
    printf '%s %s %s %s\n' "$EPOCHSECONDS" "$boot" "$(version)" "${*:2}" >>"$fresh" && mv -f "$fresh" "$mine"
}

# is_braked PARTITION CHECK: true if the check has lately reported most of the partition's nodes as unhealthy.
is_braked() {
  awk -v since="$((EPOCHSECONDS - WINDOW_S))" -v version="$(version)" -v check="$2" -v least="$LIMIT_VERDICTS" -v names="$LIMIT_NODES" '
    $1 < since || $3 != version { next }
    { boots++ }
    { for (i = 4; i <= NF; i++) if ($i == check) { unhealthy++; if (!seen[FILENAME]++) nodes++ } }
    END { exit !(unhealthy >= least && nodes >= names && 2 * unhealthy > boots) }
  ' "$VERDICTS/$1"/* </dev/null
}

# apply_drain_limit PARTITION [CHECK...]: writes the verdict of these checks; those that may drain no node become keys
# of `braked`.
apply_drain_limit() {
  local check
  if ! write_verdict "$@"; then
    say "could not write to $VERDICTS: no check is braked, whatever it reports of other nodes"
    return
  fi
  if (($# == 1)); then return; fi
  # Other nodes of the same job, or idle nodes at the full hour, write their verdicts at the same time. The second write
  # makes them visible, since NFS answers from a cache for seconds until the node itself changes the folder.
  sleep "$SETTLE_S"
  if ! write_verdict "$@"; then return; fi
  for check in "${@:2}"; do
    # slurm_nodes.py counts the touched files.
    if is_braked "$1" "$check" && touch "$VERDICTS/$1/.braked-$check"; then
      # shellcheck disable=SC2034  # check-node.sh reads it
      braked[$check]=yes
      say "$check: BRAKED: it reports most nodes of $1 as unhealthy, so it does not drain this one. On the head" \
        "node, if it is wrong: echo $check | sudo tee -a $SKIPPED; if it is right: sudo rm -r $VERDICTS/$1"
    fi
  done
}
