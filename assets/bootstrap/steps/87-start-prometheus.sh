#!/usr/bin/env bash
#
# Starts Prometheus, from the distribution's package, on the head node. It scrapes all nodes, and evaluates the
# rules. With metrics=amp it also sends the metrics to the workspace in Amazon Managed Service for Prometheus.
#
# It listens on 127.0.0.1: trainctl dashboards forwards the port through Session Manager, as root. Step 63 keeps users
# from it. It keeps 15 days of data, or one day with amp, and at most a quarter of the disk's free
# space or 16 GB, whichever is less. It uses at most a quarter of the memory, so slurmctld keeps the rest.
#
# Called by: run-steps.sh, as root. Environment: BUNDLE, TRAINING_ROOT, TRAINING_ETC, METRICS_WORKSPACE. Safe to run again.
# Nodes: HeadNode
# Required: no
# Budget: 120 s
# Metrics: prometheus amp
# Reads: bootstrap/lib/packages.sh bootstrap/lib/service.sh
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/packages.sh"
source "$BUNDLE/bootstrap/lib/put.sh"
source "$BUNDLE/bootstrap/lib/service.sh"

readonly FOLDER="$TRAINING_ETC/prometheus" DATA=/var/lib/prometheus/training-cluster
readonly IMDS=/opt/parallelcluster/scripts/imds/imds-access.sh
readonly MOST_GB=16

# Prints the limit of the data's size, in GB.
disk_gb() {
  local -i free
  free="$(df --block-size=1000000000 --output=avail / | tail -n 1)"
  free=$((free / 4))
  printf '%s\n' "$((free < 1 ? 1 : free > MOST_GB ? MOST_GB : free))"
}

# Prints the part of the config for a workspace: https://aps-workspaces.REGION.amazonaws.com/workspaces/ID.
remote_write() {
  local region
  [[ -n ${METRICS_WORKSPACE:-} ]] || return 0
  region="${METRICS_WORKSPACE#https://aps-workspaces.}"
  printf 'remote_write:\n  - url: "%s/api/v1/remote_write"\n    sigv4: {region: "%s"}\n' \
    "$METRICS_WORKSPACE" "${region%%.*}"
}

install_program prometheus
# shellcheck source=/dev/null
source "$TRAINING_ROOT/etc/parallelcluster/cfnconfig"
config="$(<"$BUNDLE/bootstrap/monitoring/prometheus.yml")"
config="${config//@CLUSTER@/${stack_name:?is not in cfnconfig}}"
config="${config//@INTERVAL@/30s}" config="${config//@TIMEOUT@/10s}" config="${config//@HEAD_PORT@/9100}"
config="${config//@FOLDER@/$FOLDER}" config="${config//@TARGETS@/$FOLDER/nodes.json}"
config="${config//@REMOTE_WRITE@/$(remote_write)}"
put "$FOLDER/prometheus.yml" <<<"$config"
put "$FOLDER/rules.yml" <"$BUNDLE/bootstrap/monitoring/rules.yml"
[[ -e $FOLDER/nodes.json ]] || put "$FOLDER/nodes.json" <<<'[]'
promtool check config "$FOLDER/prometheus.yml" >&2

days=15
if [[ -n ${METRICS_WORKSPACE:-} ]]; then
  days=1
  # Only root and the cluster's default user can get the node's credentials (HeadNode/Imds/Secured). ParallelCluster's
  # program adds this user, and saves the rule for the next boot.
  if [[ -x $IMDS ]]; then "$IMDS" --allow prometheus >&2; fi
fi
# The limit is calculated only once, since the data itself reduces the free space.
[[ -s $FOLDER/disk_gb ]] || put "$FOLDER/disk_gb" <<<"$(disk_gb)"
install -d -o prometheus -g prometheus -m 750 "$DATA"
start_service prometheus Prometheus <<END
ExecStart=/usr/bin/prometheus --config.file=$FOLDER/prometheus.yml --storage.tsdb.path=$DATA \\
  --storage.tsdb.retention.time=${days}d --storage.tsdb.retention.size=$(<"$FOLDER/disk_gb")GB \\
  --web.listen-address=127.0.0.1:9090
ExecReload=/bin/kill -HUP \$MAINPID
Nice=5
MemoryMax=25%
OOMScoreAdjust=500
ReadWritePaths=$DATA
END
