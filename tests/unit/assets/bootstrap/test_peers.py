"""peers.sh with the real iptables, as prolog and epilog call it: who may connect to a node of a job.

Each node has a network namespace of its own.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rehearsal.local_slurm.cluster import SYSTEM_PATH
from tests.unit.assets.bootstrap.health.health_node import HealthNode
from training_cluster.cluster.config import SEVERAL_USERS_SETTINGS
from training_cluster.paths import ASSETS

pytestmark = pytest.mark.root
PEERS = ASSETS / "bootstrap" / "peers.sh"
# Connects to ports of a node from a port of one's own (0: any), and prints which are open; 0 stands for UDP.
TRY = """
import json, socket, sys
address, mine, *ports = json.loads(sys.argv[1])
def is_open(port):
    source = ("", mine)
    if port: return not socket.create_connection((address, port), 2, source).close()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.bind(source); client.settimeout(0.3); client.sendto(b"?", (address, 12345))
        return client.recv(1) == b"!"
found = []
for port in ports:
    try: found.append(is_open(port))
    except (ConnectionRefusedError, TimeoutError): found.append(False)
print(json.dumps(found))
"""
LISTEN = """
import json, socket, sys, threading
servers = [socket.create_server(("", port)) for port in json.loads(sys.argv[1])]
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.bind(("", 12345))
print("up", flush=True)
while True: udp.sendto(b"!", udp.recvfrom(9)[1])
"""
BEGIN = """
ip link set lo up; ip link add bridge type bridge; ip link set bridge up
mount -t tmpfs tmpfs /run
for n in 2 3 4; do
  ip netns add n$n; ip link add v$n type veth peer name eth0 netns n$n; ip link set v$n master bridge up
  ip -n n$n link set lo up; ip -n n$n link set eth0 up; ip -n n$n address add 10.77.0.$n/24 dev eth0
done
on() { ip netns exec "n$1" "${@:2}"; }
slurm() {
  on 2 env -i SLURMD_NODENAME=n-2 SLURM_JOB_ID="$2" SLURM_JOB_NODELIST="$3" ${HET:+"SLURM_HET_JOB_ID=$HET"} \\
    "$SCRIPTS/$1.d/10-training-cluster"
}
mkfifo up; ip netns exec n2 $LISTEN >up & trap 'kill $!' EXIT; read -r _ <up
try() { for n in 2 3 4; do on $n $TRY "[\\"10.77.0.2\\", ${1:-0}, 12345, ${2:-0}]"; done; }
"""
HOSTS = "127.0.0.1 localhost\n" + "".join(f"10.77.0.{n} n-{n}\n" for n in (2, 3, 4))


def in_network(node: HealthNode, script: str, *ports: int) -> list[list[bool]]:
    """Run commands in a network of three nodes; return what each `try` printed."""
    python = f"{sys.executable} -I"
    (node.folder / "hosts").write_text(HOSTS)
    (node.folder / "try").write_text(TRY)
    (node.folder / "listen").write_text(LISTEN)
    environment = {
        "PATH": SYSTEM_PATH,
        "SCRIPTS": str(node.prolog_folder.parent),
        "TRY": f"{python} {node.folder}/try",
        "LISTEN": f"{python} {node.folder}/listen {json.dumps([12345, *ports]).replace(' ', '')}",
        "PEERS": str(PEERS),
        "TRAINING_ROOT": str(node.root),
    }
    mount = f"mount --bind {node.folder}/hosts /etc/hosts; "
    command = ["unshare", "--mount", "--net", "bash", "-euo", "pipefail", "-c", mount + BEGIN + script]
    done = subprocess.run(
        command, env=environment, cwd=node.folder, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr + node.health_log()
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def node(tmp_path: Path) -> HealthNode:
    node = HealthNode(tmp_path)
    node.install_prolog()
    bootstrap = node.bundle / "bootstrap"
    bootstrap.unlink()
    (bootstrap / "health").mkdir(parents=True)
    for name in ("check-node.sh", "judge-node.sh"):
        (bootstrap / "health" / name).touch()
    (bootstrap / "peers.sh").symlink_to(PEERS)
    node.stub("scontrol", 'if [[ $2 == hostnames ]]; then echo "${3//,/ }" | xargs -n 1; fi')
    return node


def test_only_a_jobs_nodes_reach_it(node: HealthNode) -> None:
    """By TCP and UDP; a deploy meanwhile changes nothing, and each job has nodes of its own."""
    output = in_network(
        node,
        "try; on 2 bash $PEERS; try; slurm prolog 7 n-2,n-3; on 2 bash $PEERS; try; "
        "slurm prolog 8 n-2,n-4; slurm epilog 7 n-2,n-3; try; slurm epilog 8 n-2,n-4; try",
    )
    both, none = [True, True], [False, False]
    assert output == [
        *[both, both, both],
        *[both, none, none],
        *[both, both, none],
        *[both, none, both],
        *[both, none, none],
    ]


def test_what_asks_who_calls_is_open(node: HealthNode) -> None:
    """And what calls from a port of root, such as Lustre's servers and DNS."""
    first, last = map(int, str(SEVERAL_USERS_SETTINGS["SrunPortRange"]).split("-"))
    ports = (22, 6818, first, last)
    tries = "; ".join(f"try 0 {port}" for port in (*ports, first - 1, last + 1))
    output = in_network(node, f"on 2 bash $PEERS; {tries}; try 1023", *ports, first - 1, last + 1)
    strangers = [found for at, found in enumerate(output) if at % 3 > 0]
    assert strangers[:8] == [[False, True]] * 8
    assert strangers[8:] == [[False, False]] * 4 + [[True, True]] * 2


def test_the_head_node_alone_reads_figures(node: HealthNode) -> None:
    node.write("etc/parallelcluster/cfnconfig", "cfn_head_node_private_ip=10.77.0.3\n")
    output = in_network(node, "on 2 bash $PEERS; try 0 9100", 9100)
    assert output == [[True, True], [False, True], [False, False]]


def test_slurm_knows_addresses_that_dns_lacks(node: HealthNode) -> None:
    """Also if DNS does not answer at all: each lookup is given up for itself, here at once."""
    node.stub("getent", "exec sleep 60")
    node.stub("timeout", 'if [[ $2 == getent ]]; then set -- 0.1 "${@:2}"; fi; exec /usr/bin/timeout "$@"')
    answer = "NodeName=x NodeAddr=10.77.0.3 Port=6818"
    node.stub("scontrol", f'if [[ $2 == hostnames ]]; then echo x; else echo "{answer}"; fi')
    output = in_network(node, "on 2 bash $PEERS; slurm prolog 7 x; try")
    assert output == [[True, True], [True, True], [False, False]]


def test_components_of_a_job_reach_each_other(node: HealthNode) -> None:
    """Slurm starts a component of a heterogeneous job as a job of its own."""
    node.stub("squeue", "printf 'n-2\\n\\nn-4\\n'")
    output = in_network(node, "on 2 bash $PEERS; HET=7 slurm prolog 8 n-2; try")
    assert output == [[True, True], [False, False], [True, True]]


def test_rules_spare_jobs_that_run_already(node: HealthNode) -> None:
    """A deploy brings the rules to nodes with jobs; a job that waits for its nodes has its prolog to come."""
    node.write("etc/parallelcluster/slurm_plugin/slurm_nodename", "n-2\n")
    node.stub("squeue", "if [[ $* == *--nodelist=n-2* ]]; then printf 'CF 8 n-2,n-4\\nR 7 n-2,n-3\\n'; fi")
    output = in_network(
        node,
        'PATH="$TRAINING_ROOT/usr/bin:$PATH"; '
        "on 2 bash $PEERS; try; slurm epilog 7 n-2,n-3; on 2 bash $PEERS; try",
    )
    assert output == [*[[True, True]] * 2, [False, False], [True, True], *[[False, False]] * 2]
