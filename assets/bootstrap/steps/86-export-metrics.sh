#!/usr/bin/env bash
#
# Starts node_exporter (38-install-exporter.sh), which serves this node's metrics and the text files of metrics/
# to the Prometheus of the head node. On the head node it also installs the prolog and the epilog that record which job
# runs on a node.
#
# node_exporter listens on the node's first address, which only the nodes' security group can reach; on the head node, on
# 127.0.0.1.
#
# Called by: run-steps.sh, as root. Environment: NODE_TYPE, BUNDLE, TRAINING_ROOT. Safe to run again. A node works
#   without it: Prometheus then shows the node as down.
# Nodes: HeadNode ComputeFleet
# Where: any
# Required: no
# Budget: 60 s
# Metrics: prometheus amp
# Reads: bootstrap/lib/service.sh
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/put.sh"
source "$BUNDLE/bootstrap/lib/service.sh"

readonly PORT=9100

# Slurm runs every file of these folders; a rename activates the file on all nodes at once.
install_job_files() {
  local -r program="$BUNDLE/bootstrap/metrics/job-file.sh"
  local moment settings
  for moment in prolog epilog; do
    settings="readonly MOMENT=$moment"$'\n'
    if [[ -n $TRAINING_ROOT ]]; then settings+="export TRAINING_ROOT=${TRAINING_ROOT@Q}"$'\n'; fi
    put "$TRAINING_ROOT/opt/slurm/etc/scripts/$moment.d/20-training-cluster-metrics" 755 <<<"$(head -n 1 "$program")
$settings$(tail -n +2 "$program")"
  done
}

# Prints the address of the interface with the default route, since a node may have several network cards.
first_address() { ip -4 route get 192.0.2.1 | sed -n 's/.* src \([0-9.]*\).*/\1/p'; }

if [[ $NODE_TYPE == HeadNode ]]; then install_job_files; fi
if [[ ! -e $TRAINING_ROOT/etc/parallelcluster/cfnconfig ]]; then exit 0; fi # a rehearsal starts its own

command -v prometheus-node-exporter >/dev/null || {
  printf 'node_exporter is not installed: see step 38-install-exporter above, which the next node that starts runs\n' >&2
  exit 1
}
address=127.0.0.1
if [[ $NODE_TYPE == ComputeFleet ]]; then address="$(first_address 2>/dev/null)" || true; fi
[[ -n $address ]] || {
  printf 'this node has no address with a default route\n' >&2
  exit 1
}
# Only root may write there, since anyone who could would publish metrics in another user's name. /run is empty after a
# boot.
put "$TRAINING_ROOT/etc/tmpfiles.d/training-cluster-metrics.conf" <<<'d /run/training-cluster-metrics 0755 root root'
timeout 10 systemd-tmpfiles --create training-cluster-metrics.conf
start_service node-exporter "serve metrics of this node" $'After=network-online.target\nWants=network-online.target' <<END
ExecStart=/usr/bin/prometheus-node-exporter --web.listen-address=$address:$PORT --collector.disable-defaults \\
  --collector.diskstats --collector.filesystem --collector.loadavg --collector.meminfo --collector.netdev \\
  --collector.stat --collector.textfile --collector.time --collector.uname --collector.vmstat \\
  --collector.textfile.directory=/run/training-cluster-metrics \\
  --collector.filesystem.fs-types-exclude=^(lustre|nfs4?|tmpfs|overlay|squashfs|proc|sysfs|cgroup2?|devtmpfs|fuse.*)\$ \\
  --collector.netdev.device-exclude=^(lo|veth.*|docker.*)\$
Nice=10
MemoryMax=256M
END
