#!/usr/bin/env bash
#
# Applies the accounts, shares and limits of the users file to Slurm's accounting, on the head node.
#
# `sacctmgr load` adds and changes what differs, in one connection; -1 removes a limit. A user who is no longer in an
# account of the file loses the association. Accounts that were created by hand stay. Usage is never deleted.
#
# Called by: run-steps.sh, as root. Environment: BUNDLE, TRAINING_ROOT, SLURM_CONF. Safe to run again. It does nothing
#   without users, and on a cluster without accounting.
# Nodes: HeadNode
# Where: any
# Required: no
# Budget: 30 s
set -euo pipefail
shopt -s inherit_errexit

readonly PEOPLE="$BUNDLE/users/people" ACCOUNTS="$BUNDLE/users/accounts"
export PATH="/opt/slurm/bin:$PATH"
[[ -r $PEOPLE ]] || exit 0
if ! config="$(scontrol show config 2>/dev/null)"; then
  if command -v scontrol >/dev/null; then
    printf 'slurmctld does not answer: accounts and limits are unchanged\n' >&2
    exit 1
  fi
  exit 0 # a rehearsal of the bootstrap, before its Slurm
fi
[[ $config =~ AccountingStorageType\ *=\ accounting_storage/slurmdbd ]] || exit 0
[[ $config =~ ClusterName\ *=\ ([^[:space:]]+) ]]
readonly cluster="${BASH_REMATCH[1]}"

# Prints the cluster's default user, who gets the same rights to submit as root.
cluster_user() { sed -n 's/^cfn_cluster_user=//p' "$TRAINING_ROOT/etc/parallelcluster/cfnconfig" 2>/dev/null || true; }

# Prints the input of sacctmgr load.
render() {
  local user
  user="$(cluster_user)"
  printf "Cluster - '%s':Fairshare=1\nParent - 'root'\n" "$cluster"
  printf "User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1\n"
  if [[ -n $user ]]; then printf "User - '%s':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1\n" "$user"; fi
  awk '
    function limit(value) { return value == "-" ? -1 : value }
    FILENAME == ARGV[1] {
      hours = $6 == "-" ? -1 : $6 * 60
      made[++accounts] = $1
      line[$1] = "Fairshare=" $4 ":GrpTRES=node=" limit($5) ":GrpTRESMins=gres/gpu=" hours
      next
    }
    {
      # A locked user may submit no job.
      limits = "Fairshare=" $8 ":GrpTRES=node=" limit($9) ":MaxJobs=" limit($10) \
        ":MaxSubmitJobs=" ($3 == "locked" ? 0 : -1)
      count = split($7, names, ",")
      for (i = 1; i <= count; i++) {
        if (!(names[i] in line)) { made[++accounts] = names[i]; line[names[i]] = "Fairshare=1" }
        members[names[i]] = members[names[i]] "User - \047" $1 "\047:DefaultAccount=\047" names[1] "\047:" limits "\n"
      }
    }
    END {
      for (i = 1; i <= accounts; i++)
        print "Account - \047" made[i] "\047:Description=\047" made[i] "\047:Organization=\047training\047:" line[made[i]]
      for (i = 1; i <= accounts; i++)
        if (made[i] in members) printf "Parent - \047%s\047\n%s", made[i], members[made[i]]
    }
  ' "$ACCOUNTS" "$PEOPLE"
}

# Prints `ACCOUNT USER` for each association of a user of the file that is no longer in the file.
left() {
  sacctmgr --noheader --parsable2 show assoc where cluster="$cluster" format=account,user |
    awk -F'|' 'FILENAME == ARGV[1] {
      split($0, words, " ")
      known[words[1]]
      count = split(words[7], names, ",")
      for (i = 1; i <= count; i++) wanted[names[i] "|" words[1]]
      next
    }
    $2 in known && !($0 in wanted) {print $1, $2}' "$PEOPLE" -
}

file="$(mktemp)"
trap 'rm -f "$file"' EXIT
render >"$file"
if ! said="$(sacctmgr --immediate load "$file" 2>&1)"; then
  printf '%s\n' "$said" >&2
  printf 'sacctmgr refused the accounts of the users file: see the lines above\n' >&2
  exit 1
fi
while read -r account user; do
  [[ -n $user ]] || continue
  sacctmgr --immediate --quiet remove user where name="$user" account="$account" cluster="$cluster" </dev/null ||
    printf '%s keeps the account %s: sacctmgr refuses to remove it while a job of it runs\n' "$user" "$account" >&2
done < <(left)
