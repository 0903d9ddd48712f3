#!/usr/bin/env bash
#
# Installs the environment files with the properties of the nodes, which jobs read, one for each Slurm partition.
#
# It adds TRAINING_BUCKET, the cluster's bucket, to the files of the bundle: bootstrap.sh stores the URL from which it
# downloaded the bundle. The variable is empty if the bundle is not from a bucket.
#
# Called by: run-steps.sh, as root. Environment: BUNDLE, TRAINING_ETC. Safe to run again.
# Where: any
# Budget: 5 s
set -euo pipefail

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
