#!/usr/bin/env bash
#
# Applies the accounts, shares and limits of the users file to Slurm's accounting, on the head node.
#
# `sacctmgr load` adds and changes what differs, in one connection; -1 removes a limit. A user who is no longer in an
# account of the file loses the association. Accounts that were created by hand stay. Usage is never deleted.
#
# max_gpu_hours is a QOS of the account, whose usage does not decay (NoDecay). Slurm bills jobs by the accelerators of their
# nodes (TRESBillingWeights); on a cluster without accelerators it bills CPUs, and there are no budgets. By the file budgets
# in TRAINING_ETC, `ACCOUNT HOURS USER...` a line, with the users whose own account it is, trainctl submit demands a time limit.
#
# Called by: run-steps.sh, as root. Environment: BUNDLE, TRAINING_ETC, TRAINING_ROOT, SLURM_CONF. Safe to run again. It does nothing
#   without users, and on a cluster without accounting.
# Nodes: HeadNode
# Where: any
# Required: no
# Budget: 30 s
set -euo pipefail
shopt -s inherit_errexit

readonly PEOPLE="$BUNDLE/users/people" ACCOUNTS="$BUNDLE/users/accounts"
export PATH="/opt/slurm/bin:$PATH"
rm -f "$TRAINING_ETC/budgets"
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
  awk -v has_budgets="$has_budgets" '
    function limit(value) { return value == "-" ? -1 : value }
    FILENAME == ARGV[1] {
      qos = has_budgets && $6 != "-" ? "budget-" $1 : "normal"
      made[++accounts] = $1
      line[$1] = "Fairshare=" $4 ":GrpTRES=node=" limit($5) ":DefaultQOS=\047" qos "\047:QOS=\047" qos "\047"
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

# make_budgets: creates or changes the QOS of each account with a budget. sacctmgr also fails if there is nothing to do, so the
# result is read.
make_budgets() {
  local name hours limits
  while read -r name _ _ _ _ hours; do
    if [[ $hours == - ]]; then continue; fi
    limits="Flags=NoDecay GrpTRESMins=billing=$((hours * 60))"
    # shellcheck disable=SC2086 # two words
    sacctmgr --immediate --quiet add qos "budget-$name" $limits </dev/null >/dev/null ||
      sacctmgr --immediate --quiet modify qos where name="budget-$name" set $limits </dev/null >/dev/null || true
    [[ $(sacctmgr --noheader --parsable2 show qos where name="budget-$name" format=Flags,GrpTRESMins) == "NoDecay|${limits#* GrpTRESMins=}" ]] || {
      printf 'the budget of %s was not set: see the lines above\n' "$name" >&2
      return 1
    }
  done <"$ACCOUNTS"
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

has_budgets=""
if [[ $(scontrol show partition) == *TRESBillingWeights=* ]]; then
  has_budgets=yes
  make_budgets
fi
file="$(mktemp)"
trap 'rm -f "$file"' EXIT
render >"$file"
if ! said="$(sacctmgr --immediate load "$file" 2>&1)"; then
  printf '%s\n' "$said" >&2
  printf 'sacctmgr refused the accounts of the users file: see the lines above\n' >&2
  exit 1
fi
if [[ -n $has_budgets ]]; then
  awk 'FILENAME == ARGV[1] { split($7, names, ","); users[names[1]] = users[names[1]] " " $1; next }
    $6 != "-" { print $1, $6 users[$1] }' "$PEOPLE" "$ACCOUNTS" >"$TRAINING_ETC/budgets"
fi
while read -r account user; do
  [[ -n $user ]] || continue
  sacctmgr --immediate --quiet remove user where name="$user" account="$account" cluster="$cluster" </dev/null ||
    printf '%s keeps the account %s: sacctmgr refuses to remove it while a job of it runs\n' "$user" "$account" >&2
done < <(left)
