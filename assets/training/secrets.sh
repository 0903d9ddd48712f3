#!/usr/bin/env bash
# Replaces variables that name a secret by its text, so that no key is in a command, a script or a log.
#
# Sourced by: job.slurm, as the user, on the job's first node; uses its die, and SECRET_NAMES of restarts.sh. Defines a
#   function only.
# Reads: exported variables whose value is `secret:NAME`, NAME the name or ARN of a secret of AWS Secrets Manager.
#   The nodes need secretsmanager:GetSecretValue on it (-c node_policies=ARN).

# read_secrets: exports the texts of the secrets for the preparation and the ranks.
read_secrets() {
  local secret_name secret_text secret_region
  # ParallelCluster writes the region on each node; the AWS CLI does not know it otherwise.
  secret_region="$(sed -n 's/^cfn_region=//p' "${TRAINING_ROOT:-}/etc/parallelcluster/cfnconfig" 2>/dev/null)" || true
  for secret_name in $(compgen -e); do
    [[ ${!secret_name} == secret:?* ]] || continue
    [[ $secret_name =~ $SECRET_NAMES ]] || die "$secret_name is ${!secret_name}, and its value would be in reports." \
      "Secrets are for variables whose names have one of ${SECRET_NAMES//|/, }"
    secret_text="$(aws ${secret_region:+--region "$secret_region"} secretsmanager get-secret-value --secret-id \
      "${!secret_name#secret:}" --query SecretString --output text 2>&1)" || die "the secret of $secret_name cannot be read: ${secret_text##*$'\n'}" \
      "Compare its name, and let nodes read it: a policy with secretsmanager:GetSecretValue, -c node_policies=ARN"
    export "$secret_name=$secret_text"
  done
}
