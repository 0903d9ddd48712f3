#!/usr/bin/env bash
# shellcheck disable=SC2154  # job.slurm's variables
# Waits while the file system of a run is full, or its quota: the ranks' output, the checkpoints and the files of job.slurm are on it.
#
# Sourced by: restarts.sh, in job.slurm, as the user, on the job's first node; uses their log, die, tell, how_to_go_on, latest_step,
#   end_as_asked and end_for_good, and their variables RUN_DIR, CHECKPOINT_DIR, SPACE_WAIT_S, told. Only defines functions.

# await_space: waits until the run's folders take files, and another checkpoint, at most SPACE_WAIT_S. Otherwise a restart would
# fail without a word, and starts that cannot save would use up MAX_RESTARTS.
await_space() {
  local now end at newest why full=""
  local -i needed=0
  clock
  end=$((now + 100 * ${SPACE_WAIT_S:-3600}))
  rm -rf "$CHECKPOINT_DIR"/.step-*.partial # of a save that the full disk ended
  at="$(latest_step)"
  printf -v newest '%s/step-%06d' "$CHECKPOINT_DIR" "$at"
  # And a twentieth: logs grow until the save.
  if [[ -d $newest ]]; then needed="$(du --summarize --block-size=1K "$newest" | cut -f 1) * 21 / 20" || needed=0; fi
  while why="$(why_full "$needed")" && [[ -n $why ]]; do
    if [[ -n $told ]]; then end_as_asked "waited for space: $why"; fi
    clock
    ((now < end)) || end_for_good 1 "$why" "no space came within ${SPACE_WAIT_S:-3600} s (SPACE_WAIT_S): make some"
    if [[ -z $full ]]; then
      full="$why"
      log "$full: waiting for space, at most ${SPACE_WAIT_S:-3600} s"
      tell "waiting for space" "$full"
    fi
    sleep 2
  done
  if [[ -n $full ]]; then log "there is space again"; fi
}

# with_space COMMAND...: waits for space and tries a command that writes again: others may fill the disk as soon as it has space.
with_space() {
  for _ in {1..9}; do
    if "$@"; then return; fi
    await_space
  done
  "$@" || die "$RUN_DIR cannot be written: see the lines above." "When it can be, continue the run: $(how_to_go_on)"
}

# why_full KIB: prints why the run's folders take no files, or no checkpoint of that size; nothing if they do, or if another error
# prevents it, which has its own message later.
why_full() {
  local folder said free
  for folder in "$RUN_DIR" "$CHECKPOINT_DIR"; do
    # fsync: Lustre and NFS report a full quota when they write.
    said="$(LC_ALL=C dd if=/dev/zero of="$folder/.space" bs=64k count=16 conv=fsync 2>&1)" || true
    rm -f "$folder/.space"
    said="${said%%$'\n'*}"
    if [[ $said == *@("No space left on device"|"Disk quota exceeded") ]]; then
      printf '%s takes no files (%s)\n' "$folder" "${said#dd: }"
      return
    fi
  done
  free="$(df --output=avail --block-size=1K "$CHECKPOINT_DIR" | tail -n 1)" || return 0
  ((free >= $1)) || printf '%s has %s MiB free, and another checkpoint needs %s MiB\n' "$CHECKPOINT_DIR" $((free / 1024)) \
    $((($1 + 1023) / 1024))
}
