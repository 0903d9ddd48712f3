#!/usr/bin/env bash
#
# Reserves a range of job ids for this cluster on the shared file system, on the head node.
#
# Job ids name runs, checkpoints and logs, such as /fsx/checkpoints/gpt2/job-17. These outlive the cluster, and several
# clusters may share them, while each new Slurm starts at 1 (aws-parallelcluster issue 6362): its job 17 would resume the
# run of another cluster's job 17.
# So each cluster takes the first free block of BLOCK ids: a folder of root in /fsx/.job-ids, which mkdir creates on one
# node only. The first cluster of a file system starts at 1, and needs no setting. For another one slurm.conf gets
# FirstJobId, which slurmctld applies at a reconfiguration, and only upwards.
#
# Called by: run-steps.sh, as root. Environment: BUNDLE, TRAINING_SHARED, TRAINING_STATE, TRAINING_ROOT, SLURM_CONF. Safe
#   to run again: a cluster keeps its block, and an update that writes slurm.conf without the line gets it again.
# Nodes: HeadNode
# Budget: 15 s
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/put.sh"

# The largest id is below MaxJobId, 67,043,328 by default.
readonly BLOCK=100000 BLOCKS=670 ATTEMPTS=3
readonly registry="$TRAINING_SHARED/.job-ids" own="$TRAINING_STATE/job-ids"
readonly conf="${SLURM_CONF:-$TRAINING_ROOT/opt/slurm/etc/slurm.conf}"
export PATH="/opt/slurm/bin:$PATH"

# Prints the highest job id in the names of runs, checkpoints and logs. A file system of a restored bucket has checkpoints
# without a registry.
highest_id() {
  # Either folder may be missing.
  { find "$TRAINING_SHARED"/{runs,checkpoints} -mindepth 1 -maxdepth 2 -name 'job-[1-9]*' -printf '%f\n' 2>/dev/null || true; } |
    sed -nE 's/^job-([0-9]{1,8})([^0-9].*)?$/\1/p' | sort -n | tail -n 1
}

# reserve: takes a free block above all ids in use, else any free block, and stores its number in `own`.
reserve() {
  local -i first=0 block
  local highest owner
  if ! mkdir -m 755 "$registry" 2>/dev/null; then
    owner="$(stat --format '%F of %U' "$registry")"
    if [[ -L $registry || ! -d $registry || $(stat --format %u "$registry") != "$EUID" ]]; then
      printf '%s is a %s: move it away\n' "$registry" "$owner" >&2
      return 1
    fi
  fi
  highest="$(highest_id)"
  if [[ -n $highest ]]; then first=$((highest / BLOCK + 1)); fi
  for block in $(seq "$first" "$((BLOCKS - 1))") $(seq 0 "$((BLOCKS - 1))"); do
    if mkdir "$registry/$block" 2>/dev/null; then
      mkdir -p "$(dirname "$own")"
      printf '%s\n' "$block" >"$own.new"
      mv -f "$own.new" "$own"
      return
    fi
  done
  printf 'all ranges of job ids are taken in %s: remove the folders of deleted clusters\n' "$registry" >&2
  return 1
}

# takes_effect: true if slurmctld has the setting.
takes_effect() { [[ $(scontrol show config 2>/dev/null) =~ FirstJobId[[:space:]]*=[[:space:]]*$1[[:space:]] ]]; }

if [[ ! -s $own ]]; then reserve; fi
block="$(<"$own")"
if ((block == 0)); then exit; fi
readonly first_id=$((block * BLOCK + 1))
put "$conf" < <(
  sed '/^FirstJobId=/d' "$conf"
  printf 'FirstJobId=%d\n' "$first_id"
)
for ((attempt = 1; attempt <= ATTEMPTS; attempt++)); do
  if takes_effect "$first_id"; then exit; fi
  scontrol reconfigure || sleep 5
done
takes_effect "$first_id" || {
  printf 'slurmctld did not apply FirstJobId=%d of %s: see the lines above\n' "$first_id" "$conf" >&2
  exit 1
}
