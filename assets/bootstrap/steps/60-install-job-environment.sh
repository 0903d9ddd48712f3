#!/usr/bin/env bash
#
# Installs the environment files with the properties of the nodes, which jobs read, one for each Slurm partition.
#
# It adds TRAINING_BUCKET, the cluster's bucket, to the files of the bundle: bootstrap.sh stores the URL from which it
# downloaded the bundle. The variable is empty if the bundle is not from a bucket.
#
# NCCL's variables are in /etc/nccl.conf too, unless the image has that file: for programs that do not use job.slurm. A
# variable of their environment wins.
#
# Called by: run-steps.sh, as root. Environment: BUNDLE, PARTITION, TRAINING_ETC, TRAINING_ROOT. Safe to run again.
# Where: any
# Budget: 5 s
set -euo pipefail
source "$BUNDLE/bootstrap/lib/put.sh"

bucket=""
if [[ -r $TRAINING_ETC/bootstrap-arguments && $(<"$TRAINING_ETC/bootstrap-arguments") =~ ^s3://([^/[:space:]]+) ]]; then
  bucket="${BASH_REMATCH[1]}"
fi
mkdir -p "$TRAINING_ETC/partitions"
for file in "$BUNDLE"/partitions/*.env; do
  name="$(basename "$file")"
  # A rename is atomic: a job that starts now reads either the old file or the new one.
  install -m 644 "$file" "$TRAINING_ETC/partitions/.$name.new"
  printf "export TRAINING_BUCKET='%s'\n" "$bucket" >>"$TRAINING_ETC/partitions/.$name.new"
  mv -f "$TRAINING_ETC/partitions/.$name.new" "$TRAINING_ETC/partitions/$name"
done

readonly OWN="# Training Cluster: steps/60-install-job-environment.sh" NCCL="$TRAINING_ROOT/etc/nccl.conf"
if [[ -n $PARTITION ]] && { [[ ! -e $NCCL ]] || grep -qxF "$OWN" "$NCCL"; }; then
  put "$NCCL" <<END
$OWN
$(sed -nE 's/^export (NCCL_[A-Z0-9_]+)="\$\{[A-Z0-9_]+-(.*)\}"$/\1=\2/p' "$BUNDLE/partitions/$PARTITION.env")
END
fi
