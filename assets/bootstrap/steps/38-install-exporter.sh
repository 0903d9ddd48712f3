#!/usr/bin/env bash
#
# Installs node_exporter from the distribution, which 86-export-metrics.sh starts. Every image has it, since clusters of either
# store of metrics share images. A node of an image without it installs it at its start, if the cluster's metrics need it.
#
# Called by: run-steps.sh, as root. Safe to run again. Environment: BUNDLE, TRAINING_ROOT. Amazon Linux has no package of it.
# Nodes: HeadNode ComputeFleet
# Required: no
# Budget: 110 s
# Metrics: prometheus amp
# Reads: bootstrap/lib/packages.sh bootstrap/lib/service.sh
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/packages.sh"
source "$BUNDLE/bootstrap/lib/service.sh"

if uses_apt; then install_program prometheus-node-exporter; fi
