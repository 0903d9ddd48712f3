#!/usr/bin/env bash
#
# Lets users lock memory, open many files and take a larger stack.
#
# Slurm starts a job with the soft limits of the shell that submitted it (PropagateResourceLimits is ALL), so the limits
# of login shells on head and login nodes decide. ParallelCluster sets sufficient limits for slurmd (LimitMEMLOCK and
# LimitSTACK infinity, LimitNOFILE 131072), but for users only 10,000 files (00_all_limits.conf).
#   memlock  EFA and NCCL register memory, which locks it.
#   nofile   The limit of slurmd, which a job's limit cannot exceed.
#   stack    64 MiB, as NVIDIA's containers require; a user may raise it up to slurmd's limit. It is not unlimited by
#            default, since glibc then gives each thread only 2 MiB.
#
# Called by: run-steps.sh, as root. Environment: TRAINING_ROOT, BUNDLE. Safe to run again. It applies to new sessions.
# Where: any
# Budget: 5 s
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/put.sh"

# The name sorts after ParallelCluster's file: the last line for a user and an item applies.
put "$TRAINING_ROOT/etc/security/limits.d/99-training-cluster.conf" <<'END'
# Training Cluster: steps/62-raise-user-limits.sh
* - memlock unlimited
* - nofile 131072
* soft stack 65536
* hard stack unlimited
END
