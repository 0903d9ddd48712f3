#!/usr/bin/env bash
#
# Lets the kernel of a Xeon node give large pages to every program. Training on CPUs reads gigabytes of weights over
# and over; with 4 KiB pages each core spends its time in page tables. Both images' own setting is madvise, and
# torch's allocator asks for none.
#
# defer+madvise: a program that did not ask never waits for memory to be moved about. Nothing is reserved
# (vm.nr_hugepages): that memory would be lost for jobs, and EFA reserves its own.
#
# Called by: run-steps.sh, as root. Environment: TRAINING_ROOT, BUNDLE. Safe to run again. It holds after a reboot.
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
