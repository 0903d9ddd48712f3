#!/usr/bin/env bash
#
# Enables transparent huge pages for every program on a Xeon node. Training on CPUs reads gigabytes of weights in each
# step, and with 4 KiB pages the cores spend much time in page tables. Both images default to madvise, and torch's
# allocator does not call madvise.
#
# With defer+madvise, a program that did not call madvise never waits for memory compaction. The step reserves no pages
# (vm.nr_hugepages), since jobs could not use that memory otherwise, and the EFA installer reserves its own.
#
# Called by: run-steps.sh, as root. Environment: TRAINING_ROOT, BUNDLE. Safe to run again. The setting
#   is applied again after a reboot.
# Recipes: cpu
# Nodes: ComputeFleet
# Required: no
# Budget: 10 s
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/put.sh"

readonly SETTINGS="$TRAINING_ROOT/etc/tmpfiles.d/training-cluster-memory.conf"
readonly PAGES=/sys/kernel/mm/transparent_hugepage
put "$SETTINGS" <<END
# Training Cluster: steps/66-tune-xeon.sh
w $PAGES/enabled - - - - always
w $PAGES/defrag - - - - defer+madvise
END
systemd-tmpfiles --create "$SETTINGS"
