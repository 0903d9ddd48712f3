#!/usr/bin/env bash
#
# Sets the options of Lustre's modules that AWS recommends for nodes with more than 64 vCPUs (FSx for Lustre guide,
# "Performance tips"). They apply when the modules are loaded: in an image, before ParallelCluster mounts Lustre. Smaller
# nodes have them too: one is an upper limit of threads, the other of messages on their way. It has not run on Lustre.
#
# Called by: run-steps.sh, as root, in an image build. Safe to run again. Environment: BUNDLE, TRAINING_ROOT.
# Moment: image
# Nodes: ComputeFleet
# Budget: 5 s
# Reads: bootstrap/lib/put.sh
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/put.sh"

put "${TRAINING_ROOT:-}/etc/modprobe.d/training-cluster-lustre.conf" <<'END'
options ptlrpc ptlrpcd_per_cpt_max=32
options ksocklnd credits=2560
END
