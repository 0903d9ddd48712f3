#!/usr/bin/env bash
#
# Enables large pages for every program on a Xeon node. Training on CPUs reads gigabytes of weights over and over; with
# 4 KiB pages each core spends its time in page tables. The default of both images is madvise, and torch's allocator
# does not call madvise.
#
# With defer+madvise a program that did not call madvise never waits for the compaction of memory. No pages are reserved
# (vm.nr_hugepages), since jobs could not use that memory, and EFA reserves its own.
#
# Called by: run-steps.sh, as root. Environment: TRAINING_ROOT, BUNDLE. Safe to run again. It survives a reboot.
# Moment: start
# Recipes: cpu
# Nodes: ComputeFleet
# Where: node
# Required: no
# Budget: 10 s
set -euo pipefail
shopt -s inherit_errexit
# shellcheck source=assets/bootstrap/lib/put.sh
source "$BUNDLE/bootstrap/lib/put.sh"

readonly SETTINGS="$TRAINING_ROOT/etc/tmpfiles.d/training-cluster-memory.conf"
readonly PAGES=/sys/kernel/mm/transparent_hugepage
put "$SETTINGS" <<END
# Training Cluster: steps/66-tune-xeon.sh
w $PAGES/enabled - - - - always
w $PAGES/defrag - - - - defer+madvise
END
systemd-tmpfiles --create "$SETTINGS"
