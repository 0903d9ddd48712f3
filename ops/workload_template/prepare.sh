#!/usr/bin/env bash
# Makes the Python environment and the data of the workload_template workload.
#
# Called by: job.slurm, as the user, on the job's first node, one at a time. Safe to run again: it skips what is
#   done, and finishes what was interrupted.
# Needs: TRAINING_VENVS, DATA_DIR (folders; job.slurm sets them).
# Reads: $DATA_DIR/raw/*.txt, your own text, if there is any.
# Writes: $TRAINING_VENVS/workload_template, unless the node's image has the environment; $DATA_DIR/text.bin.

# shellcheck source=assets/training/prepare.sh
source "$(dirname "${BASH_SOURCE[0]}")/../prepare.sh"

# Prints sums such as "12 + 30 = 42", on which a loss falls without a download.
sums() {
  seq 100000 | awk '{ a = $1 * 7919 % 1000; b = $1 * 104729 % 1000; print a, "+", b, "=", a + b }'
}

main() {
  shopt -s nullglob
  local -r text="$DATA_DIR/text.bin" raw=("$DATA_DIR"/raw/*.txt)
  if [[ -f $text && -z "$(find "$DATA_DIR/raw" -newer "$text" 2>/dev/null)" ]]; then
    printf 'data: %s is there\n' "$text"
    return
  fi
  if ((${#raw[@]})); then cat -- "${raw[@]}" >"$text.partial"; else sums >"$text.partial"; fi
  # The rename at the end makes the text complete for every reader.
  mv "$text.partial" "$text"
  printf 'data: %s bytes in %s\n' "$(stat --format %s "$text")" "$text"
}

main
