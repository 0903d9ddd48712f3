#!/usr/bin/env bash
# Stores a user's passwords for registries of container images, in the file that Enroot reads on every node.
#
# Called by: the user on the head node, or trainctl registry login through a session: registry.sh login HOST [USER], which
#   asks for the password and reads it from the terminal, or from standard input; registry.sh logout HOST;
#   registry.sh list; and by container.sh: registry.sh add-ecr HOST. Safe to run again.
# Environment: HOME, shared between the nodes.
# Writes: ~/.config/enroot/.credentials, mode 600. A password is never on a command line, so not in a list of processes,
#   and not in a log. For Amazon ECR it stores no password, but the command by which enroot gets a token with the job's rights.
set -euo pipefail
umask 077

readonly folder="${HOME:?}/.config/enroot"
readonly file="$folder/.credentials"

die() {
  printf 'registry: %s\n  %s\n' "$1" "$2" >&2
  exit 1
}

# without HOST: prints the file without the lines of this registry.
without() {
  if [[ -f $file ]]; then awk -v host="$1" '!($1 == "machine" && $2 == host)' "$file"; fi
}

# replace HOST: replaces the lines of a registry by standard input, atomically, since jobs on other nodes may do so too.
replace() {
  local lines fresh
  lines="$(cat)"
  mkdir -p "$folder"
  (
    flock 9
    fresh="$(mktemp "$file.XXXXXX")"
    {
      without "$1"
      if [[ -n $lines ]]; then printf '%s\n' "$lines"; fi
    } >"$fresh"
    mv -f "$fresh" "$file"
  ) 9>>"$file.lock"
}

check_host() {
  [[ $1 =~ ^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]+)?$ && $1 == *[.:]* ]] ||
    die "'$1' is not a host name of a registry." 'Type one like these: nvcr.io, registry-1.docker.io, ghcr.io'
}

# hosts_of NAME: prints the hosts for which enroot looks: the registry's, without port, and a second one that hands out
# the tokens of NVIDIA's, Docker's and GitLab's.
hosts_of() {
  case $1 in
    docker.io | index.docker.io | hub.docker.com | registry-1.docker.io) printf 'registry-1.docker.io auth.docker.io\n' ;;
    nvcr.io) printf 'nvcr.io authn.nvidia.com\n' ;;
    registry.gitlab.com) printf 'registry.gitlab.com gitlab.com\n' ;;
    *) printf '%s\n' "${1%:*}" ;;
  esac
}

is_ecr() { [[ $1 =~ ^[0-9]{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(\.cn)?$ ]]; }

add_ecr() {
  local region="${1#*.dkr.ecr.}"
  region="${region%%.*}"
  if [[ -f $file ]] && grep -q "^machine $1 " "$file"; then return; fi
  # shellcheck disable=SC2016 # enroot runs the command at each import
  printf 'machine %s login AWS password $(aws ecr get-login-password --region %s)\n' "$1" "$region" | replace "$1"
}

# read_password: sets password from the terminal, where it is not shown, or from standard input.
read_password() {
  if [[ -t 0 ]]; then printf 'Password or token of %s for %s (it is not shown): ' "$1" "$2" >&2; fi
  IFS= read -rs password || true
  if [[ -t 0 ]]; then printf '\n' >&2; fi
  [[ -n $password && $password != *[[:space:]]* ]] || die 'the password is empty, or has a blank in it.' \
    'Nothing was changed. Run the same command again, with the password'
  # enroot would run a password that begins with $ as a command.
  [[ $password != \$* ]] || die 'the password begins with $, which enroot would run as a command.' \
    'Nothing was changed; have the registry make a token'
}

login() {
  local user="${2:-}" host password
  if is_ecr "$1"; then
    add_ecr "$1"
    printf 'registry: images of %s are read with the rights of jobs in AWS, without a password\n' "$1"
    return
  fi
  # All keys of NVIDIA's registry have this user.
  # shellcheck disable=SC2016
  if [[ $1 == nvcr.io ]]; then user='$oauthtoken'; fi
  [[ $user =~ ^[^[:space:]]+$ ]] || die "the user of $1 is missing." "Type: trainctl registry login $1 --user NAME"
  read_password "$user" "$1"
  for host in $(hosts_of "$1"); do
    printf 'machine %s login %s password %s\n' "$host" "$user" "$password" | replace "$host"
  done
  printf 'registry: stored for %s in %s, which only %s reads\n' "$1" "$file" "$(id -un)"
}

logout() {
  local host
  for host in $(hosts_of "$1"); do replace "$host" </dev/null; done
  printf 'registry: removed the entries of %s\n' "$1"
}

# Prints the registries and users of the file.
list() {
  if [[ -f $file ]]; then awk '$1 == "machine" { print $2, $4 }' "$file"; fi
}

case ${1:-} in
  login | logout | add-ecr) check_host "${2:-}" ;;
esac
case ${1:-} in
  login) login "$2" "${3:-}" ;;
  logout) logout "$2" ;;
  add-ecr) add_ecr "$2" ;;
  list) list ;;
  *) die "'${1:-}' is not one of login, logout, list." 'Type: trainctl registry login nvcr.io' ;;
esac
