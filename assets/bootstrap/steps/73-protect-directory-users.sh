#!/usr/bin/env bash
#
# Makes private what users of a directory make (-c directory): their homes, which PAM makes at the first login, their
# runs and their environments. Of a home's mode the system decides otherwise: Ubuntu shows it to the user's group, which
# in an Active Directory is everybody (Domain Users).
#
# Called by: run-steps.sh, as root. Environment: NODE_TYPE, BUNDLE, TRAINING_SHARED, TRAINING_ROOT. Safe to run again.
#   Homes that exist keep their mode. Without a directory in the bundle it takes its profile away.
# Moment: start
# Recipes: all
# Nodes: all
# Where: any
# Required: yes
# Budget: 5 s
set -euo pipefail
shopt -s inherit_errexit
# shellcheck source=assets/bootstrap/lib/put.sh
source "$BUNDLE/bootstrap/lib/put.sh"

readonly LOGIN="$TRAINING_ROOT/etc/login.defs" PROFILE="$TRAINING_ROOT/etc/profile.d/training-cluster-directory.sh"
readonly FOLDERS="$TRAINING_SHARED/users"

if [[ ! -f $BUNDLE/directory ]]; then
  rm -f "$PROFILE"
  exit
fi

# pam_mkhomedir reads it. What could not be read would be lost.
kept=""
if [[ -e $LOGIN ]]; then kept="$(sed '/^[[:space:]]*HOME_MODE[[:space:]]/d' "$LOGIN")"$'\n'; fi
put "$LOGIN" <<<"${kept}HOME_MODE"$'\t0700'
# As 71-apply-users.sh does for users of a file.
put "$PROFILE" <<END
# Training Cluster: steps/73-protect-directory-users.sh
if [ "\$(id -u)" -ge 1000 ] && ! grep -q "^\$(id -un):" /etc/passwd; then
  umask 077
  export TRAINING_VENVS="\${TRAINING_SHARED:-$TRAINING_SHARED}/users/\$(id -un)/venvs"
fi
END
if [[ $NODE_TYPE == HeadNode ]]; then
  # Nobody knows the users' names before they come: each makes the own folder, and nobody removes another's.
  if [[ ! -e $FOLDERS && ! -L $FOLDERS ]]; then mkdir "$FOLDERS"; fi
  if [[ -L $FOLDERS || ! -d $FOLDERS || $(stat --format %u "$FOLDERS") != "$EUID" ]]; then
    printf '%s belongs to %s, who could take the place of its users: move it away, or chown it to root\n' "$FOLDERS" \
      "$(stat --format %U "$FOLDERS")" >&2
    exit 1
  fi
  chmod 1777 "$FOLDERS"
fi
