#!/usr/bin/env bash
#
# Lets users lock memory, open many files and take a larger stack.
#
# Slurm starts a job with the soft limits of the shell that submitted it (PropagateResourceLimits is ALL), so what
# counts is the login shell on head and login nodes. ParallelCluster gives slurmd what is needed (LimitMEMLOCK and
# LimitSTACK infinity, LimitNOFILE 131072), and users 10,000 files and nothing else (00_all_limits.conf).
#   memlock  EFA and NCCL register memory, which locks it.
#   nofile   As slurmd's: Slurm cannot hand on more than slurmd has.
#   stack    64 MiB as NVIDIA's containers ask for, and as much as a user wants up to slurmd's. Not unlimited for all:
#            threads of glibc then get 2 MiB each.
#
# Called by: run-steps.sh, as root. Environment: TRAINING_ROOT, BUNDLE. Safe to run again. For sessions from now on.
# Moment: start
# Recipes: all
# Nodes: all
# Where: any
# Required: yes
# Budget: 5 s
set -euo pipefail
shopt -s inherit_errexit
# shellcheck source=assets/bootstrap/lib/put.sh
source "$BUNDLE/bootstrap/lib/put.sh"

# After ParallelCluster's file: the last line for a user and an item counts.
put "$TRAINING_ROOT/etc/security/limits.d/99-training-cluster.conf" <<'END'
# Training Cluster: steps/62-raise-user-limits.sh
* - memlock unlimited
* - nofile 131072
* soft stack 65536
* hard stack unlimited
END
