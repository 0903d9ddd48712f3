#!/usr/bin/env bash
#
# Makes the homes, runs and environments of directory users (-c directory) private. PAM creates a home at the first login.
# By default Ubuntu lets the user's group read it, and in an Active Directory that group is everybody (Domain Users).
#
# Called by: run-steps.sh, as root. Environment: NODE_TYPE, BUNDLE, TRAINING_SHARED, TRAINING_ROOT. Safe to run again.
#   Existing homes keep their mode. Without a directory in the bundle, the step removes its profile.
# Where: any
# Budget: 5 s
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/put.sh"

readonly LOGIN="$TRAINING_ROOT/etc/login.defs" PROFILE="$TRAINING_ROOT/etc/profile.d/training-cluster-directory.sh"
readonly FOLDERS="$TRAINING_SHARED/users"

if [[ ! -f $BUNDLE/directory ]]; then
  rm -f "$PROFILE"
  exit
fi

# pam_mkhomedir reads this file.
kept=""
if [[ -e $LOGIN ]]; then kept="$(sed '/^[[:space:]]*HOME_MODE[[:space:]]/d' "$LOGIN")"$'\n'; fi
put "$LOGIN" <<<"${kept}HOME_MODE"$'\t0700'
# The same settings as 71-apply-users.sh writes for users of a users file.
put "$PROFILE" <<END
# Training Cluster: steps/73-protect-directory-users.sh
if [ "\$(id -u)" -ge 1000 ] && ! grep -q "^\$(id -un):" /etc/passwd; then
  umask 077
  export TRAINING_VENVS="\${TRAINING_SHARED:-$TRAINING_SHARED}/users/\$(id -un)/venvs"
fi
END
if [[ $NODE_TYPE == HeadNode ]]; then
  # The names of the users are unknown until they log in: each user creates their own folder, and cannot remove another's.
  if [[ ! -e $FOLDERS && ! -L $FOLDERS ]]; then mkdir "$FOLDERS"; fi
  if [[ -L $FOLDERS || ! -d $FOLDERS || $(stat --format %u "$FOLDERS") != "$EUID" ]]; then
    printf '%s belongs to %s, who could replace the folders of its users: move it away, or chown it to root\n' "$FOLDERS" \
      "$(stat --format %U "$FOLDERS")" >&2
    exit 1
  fi
  chmod 1777 "$FOLDERS"
fi
