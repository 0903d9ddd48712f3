#!/bin/sh
#
# Before each task of a job, a batch script included: prints the variables by which AWS's tools find the user's own
# credentials (services/credentials.py). A user cannot ask the metadata service for those of the node.
#
# Called by: slurmstepd (TaskProlog), on compute nodes, as the user, with the job's environment; it adds each line `export
#   NAME=value` to the environment. Step 90-install-prolog.sh installs it where several people share the cluster, and
#   writes below the first line region, and another, a task prolog of the cluster config's own.
# A task with a task prolog that fails does not start.
echo "export AWS_CONTAINER_CREDENTIALS_FULL_URI=http://127.0.0.1:330/"
echo "export AWS_EC2_METADATA_DISABLED=true"
echo "export AWS_REGION=${AWS_REGION:-${AWS_DEFAULT_REGION:-${region:?}}}"
if [ -n "${another:-}" ]; then exec "$another"; fi
