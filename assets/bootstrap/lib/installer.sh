# shellcheck shell=bash
#
# Sourced by steps that install or compile the code of others: runs that as a user who may write to one folder alone.

readonly INSTALLER=training-installer

# as_installer FOLDER COMMAND...: makes FOLDER, which belongs to the installer while the command runs and to root afterwards,
# when no process of the installer is left. A user other than root keeps FOLDER and runs the command directly.
as_installer() {
  local -r folder="$1"
  local home status=0
  mkdir -p "$folder"
  if ((EUID)); then
    "${@:2}"
    return
  fi
  id -u "$INSTALLER" >/dev/null 2>&1 ||
    useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$INSTALLER"
  home="$(mktemp -d)"
  chown -R "$INSTALLER:$INSTALLER" "$folder" "$home"
  # Programs look for their caches and settings in HOME.
  HOME="$home" TMPDIR="$home" setpriv --reuid="$INSTALLER" --regid="$INSTALLER" --clear-groups --no-new-privs \
    --inh-caps=-all --bounding-set=-all "${@:2}" || status=$?
  pkill -KILL -u "$INSTALLER" || true
  chown -R root:root "$folder"
  chmod -R ug-s,go-w "$folder"
  rm -rf "$home"
  return "$status"
}
