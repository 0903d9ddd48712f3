#!/usr/bin/env bash
#
# Lets only the nodes of this compute node's jobs connect to it. The ports of a training (torch's rendezvous, NCCL, Gloo)
# ask for no identity. A node runs jobs of one user at a time (ExclusiveUser), since users behind one address look alike:
# on a node of a shared queue, the other users there pass too.
#
#   peers.sh             makes the rules: at a node's start, after a deploy, at boot. The first time on a node, which may have
#                        jobs from before the deploy that brought the rules, these count
#   peers.sh open JOB    before a job, whose nodes are in SLURM_JOB_NODELIST
#   peers.sh close JOB   after it
#
# All nodes reach what asks for an identity or belongs to root: sshd, slurmd, srun and salloc (SrunPortRange), and what comes
# from a port below 1024, such as answers of DNS and NTP, and Lustre's servers. The head node's Prometheus reaches
# node_exporter. The node's own programs reach everything. Of a TCP connection only the first packet is judged, so none is
# tracked. EFA's traffic is not IP.
#
# Called by: step 74-isolate-jobs.sh and its services, prolog.sh and epilog.sh, as root, on compute nodes of a cluster with
#   users. Safe to run again, and twice at a time: the rules follow from the files of the jobs in PEERS.
set -euo pipefail
shopt -s inherit_errexit nullglob

readonly PEERS="${TRAINING_ROOT:-}/run/training-cluster/peers" CHAIN=TRAINING_CLUSTER_PEERS
readonly CFNCONFIG="${TRAINING_ROOT:-}/etc/parallelcluster/cfnconfig"
# sshd, SlurmdPort of ParallelCluster, SrunPortRange of constructs/training_cluster/cluster/config.py.
readonly OPEN=22,6818,61000:65000

PATH+=:/opt/slurm/bin # for steps and services

# addresses NODES: prints the IPv4 addresses of a list of nodes. ParallelCluster's DNS has their names, unless `Dns` in the
# cluster config turns it off. slurmctld always has the addresses, but would answer all nodes of a large job at once. What
# does not answer is left out, so that the other addresses count: 2000 nodes take at most 50 s (PEERS_S in prolog.sh).
addresses() {
  local -a nodes found
  mapfile -t nodes < <(scontrol show hostnames "$1")
  mapfile -t found < <(printf '%s\n' "${nodes[@]}" | xargs --max-procs=32 --max-args=8 timeout 5 getent ahostsv4 |
    awk '$2 == "STREAM" { print $1 }')
  printf '%s\n' "${found[@]}"
  if ((${#found[@]} < ${#nodes[@]})); then
    timeout 10 scontrol show node --oneliner "$1" | grep --only-matching --perl-regexp ' NodeAddr=\K\S+' || true
  fi
}

# Prints the nodes of the job that starts; of a heterogeneous job, those of all its components.
nodes_of_job() {
  local host_list="${SLURM_JOB_NODELIST:-$SLURM_NODELIST}" # Slurm before 23.02 has the shorter name alone
  if [[ -n ${SLURM_HET_JOB_ID:-} ]]; then
    host_list+=",$(timeout 5 squeue --noheader --all --jobs="$SLURM_HET_JOB_ID" --format=%N | grep . | paste -sd ,)" || true
  fi
  printf '%s\n' "${host_list%,}"
}

# write_peers JOB NODES
write_peers() {
  addresses "$2" >"$PEERS/.$1"
  mv "$PEERS/.$1" "$PEERS/$1"
}

# Writes the files of the jobs that run here already.
spare_running() {
  local name state job nodes
  if ! name="$(cat "${TRAINING_ROOT:-}/etc/parallelcluster/slurm_plugin/slurm_nodename" 2>/dev/null)"; then return; fi
  while read -r state job nodes; do
    if [[ $state == R ]]; then write_peers "$job" "$nodes"; fi
  done < <(timeout 3 squeue --noheader --all --nodelist="$name" --format='%t %A %N')
}

# add_rules PROGRAM ICMP [RULE...]: with --noflush only this chain is replaced.
add_rules() {
  local -a rules=('--in-interface lo --jump RETURN' "--protocol $2 --jump RETURN" '--protocol tcp ! --syn --jump RETURN'
    "--protocol tcp --match multiport --dports $OPEN --jump RETURN"
    '--protocol tcp --sport :1023 --jump RETURN' '--protocol udp --sport :1023 --jump RETURN'
    "${@:3}" '--protocol tcp --jump REJECT --reject-with tcp-reset' '--jump DROP')
  "$1-restore" --wait --noflush < <(printf '*filter\n:%s - [0:0]\n' "$CHAIN" &&
    printf -- "-A $CHAIN %s\n" "${rules[@]}" && printf 'COMMIT\n')
  if ! "$1" --wait --check INPUT --jump "$CHAIN" 2>/dev/null; then "$1" --wait --insert INPUT --jump "$CHAIN"; fi
}

if [[ ! -d $PEERS ]]; then
  mkdir -p "$PEERS"
  spare_running
fi
case "${1:-}" in
  open) write_peers "$2" "$(nodes_of_job)" ;;
  close) rm -f "$PEERS/$2" ;;
esac
exec 9<"$PEERS"
flock 9
mapfile -t peers < <(cat /dev/null "$PEERS"/* | sort -u | sed --quiet 's/^[0-9.]\+$/--source & --jump RETURN/p')
mapfile -t -O "${#peers[@]}" peers < <(
  sed --quiet 's/^cfn_head_node_private_ip=\([0-9.]\+\)$/--protocol tcp --source \1 --dport 9100 --jump RETURN/p' "$CFNCONFIG"
)
add_rules iptables icmp "${peers[@]}"
if [[ -e /proc/net/if_inet6 ]]; then add_rules ip6tables ipv6-icmp; fi
