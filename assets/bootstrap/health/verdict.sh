# shellcheck shell=bash
#
# Sourced by the checks: functions to report an unhealthy node.
#
# Verdicts have their own exit status, so that a faulty check (a shell error is 1, a missing file 127) never drains a
# node. The same check runs on all nodes, and would drain all of them at once.
export UNHEALTHY=9

# unhealthy SENTENCE: ends the check with a verdict; `sinfo -R` shows the sentence.
unhealthy() {
  printf '%s\n' "$*"
  exit "$UNHEALTHY"
}

# need PROGRAM CLAIM: ends the check if the program is missing. A missing nvidia-smi is a verdict: such a node can run
# no GPU jobs. Other programs are missing from an image, so from all nodes alike, and are not a verdict.
need() {
  if command -v "$1" >/dev/null; then return; fi
  if [[ $1 == nvidia-smi ]]; then unhealthy "$1 is missing, so it is unknown whether $2"; fi
  printf '%s is missing, so it is unknown whether %s\n' "$1" "$2" >&2
  exit 1
}

# last_line TEXT: prints the last line of a failed program's output.
last_line() { printf '%s\n' "$1" | grep -v '^[[:space:]]*$' | tail -n 1 || printf 'nothing\n'; }
