#!/usr/bin/env bash
#
# Repositories of packages that their publisher signs. Functions print what was wrong on one last line of stderr and
# return 1.
#
# Sourced by: install steps, with `# Reads: bootstrap/lib/repository.sh bootstrap/lib/packages.sh` in their header.
# Environment: TRAINING_ROOT.

# add_repository NAME KEY_URL FINGERPRINT CHECK SOURCE...: SOURCE is what apt's line has after its options, or dnf's
# URL. CHECK is what dnf verifies by the key: gpgcheck (the packages) or repo_gpgcheck (the repository's list of them);
# apt always verifies the list.
add_repository() {
  local -r name="$1" key="/usr/share/keyrings/$1.asc"
  fetch_key "$2" "$3" "$TRAINING_ROOT$key" || return 1
  if uses_apt; then
    printf 'deb [signed-by=%s] %s\n' "$key" "${*:5}" >"$TRAINING_ROOT/etc/apt/sources.list.d/$name.list"
  else
    local checks='gpgcheck=1'
    if [[ $4 == repo_gpgcheck ]]; then checks=$'repo_gpgcheck=1\ngpgcheck=0'; fi
    printf '%s\n' "[$name]" "name=$name" "baseurl=$5" 'enabled=1' "$checks" "gpgkey=file://$key" \
      >"$TRAINING_ROOT/etc/yum.repos.d/$name.repo"
  fi
}

# remove_repository NAME: its packages stay, and its key.
remove_repository() {
  rm -f "$TRAINING_ROOT/etc/apt/sources.list.d/$1.list" "$TRAINING_ROOT/etc/yum.repos.d/$1.repo"
}

# fetch_key URL FINGERPRINT FILE: a key's file changes whenever its owner moves its expiry; its fingerprint is the key.
fetch_key() {
  local -r url="$1" fingerprint="$2" file="$3"
  local found
  mkdir -p "$(dirname "$file")"
  curl --fail --location --silent --show-error --retry 5 --retry-delay 2 --connect-timeout 20 --output "$file.part" \
    "$url" || {
    printf 'could not fetch %s: has this machine a way to it?\n' "$url" >&2
    return 1
  }
  found="$(gpg --show-keys --with-colons "$file.part" | awk -F: '$1 == "fpr" { print $10; exit }')"
  if [[ $found != "$fingerprint" ]]; then
    rm -f "$file.part"
    printf '%s has the key %s, and %s is expected: nothing was installed\n' "$url" "'$found'" "$fingerprint" >&2
    return 1
  fi
  mv -f "$file.part" "$file"
}
