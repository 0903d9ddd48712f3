#!/usr/bin/env bash
#
# Waits for EC2's notice that it reclaims this spot instance in two minutes, and then lets the ranks save.
#
# Called by: job.slurm through srun, as the user, once on every node of a spot partition, as a step in addition to
#   the training; it ends with the job. Safe to run again.
# Environment: SPOT_NOTICE, the file to write the notice to, and SPOT_NOTICE.NODE, which remains; THIS_JOB, SLURMD_NODENAME;
#   AWS_EC2_METADATA_SERVICE_ENDPOINT, default http://169.254.169.254.
#
# After a notice it sends SIGTERM to the job's steps, but not to job.slurm, which then requeues the job.
set -euo pipefail
trap 'exit 0' TERM

readonly SERVICE="${AWS_EC2_METADATA_SERVICE_ENDPOINT:-http://169.254.169.254}/latest" POLL_S=5 TOKEN_S=60

# Prints the notice; returns 1 while none exists (404), and while the service does not answer.
notice() {
  local token
  token="$(curl --silent --fail --max-time 2 --request PUT "$SERVICE/api/token" \
    --header "X-aws-ec2-metadata-token-ttl-seconds: $TOKEN_S")" || return 1
  curl --silent --fail --max-time 2 --header "X-aws-ec2-metadata-token: $token" \
    "$SERVICE/meta-data/spot/instance-action"
}

until found="$(notice)"; do
  sleep "$POLL_S"
done
readonly found partial="$SPOT_NOTICE.$SLURMD_NODENAME"
printf '%s: %s\n' "$SLURMD_NODENAME" "$found" >"$partial"
ln -f "$partial" "$SPOT_NOTICE"
printf '%s spot_notice.sh: EC2 takes %s: %s\n' "$(date +%H:%M:%S)" "$SLURMD_NODENAME" "$found" >&2
# Slurm's controller may be down meanwhile.
until scancel --signal=TERM "$THIS_JOB"; do
  sleep "$POLL_S"
done
