# shellcheck shell=bash
#
# Sourced by steps: writes a file of the node's in one rename, and only if it is not so already.

# Whatever root's is: jobs' programs read what stands here.
umask 022
changed=no

# put FILE [MODE] <<<TEXT: sets `changed` to yes if the file was another or none.
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
