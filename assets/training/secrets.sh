#!/usr/bin/env bash
# Replaces variables that name a secret by its text, so that no key is in a command, a script or a log.
#
# Sourced by: job.slurm, as the user, on the job's first node; uses its die, and SECRET_NAMES of job_settings.sh.
# Run by: trainctl secret set, as the user in a session on the head node: bash secrets.sh set NAME, which asks for a secret,
#   and reads it from the terminal, where it is not shown, or from standard input. Safe to run again.
# Reads: exported variables whose value is
#   file:PATH     PATH of a file, from the home on, that belongs to the user and that nobody else can read
#   secret:NAME   NAME the name or ARN of a secret of AWS Secrets Manager. The nodes need secretsmanager:GetSecretValue on
#                 it (-c node_policies=ARN).
# Writes: set: ~/.training-cluster/NAME, mode 600.

# read_secrets: exports the texts of the secrets for the preparation and the ranks.
read_secrets() {
  local secret_name secret_text secret_region
  # ParallelCluster writes the region on each node; the AWS CLI does not know it otherwise.
  secret_region="$(sed -n 's/^cfn_region=//p' "${TRAINING_ROOT:-}/etc/parallelcluster/cfnconfig" 2>/dev/null)" || true
  for secret_name in $(compgen -e); do
    case ${!secret_name} in
      file:?*)
        # Other variables may hold an address of this form.
        if [[ ! $secret_name =~ $SECRET_NAMES ]]; then continue; fi
        secret_text="$(secret_file "${!secret_name#file:}")" || die "the secret of $secret_name cannot be read: $secret_text" \
          "Store it by trainctl secret set $secret_name, or give a file in your home: chmod 600 FILE"
        ;;
      secret:?*)
        [[ $secret_name =~ $SECRET_NAMES ]] || die "$secret_name is ${!secret_name}, and its value would be in reports." \
          "Secrets are for variables whose names have one of ${SECRET_NAMES//|/, }"
        secret_text="$(aws ${secret_region:+--region "$secret_region"} secretsmanager get-secret-value --secret-id \
          "${!secret_name#secret:}" --query SecretString --output text 2>&1)" ||
          die "the secret of $secret_name cannot be read: ${secret_text##*$'\n'}" \
            "Compare its name, and let nodes read it: a policy with secretsmanager:GetSecretValue, -c node_policies=ARN"
        ;;
      *) continue ;;
    esac
    export "$secret_name=$secret_text"
  done
}

# secret_file PATH: prints the text of a file; or, on failure, why it is not taken.
secret_file() {
  local path="${1/#\~\//}" owner_and_mode
  if [[ $path != /* ]]; then path="$HOME/$path"; fi
  owner_and_mode="$(stat --dereference --format '%u %a' "$path" 2>/dev/null)" || {
    printf 'there is no file %s' "$path"
    return 1
  }
  [[ $owner_and_mode =~ ^$UID\ [0-7]00$ && -s $path ]] || {
    printf '%s is empty, belongs to somebody else, or others can read it' "$path"
    return 1
  }
  cat "$path"
}

# set_secret NAME: stores a secret.
set_secret() {
  local text fresh
  local -r folder="${HOME:?}/.training-cluster"
  [[ $1 =~ ^[A-Za-z0-9_][A-Za-z0-9_.-]*$ ]] || die "'$1' is not a name: take letters, digits, _ . and -."
  if [[ -t 0 ]]; then
    printf 'The secret %s (it is not shown): ' "$1" >&2
    IFS= read -rs text || true
    printf '\n' >&2
  else
    text="$(cat)" # keys may have several lines
  fi
  [[ -n $text ]] || die 'the secret is empty, so nothing was changed.'
  umask 077
  mkdir -p "$folder"
  fresh="$(mktemp "$folder/.$1.XXXXXX")"
  printf '%s\n' "$text" >"$fresh"
  mv -fT "$fresh" "$folder/$1"
  printf 'secret: stored in %s, which only %s reads: trainctl submit --env %s=file:.training-cluster/%s\n' \
    "$folder/$1" "$(id -un)" "$1" "$1"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -euo pipefail
  die() {
    printf 'secret: %s\n' "$1" >&2
    exit 1
  }
  [[ ${1:-} == set && $# == 2 ]] || die 'type: trainctl secret set NAME'
  set_secret "$2"
fi
