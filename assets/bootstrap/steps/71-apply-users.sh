#!/usr/bin/env bash
#
# Creates and updates the users of the users file on every node, and locks the users who are no longer in it. The head
# node also creates their homes, folders, keys and quotas, which all nodes share.
#
# A uid never changes, since the files on shared storage record only the uid. The step refuses a user whose uid differs,
# or a uid that belongs to another user, and applies the others. It deletes nothing that belongs to a user. It writes to a
# user's folder only with that user's rights, since the user could put a link to one of root's files there.
#
# Called by: run-steps.sh, as root. Environment: NODE_TYPE, BUNDLE, TRAINING_SHARED, TRAINING_EFS, TRAINING_ETC,
#   TRAINING_ROOT. Safe to run again: it starts no program for a user who is up to date. Without users/ in the bundle, it
#   locks all users that it created.
# Where: any
# Budget: 30 s
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/put.sh"

umask 022
readonly USERS="$BUNDLE/users" ETC="$TRAINING_ROOT/etc"
# Group of all users of the file: it shows which users of a node this step created.
readonly ALL=training-users ALL_GID=4999
readonly NOLOGIN=/usr/sbin/nologin SHELL_OF_USERS=/bin/bash EXPIRED=1970-01-02
# pam_umask reads it for every session: sftp and editors over SSH start no login shell, and create private files too.
readonly GECOS=umask=077
# Bytes of the output of a user's command that are printed.
readonly SAID_BYTES=2000
# Number of users for whose processes the step waits until they are killed. More would use up the step's budget.
readonly MOST_BLOCKED=2
declare -i blocked=0
readonly SUDOERS="$ETC/sudoers.d/90-training-cluster-admins"
# With --prefix, usermod edits the files of another root without PAM and without chroot.
prefix=()
if [[ -n $TRAINING_ROOT ]]; then prefix=(--prefix "$TRAINING_ROOT"); fi
declare -A uid_of shell_of name_of groups_of gid_of group_of named=() refused=() refused_group=()
# Lines of sysusers.d(5), and the users among them who are locked.
missing="" expired=() problems=()

report() { problems+=("$*"); }

# lines NAME: prints a file of users/ in the bundle; nothing without users.
lines() { if [[ -r $USERS/$1 ]]; then cat "$USERS/$1"; fi; }

# Reads the node's local users and groups, without a directory's.
read_node() {
  local name uid gid members shell member
  while IFS=: read -r name _ uid _ _ _ shell; do
    uid_of[$name]=$uid shell_of[$name]=$shell name_of[$uid]=$name
  done <"$ETC/passwd"
  while IFS=: read -r name _ gid members; do
    gid_of[$name]=$gid group_of[$gid]=$name
    for member in ${members//,/ }; do groups_of[$member]+="$name "; done
  done <"$ETC/group"
}

# is_free NAME UID: true if no other user or group of this node has the id; otherwise reports the owner.
is_free() {
  local -r other="${name_of[$2]:-${group_of[$2]:-}}"
  if [[ -z $other || $other == "$1" ]]; then return; fi
  report "the id $2 of $1 belongs to $other on $(hostname): give $1 another"
  return 1
}

# want_group NAME GID: records a missing group, or refuses it: no user becomes a member of a system group.
want_group() {
  if [[ ${gid_of[$1]:-} == "$2" ]]; then return; fi
  if [[ -n ${gid_of[$1]:-} ]]; then
    refused_group[$1]=yes
    report "the group $1 has the gid ${gid_of[$1]} on $(hostname), and the file says $2: a gid stays for life"
  elif is_free "$1" "$2"; then
    missing+="g $1 $2"$'\n'
  else
    refused_group[$1]=yes
  fi
}

# is_in_exactly NAME GROUP...: true if the user is in exactly these groups. It starts no program.
is_in_exactly() {
  local -a has
  local group
  read -ra has <<<"${groups_of[$1]:-}"
  ((${#has[@]} == $# - 1)) || return 1
  for group in "${@:2}"; do [[ " ${has[*]} " == *" $group "* ]] || return 1; done
}

# apply_user NAME UID active|locked GROUPS: records a missing user, and updates one who differs.
apply_user() {
  local -r name="$1" uid="$2" state="$3"
  local -a groups
  local shell="$SHELL_OF_USERS" expires="" group
  for group in "$ALL" ${4//,/ }; do
    if [[ -z ${refused_group[$group]:-} ]]; then groups+=("$group"); fi
  done
  if [[ $state == locked ]]; then shell="$NOLOGIN" expires="$EXPIRED"; fi
  if [[ -n ${uid_of[$name]:-} && ${uid_of[$name]} != "$uid" ]]; then
    report "$name has the uid ${uid_of[$name]} on $(hostname), and the file says $uid: a uid stays for life"
    refused[$name]=yes
  elif [[ -z ${uid_of[$name]:-} ]]; then
    if ! is_free "$name" "$uid"; then
      refused[$name]=yes
      return
    fi
    # The group comes first, with the same id: otherwise the user's group would get another id.
    missing+="g $name $uid"$'\n'"u $name $uid:$uid \"$GECOS\" $HOMES/$name $shell"$'\n'
    for group in "${groups[@]}"; do missing+="m $name $group"$'\n'; done
    if [[ $state == locked ]]; then expired+=("$name"); fi
  elif [[ ${shell_of[$name]} != "$shell" ]] || ! is_in_exactly "$name" "${groups[@]}"; then
    usermod "${prefix[@]}" --groups "$(IFS=, && printf '%s' "${groups[*]}")" --shell "$shell" \
      --expiredate "$expires" "$name" || report "$name could not be changed: see the line above"
    if [[ $state == locked ]]; then end_sessions "$name"; fi
  fi
}

# Creates all missing groups and users at once: useradd takes a tenth of a second for each.
make_missing() {
  local name said
  if [[ -z $missing ]]; then return; fi
  said="$(systemd-sysusers ${TRAINING_ROOT:+--root="$TRAINING_ROOT"} - <<<"$missing" 2>&1)" ||
    report "users could not be made: ${said##*$'\n'}"
  for name in "${expired[@]}"; do usermod "${prefix[@]}" --expiredate "$EXPIRED" "$name"; done
}

# lock_user NAME: locks a user who is no longer in the file.
lock_user() {
  if [[ ${shell_of[$1]:-} == "$NOLOGIN" || -z ${uid_of[$1]:-} ]]; then return; fi
  printf '%s is no longer in the users file: locked\n' "$1"
  usermod "${prefix[@]}" --lock --groups "$ALL" --shell "$NOLOGIN" --expiredate "$EXPIRED" "$1" ||
    report "$1 could not be locked: see the line above"
  end_sessions "$1"
}

# end_sessions NAME: ends the sessions of a user who is locked, or may no longer use sudo, since a root shell would stay
# open. Jobs continue.
end_sessions() {
  if [[ -z $TRAINING_ROOT && $NODE_TYPE != ComputeFleet ]]; then loginctl terminate-user "$1" 2>/dev/null || true; fi
}

# Writes the list of users who may use sudo, and ends the sessions of those who were removed from it.
write_admins() {
  local name state kind admins="" former
  former="$(sed -n 's/ ALL=(ALL) NOPASSWD:ALL$//p' "$SUDOERS" 2>/dev/null)" || true
  while read -r name _ state kind _; do
    if [[ $state == active && $kind == admin && -z ${refused[$name]:-} ]]; then
      admins+=$'\n'"$name ALL=(ALL) NOPASSWD:ALL"
    fi
  done < <(lines people)
  if [[ -n $admins ]]; then
    put "$SUDOERS" 440 <<<"# Training Cluster: steps/71-apply-users.sh$admins"
  else
    rm -f "$SUDOERS"
  fi
  for name in $former; do
    if [[ $admins$'\n' == *$'\n'"$name "* ]]; then continue; fi
    printf '%s may no longer use sudo: ending the sessions\n' "$name"
    end_sessions "$name"
  done
}

# Sets a private umask for the users, and a separate folder for the environments of each.
write_profile() {
  put "$ETC/profile.d/training-cluster-users.sh" <<END
# Training Cluster: steps/71-apply-users.sh
case " \$(id -nG) " in
  *" $ALL "*)
    umask 077
    export TRAINING_VENVS="\${TRAINING_SHARED:-$TRAINING_SHARED}/users/\$(id -un)/venvs"
    ;;
esac
END
}

# as_user UID COMMAND...: runs a command with a user's rights only, with a time limit of a few seconds, since a named pipe
# instead of a file would block it forever. Its output goes to a file, and it inherits none of root's open files: another
# process of the user could take them over (pidfd_getfd), and hold the lock of bootstrap.sh, or the pipe whose end
# run-steps.sh waits for. Only the beginning of the output is printed, since the user can make it as large as the disk.
# Call it in this shell, not in a pipe: it counts the users who block it.
as_user() {
  local status=0
  if ((blocked >= MOST_BLOCKED)); then
    printf 'skipped, since the processes of %d other users did not end\n' "$blocked" >&2
    return 1
  fi
  timeout --kill-after=1 5 setpriv --reuid "$1" --regid "$1" --clear-groups --no-new-privs -- "${@:2}" \
    >"$said_as_user" 2>&1 3>&- 9>&- || status=$?
  head --bytes="$SAID_BYTES" "$said_as_user" >&2
  if ((status == 124 || status == 137)); then blocked+=1; fi
  return "$status"
}

# make_parent FOLDER: creates a folder of root for the folders of users.
make_parent() {
  if [[ ! -e $1 && ! -L $1 ]]; then mkdir "$1"; fi
  if [[ -L $1 || ! -d $1 || $(stat --format %u "$1") != "$EUID" ]]; then
    report "$1 belongs to $(stat --format %U "$1"), who could take the place of its users. Type on the head node, and" \
      "deploy again: sudo mv $1 $1.old    or, to keep what is in it there: sudo chown root: $1"
    return 1
  fi
  chmod 755 "$1"
}

# make_folder FOLDER UID GID MODE [SKELETON]: creates the folder of a user or a group atomically.
make_folder() {
  local fresh other
  local -a owner
  if [[ -L $1 || -e $1 ]]; then
    # A user may give their own folder to a group.
    if [[ -L $1 || ! -d $1 || $(stat --format %u "$1") != "$2" ]]; then
      report "$1 already exists, and belongs to $(stat --format %U "$1"). Type on the head node, and deploy again:" \
        "sudo mv $1 $1.old    or, if all of it is $(basename "$1")'s: sudo chown -R $2:$3 $1"
    elif ((! $2)) && [[ $(stat --format %g "$1") != "$3" ]]; then
      report "$1 belongs to the gid $(stat --format %g "$1"), and the file says $3: a gid stays for life"
    fi
    return
  fi
  if (($2)); then owner=(uid "$2"); else owner=(gid "$3"); fi
  # A run of this step that was killed may have left a folder .fresh-*.
  other="$(find "$(dirname "$1")" -mindepth 1 -maxdepth 1 ! -name '.fresh-*' "-${owner[0]}" "${owner[1]}" -print -quit)"
  if [[ -n $other ]]; then
    report "the ${owner[*]} of $(basename "$1") belonged to $other: give $(basename "$1") another"
    return
  fi
  fresh="$(mktemp -d "$(dirname "$1")/.fresh-XXXXXX")"
  if [[ -n ${5:-} && -d $5 ]]; then cp -R "$5/." "$fresh"; fi
  chown -R "$2:$3" "$fresh"
  chmod "$4" "$fresh"
  mv -T "$fresh" "$1"
}

# write_keys NAME UID STATE: adds the file's keys to the user's own keys, or moves all keys of a locked user away. The
# contents of a user's home cannot fail a deploy.
write_keys() {
  if [[ $(stat --format %u "$HOMES/$1" 2>/dev/null) != "$2" ]]; then return 1; fi
  # shellcheck disable=SC2016  # for the user's shell
  as_user "$2" bash -euo pipefail -c '
    umask 077
    begin="# Training Cluster: begin" end="# Training Cluster: end"
    cd "$1"
    if [[ $2 == locked ]]; then
      for file in .ssh/authorized_keys .ssh/authorized_keys2; do
        if [[ -e $file ]]; then mv "$file" "$file.locked"; fi
      done
      exit
    fi
    mkdir -p .ssh
    own=""
    if [[ -e .ssh/authorized_keys ]]; then own="$(sed "/^$begin\$/,/^$end\$/d" .ssh/authorized_keys)"; fi
    wanted="$begin"$'"'\n'"'"$(cat)"$'"'\n'"'"$end${own:+$'"'\n'"'$own}"
    if [[ ! -e .ssh/authorized_keys || $(<.ssh/authorized_keys) != "$wanted" ]]; then
      printf "%s\n" "$wanted" >.ssh/.authorized_keys.fresh
      mv .ssh/.authorized_keys.fresh .ssh/authorized_keys
    fi
  ' _ "$HOMES/$1" "$3" < <(lines keys | sed -n "s/^$1 //p") || {
    printf 'the keys of %s could not be written: see the line above\n' "$1" >&2
    return 1
  }
}

# Writes the keys of the users whose keys or state have changed since the last run.
write_all_keys() {
  local -r done_before="$TRAINING_ROOT/var/lib/training-cluster/user-keys"
  local name uid state key entry written=""
  local -A keys_of=()
  while read -r name key; do keys_of[$name]+=" $key"; done < <(lines keys)
  while read -r name uid state _; do
    if [[ -n ${refused[$name]:-} ]]; then continue; fi
    entry="$name $state${keys_of[$name]:-}"
    if grep -qxF -- "$entry" "$done_before" 2>/dev/null || write_keys "$name" "$uid" "$state"; then
      written+="$entry"$'\n'
    fi
  done < <(lines people)
  put "$done_before" 600 <<<"${written%$'\n'}"
}

# set_quotas: sets the quotas on Lustre that have changed since the last run. An empty folder of a project always gets the
# project's id: new files in it inherit the id, so a quota that is set later counts them.
set_quotas() {
  local -r done_before="$TRAINING_ROOT/var/lib/training-cluster/quotas"
  local wanted kind name id gib
  command -v lfs >/dev/null || return 0
  wanted="$(
    lines people | awk '{print "u", $1, $2, $6 == "-" ? 0 : $6}'
    lines accounts | awk '{print "p", $1, $2, $3 == "-" ? 0 : $3}'
  )"
  while read -r kind name id gib; do
    [[ -n $kind ]] || continue
    if grep -qxF -- "$kind $name $id $gib" "$done_before" 2>/dev/null; then continue; fi
    {
      { [[ $kind == u ]] || lfs project -p "$id" -s "$TRAINING_SHARED/projects/$name"; } &&
        lfs setquota "-$kind" "$id" --block-hardlimit "${gib}G" "$TRAINING_SHARED"
    } || if [[ $gib == 0 ]]; then
      # Lustre before 2.15 has no project quotas; a deploy must not fail for a quota that the file does not set.
      printf '%s has no quota on %s, which refused it: see the line above\n' "$name" "$TRAINING_SHARED" >&2
    else
      report "the quota of $name could not be set: see the line above (quotas of projects are of Lustre 2.15)"
    fi
  done <<<"$wanted"
  if ((${#problems[@]} == 0)); then put "$done_before" <<<"$wanted"; fi
}

# Creates what all nodes share, on the head node.
make_shared() {
  local name uid gid
  put "$TRAINING_ETC/callers" < <(lines callers)
  put "$TRAINING_ETC/users" < <(lines people)
  put "$TRAINING_ETC/accounts" < <(lines accounts)
  make_parent "$HOMES" && make_parent "$TRAINING_SHARED/users" && make_parent "$TRAINING_SHARED/projects" || return 0
  while read -r name gid _; do
    make_folder "$TRAINING_SHARED/projects/$name" 0 "$gid" 2770
  done < <(lines accounts)
  while read -r name uid _; do
    if [[ -n ${refused[$name]:-} ]]; then continue; fi
    make_folder "$HOMES/$name" "$uid" "$uid" 700 "$ETC/skel"
    make_folder "$TRAINING_SHARED/users/$name" "$uid" "$uid" 700
  done < <(lines people)
  write_all_keys
  set_quotas
}

# A cluster without a users file stays as ParallelCluster configured it.
if [[ ! -d $USERS ]] && ! grep -qs "^$ALL:" "$ETC/group"; then exit 0; fi
said_as_user="$(mktemp)"
readonly said_as_user
trap 'rm -f "$said_as_user"' EXIT
read_node
HOMES="$TRAINING_ROOT/home"
if [[ $(lines homes) == efs ]]; then HOMES="$TRAINING_EFS/home"; fi
readonly HOMES

want_group "$ALL" "$ALL_GID"
while read -r name gid _; do want_group "$name" "$gid"; done < <(lines accounts)
while read -r name uid state _ groups _; do
  named[$name]=yes
  apply_user "$name" "$uid" "$state" "${groups#-}"
done < <(lines people)
make_missing
for name in "${!groups_of[@]}"; do
  if [[ " ${groups_of[$name]}" == *" $ALL "* && -z ${named[$name]:-} ]]; then lock_user "$name"; fi
done
write_admins
write_profile
if [[ $NODE_TYPE == HeadNode ]]; then make_shared; fi
if ((${#problems[@]})); then
  printf '%s\n' "${problems[@]}" >&2
  printf '%s problems with users, the first: %s\n' "${#problems[@]}" "${problems[0]}" >&2
  exit 1
fi
