#!/usr/bin/env bash
#
# Package repositories that their publisher signs. A function that fails prints the reason as the last line of stderr
# and returns 1.
#
# Sourced by: install steps, with `# Reads: bootstrap/lib/repository.sh bootstrap/lib/packages.sh` in their header.
# Environment: TRAINING_ROOT.

# add_repository NAME KEY_URL FINGERPRINT CHECK SOURCE...: adds a signed repository. SOURCE is the rest of apt's line
# after its options, or dnf's URL. CHECK is the signature that dnf verifies: gpgcheck (of the packages) or
# repo_gpgcheck (of the repository's list); apt always verifies the list.
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

# remove_repository NAME: removes a repository; its packages and its key stay.
remove_repository() {
  rm -f "$TRAINING_ROOT/etc/apt/sources.list.d/$1.list" "$TRAINING_ROOT/etc/yum.repos.d/$1.repo"
}

# fetch_key URL FINGERPRINT FILE: fetches a key. It is verified by its fingerprint, since the file of a key changes
# whenever its owner moves its expiry.
fetch_key() {
  local -r url="$1" fingerprint="$2" file="$3"
  local found
  mkdir -p "$(dirname "$file")"
  curl --fail --location --silent --show-error --retry 5 --retry-delay 2 --connect-timeout 20 --output "$file.part" \
    "$url" || {
    printf 'could not fetch %s: has this machine access to it?\n' "$url" >&2
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
