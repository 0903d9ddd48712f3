#!/usr/bin/env bash
#
# Keeps other users off a compute node that runs a job: they can neither log in there nor connect to it. A cluster without
# users or a directory stays as ParallelCluster configured it.
#
# pam_slurm_adopt, which ParallelCluster installs with Slurm, refuses a user without a job there. It puts a session into
# the user's job, with which it ends. Root, the cluster's default user and admins pass. It comes first in sshd's `account`,
# since a `sufficient` module of an included file (pam_localuser) ends the list. A missing module locks nobody out
# (module_unknown). pam_systemd would move the session out of the job: sshd gets the distribution's `session` without it.
# The rules for connections are in peers.sh, and 63-protect-file-systems.sh has their services. Users have no cron, no
# at and no services of their own (user@.service, which `loginctl enable-linger` starts without a session) on compute nodes:
# their programs would run beside the next user's job.
#
# Called by: run-steps.sh, as root. Environment: BUNDLE, TRAINING_ETC, TRAINING_ROOT. Safe to run again. New sessions only.
# Nodes: ComputeFleet
# Budget: 10 s
set -euo pipefail
shopt -s inherit_errexit nullglob
source "$BUNDLE/bootstrap/lib/put.sh"

readonly PAM="$TRAINING_ROOT/etc/pam.d" UNITS="$TRAINING_ROOT/etc/systemd/system"
readonly PCLUSTER="$TRAINING_ROOT/etc/parallelcluster" PASS="$TRAINING_ETC/pass-to-nodes"
readonly MARK="# training-cluster" SESSION=training-cluster-session
if [[ ! -d $BUNDLE/users && ! -f $BUNDLE/directory ]]; then exit; fi

# Prints who logs in without a job.
admins() {
  # shellcheck source=/dev/null
  (source "$PCLUSTER/cfnconfig" && printf '%s\n' "${cfn_cluster_user:?is not in cfnconfig}")
  if [[ -r $BUNDLE/users/people ]]; then awk '$3 == "active" && $4 == "admin" { print $1 }' "$BUNDLE/users/people"; fi
}

# restrict_ssh: adds the modules to sshd's file of PAM.
restrict_ssh() {
  local included=password-auth name text # of Amazon Linux
  if [[ -e $PAM/common-session ]]; then included=common-session; fi
  local -ra modules=("$TRAINING_ROOT"/lib*/{,*-linux-gnu/}security/pam_slurm_adopt.so)
  if ((${#modules[@]} == 0)); then printf 'pam_slurm_adopt.so is missing: users log in to this node without a job\n'; fi
  local rules="account [success=1 default=ignore] pam_listfile.so item=user sense=allow onerr=fail file=$PASS $MARK"
  rules+=$'\n'"-account [success=ok ignore=ignore module_unknown=ignore default=bad] ${modules[0]:-pam_slurm_adopt.so}"
  rules+=" action_adopt_failure=deny action_generic_failure=deny"
  # The host's name is another where the cluster has UseEc2Hostnames.
  if name="$(cat "$PCLUSTER/slurm_plugin/slurm_nodename" 2>/dev/null)"; then rules+=" nodename=$name"; fi
  text="$(awk -v mark="$MARK" -v rules="$rules $MARK" -v from="$included" -v to="$SESSION" '
    index($0, mark) { next }
    /^-?account|^@include common-account/ && !found++ { print rules }
    $1 == "@include" || $1 == "session" { sub(from "$", to) }
    { print }
    END { exit !found }' "$PAM/sshd")" || {
    printf '%s has no line of account: users log in to this node without a job\n' "$PAM/sshd" >&2
    return 1
  }
  put "$PAM/$SESSION" < <(sed --quiet '/pam_systemd/d; /^-\?session/p' "$PAM/$included")
  put "$PAM/sshd" <<<"$text"
}

put "$PASS" < <(admins)
for program in cron at; do put "$TRAINING_ROOT/etc/$program.allow" < <(printf 'root\n' && cat "$PASS"); done
restrict_ssh
rm -f "$TRAINING_ROOT"/var/lib/systemd/linger/*
mkdir -p "$UNITS"
ln -sfn /dev/null "$UNITS/user@.service"
readonly COMMAND="/usr/bin/env bash $BUNDLE/bootstrap/peers.sh"
put "$UNITS/training-cluster-firewall.service.d/peers.conf" <<<"[Service]"$'\n'"ExecStart=$COMMAND"
put "$UNITS/parallelcluster-iptables.service.d/training-cluster-peers.conf" <<<"[Service]"$'\n'"ExecStopPost=$COMMAND"
timeout 4 systemctl daemon-reload
bash "$BUNDLE/bootstrap/peers.sh"
