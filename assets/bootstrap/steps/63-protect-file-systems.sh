#!/usr/bin/env bash
#
# Lets only root and system users connect to the servers of EFS, NFS and Lustre, on the head node to Prometheus,
# Alertmanager and node_exporter, and where several people share the cluster, to the metadata service of compute nodes,
# which gives the role of the node.
#
# Alertmanager takes alerts and silences from whoever connects. Sessions of Systems Manager that forward a port run as root.
# These servers trust the uid that a client sends, so a job with an NFS client of its own could act as root on EFS. Mounts
# are connections of the kernel, and efs-utils' tunnels, whose loopback ports ask for no identity, run as root. The rules
# match the owner of a socket: uids from 1000 on, which are the cluster's user, users of a file or a directory, subordinate
# ids of containers, and nobody. They reject the first packet of a connection (--syn), not the replies of a server: a
# socket that the head node's NFS server accepts may have the uid of an earlier request's user, and its client the port 988.
#
# A reboot loses the rules: training-cluster-firewall.service adds them before users can log in. ParallelCluster's own
# service then replaces all rules by those that it saved at an earlier boot, so a drop-in adds them after it, too.
#
#   63-protect-file-systems.sh          adds the rules, and installs the service
#   63-protect-file-systems.sh rules    adds the rules
#
# Called by: run-steps.sh, as root; with `rules`, both services. Environment: NODE_TYPE, BUNDLE, TRAINING_ROOT; with `rules`
#   HIDES_ROLE. Safe to run again: the rules are replaced in one step.
# Budget: 10 s
set -euo pipefail
shopt -s inherit_errexit

# TUNNELS: port_range_lower_bound and _upper_bound of efs-utils (/etc/amazon/efs/efs-utils.conf).
readonly LUSTRE=988 NFS=2049 TUNNELS=20049:21049
# As in steps 86 to 88.
readonly MONITORING=9090,9093,9100
readonly CHAIN=TRAINING_CLUSTER
readonly CONFIG="${TRAINING_CLUSTER_CONFIG:-${TRAINING_ROOT:-}/opt/parallelcluster/shared/cluster-config.yaml}"
readonly OF_USERS=(--match owner --uid-owner 1000-4294967294 --jump "$CHAIN")
readonly UNITS="${TRAINING_ROOT:-}/etc/systemd/system"

report_failure() {
  local -r status=$?
  if ((status)); then printf 'this node does not keep users from the servers of EFS: see the line above (%s)\n' "$status" >&2; fi
}
trap report_failure EXIT

# add_rules PROGRAM LOOPBACK METADATA: with --noflush only this chain is replaced.
add_rules() {
  local monitoring="" metadata=""
  if [[ $HIDES_ROLE == yes ]]; then
    metadata="-A $CHAIN --protocol tcp --destination $3 --jump REJECT --reject-with tcp-reset"
  fi
  if [[ $NODE_TYPE == HeadNode ]]; then
    monitoring="-A $CHAIN --protocol tcp --syn --destination $2 --match multiport --dports $MONITORING"
    monitoring+=" --jump REJECT --reject-with tcp-reset"
  fi
  "$1-restore" --wait --noflush <<END
*filter
:$CHAIN - [0:0]
-A $CHAIN --protocol tcp --syn --dport $LUSTRE --jump REJECT --reject-with tcp-reset
-A $CHAIN --protocol tcp --syn --dport $NFS --jump REJECT --reject-with tcp-reset
-A $CHAIN --protocol tcp --syn --destination $2 --dport $TUNNELS --jump REJECT --reject-with tcp-reset
$monitoring
$metadata
COMMIT
END
  if ! "$1" --wait --check OUTPUT "${OF_USERS[@]}" 2>/dev/null; then
    "$1" --wait --insert OUTPUT "${OF_USERS[@]}"
  fi
}

# On head and login nodes ParallelCluster's own rules do that (Imds.Secured).
if [[ ${1:-} != rules ]]; then
  HIDES_ROLE=no
  if [[ $NODE_TYPE == ComputeFleet ]] && grep -qs users-role= "$CONFIG"; then HIDES_ROLE=yes; fi
fi
add_rules iptables 127.0.0.0/8 169.254.169.254
if [[ -e /proc/net/if_inet6 ]]; then add_rules ip6tables ::1 fd00:ec2::254; fi
if [[ ${1:-} == rules ]]; then exit; fi

source "$BUNDLE/bootstrap/lib/put.sh"
readonly KNOWN="NODE_TYPE=$NODE_TYPE HIDES_ROLE=$HIDES_ROLE"
readonly COMMAND="/usr/bin/env $KNOWN bash $BUNDLE/bootstrap/steps/63-protect-file-systems.sh rules"
put "$UNITS/training-cluster-firewall.service" <<END
[Unit]
Description=Training Cluster: let only root connect to the servers of file systems and to monitoring
Before=systemd-user-sessions.service cron.service crond.service slurmd.service

[Service]
Type=oneshot
Environment="PATH=$PATH"
ExecStart=$COMMAND

[Install]
WantedBy=multi-user.target
END
# After ExecStop, with which that service saves all rules.
put "$UNITS/parallelcluster-iptables.service.d/training-cluster.conf" <<END
[Service]
Environment="PATH=$PATH"
ExecStopPost=$COMMAND
END
timeout 4 systemctl daemon-reload
timeout 4 systemctl enable training-cluster-firewall.service
