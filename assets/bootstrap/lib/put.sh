# shellcheck shell=bash
#
# Sourced by steps: writes a file of the node in one rename, and only if its content or mode differs.

# Jobs' programs must be able to read these files, whatever root's umask is.
umask 022
changed=no

# put FILE [MODE] <<<TEXT: writes the file; sets `changed` to yes if it was missing or different.
put() {
  local -r fresh="$(dirname "$1")/.$(basename "$1").new"
  mkdir -p "$(dirname "$1")"
  cat >"$fresh"
  chmod "${2:-644}" "$fresh"
  if cmp -s "$fresh" "$1" && [[ $(stat -c %a "$1") == "${2:-644}" ]]; then
    rm -f "$fresh"
  else
    mv -f "$fresh" "$1"
    # shellcheck disable=SC2034  # for the step
    changed=yes
  fi
}
