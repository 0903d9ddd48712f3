"""Step 63 with the real iptables, in a network namespace: who may connect to file systems and monitoring."""

import json
import shutil
import subprocess
import sys

import pytest

from tests.unit.assets.bootstrap.step_machine import Machine
from training_cluster.paths import ASSETS

SBIN = "/usr/sbin:/sbin"
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not shutil.which("iptables", path=SBIN), reason="make setup installs iptables"),
]
STEP = ASSETS / "bootstrap" / "steps" / "63-protect-file-systems.sh"
# Listens on a port of an address, and lets a user connect to it; prints whether that user is refused.
TRY = """
import json, os, socket, sys
def refused(uid, address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, port), family=family):
        if not (child := os.fork()):
            os.setgroups([]); os.setgid(uid); os.setuid(uid)
            try: socket.socket(family).connect((address, port))
            except ConnectionRefusedError: os._exit(1)
            os._exit(0)
        return bool(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(json.dumps([refused(*each) for each in json.loads(sys.argv[1])]))
"""
# A server of a user answers a client of root whose own port is Lustre's.
ANSWER = """
import os, socket
os.seteuid(1000)
server = socket.create_server(("127.0.0.1", 3000))
os.seteuid(0)
client = socket.create_connection(("127.0.0.1", 3000), timeout=2, source_address=("127.0.0.1", 988))
os.seteuid(1000)
server.accept()[0].sendall(b"answer")
print(client.recv(9).decode())
"""
USER, NOBODY, SUBORDINATE, SLURM, ROOT = 1000, 65534, 100_000, 401, 0
OWN = "10.9.9.9"
METADATA = "169.254.169.254"
SERVERS = [(OWN, 2049), (OWN, 988), ("::1", 2049), ("127.0.0.1", 20049), ("127.0.0.1", 21048)]
OTHERS = [(OWN, 20049), ("127.0.0.1", 12345), (METADATA, 80)]
MONITORING = [("127.0.0.1", 9093), ("::1", 9090), ("127.0.0.1", 9100)]


def in_namespace(node: Machine, script: str) -> str:
    """Run commands in a network namespace with a loopback interface and an address of its own."""
    node.program("systemctl")
    begin = f"ip link set lo up; ip address add {OWN}/32 dev lo; ip address add {METADATA}/32 dev lo; "
    done = subprocess.run(
        ["unshare", "--net", "bash", "-euo", "pipefail", "-c", begin + script],
        env=node.environment | {"PATH": f"{node.bin}:/usr/bin:/bin:{SBIN}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def connect(*tries: tuple[int, str, int]) -> str:
    """Return a command that prints which of these (uid, address, port) are refused."""
    return f"{sys.executable} -I -c '{TRY}' '{json.dumps(tries)}'"


def test_no_ordinary_user_reaches_file_systems(node: Machine) -> None:
    """A second run changes no rule, and a server of a user may answer any port.

    Sockets that the head node's NFS server accepts have the uid of some user of a client.
    """
    users = (USER, NOBODY, SUBORDINATE, SLURM, ROOT)
    command = connect(*((uid, *each) for uid in users for each in SERVERS + OTHERS))
    rules = "iptables --list-rules; ip6tables --list-rules; echo"
    answer = f"{sys.executable} -I -c '{ANSWER}'"
    output = in_namespace(
        node, f"{command}; echo; bash {STEP}; {command}; echo; {rules}; bash {STEP}; {rules}; {answer}"
    )
    before, after, first, second, answered = output.split("\n\n")
    assert json.loads(before) == [False] * 8 * len(users)
    assert json.loads(after) == [refused for uid in users for refused in [uid >= USER] * 5 + [False] * 3]
    assert (first, first.count("--uid-owner"), answered) == (second, 2, "answer\n")


@pytest.mark.parametrize("node_type", ["HeadNode", "ComputeFleet"])
def test_only_services_reach_monitoring(node: Machine, node_type: str) -> None:
    node.environment["NODE_TYPE"] = node_type
    users = (USER, SLURM, ROOT)
    command = connect(*((uid, *each) for uid in users for each in MONITORING))
    is_refused = node_type == "HeadNode"
    expected = [[is_refused] * 3, [False] * 3, [False] * 3]
    found = json.loads(in_namespace(node, f"bash {STEP}; {command}"))
    assert found == [each for of_user in expected for each in of_user]
    unit = node.text("etc/systemd/system/training-cluster-firewall.service")
    assert f"ExecStart=/usr/bin/env NODE_TYPE={node_type} " in unit


def test_jobs_of_several_people_get_no_node_role(node: Machine) -> None:
    """Also after a reboot, when the shared folder with the cluster config is not mounted yet."""
    config = node.write("opt/parallelcluster/shared/cluster-config.yaml", "Args: [users-role=users]\n")
    tries = connect((USER, METADATA, 80), (SLURM, METADATA, 80), (ROOT, METADATA, 80))
    boot = (
        "$(sed -n 's/^ExecStart=//p' \"$TRAINING_ROOT\"/etc/systemd/system/training-cluster-firewall.service)"
    )
    flushed = f"rm {config}; iptables --flush; {boot}; {tries}"
    assert in_namespace(node, f"bash {STEP}; {tries}; {flushed}").split("\n") == [
        "[true, false, false]"
    ] * 2 + [""]


def test_root_of_a_user_namespace_is_refused(node: Machine) -> None:
    inside = "unshare --user --map-root-user -- bash -c 'exec 3<>/dev/tcp/127.0.0.1/2049' 2>&1 || true"
    listen = f"{sys.executable} -m http.server --bind 127.0.0.1 2049 >/dev/null 2>&1 & trap 'kill $!' EXIT; "
    wait = "until exec 3<>/dev/tcp/127.0.0.1/2049; do sleep 0.05; done 2>/dev/null; "
    as_user = f'setpriv --reuid={USER} --regid={USER} --clear-groups bash -c "{inside}"'
    assert "refused" in in_namespace(node, f"{listen}{wait}bash {STEP}; cd /; {as_user}")


def test_rules_return_after_parallelclusters_restore(node: Machine) -> None:
    """At boot its service replaces all rules by saved ones, then stops, which the drop-in waits for."""
    command = (
        "$(sed -n 's/^ExecStopPost=//p' \"$TRAINING_ROOT\"/etc/systemd/system/*.d/training-cluster.conf)"
    )
    refused = connect((USER, "127.0.0.1", 2049))
    # As that service saves the rules of Imds.Secured.
    save = "iptables -A OUTPUT -d 169.254.169.254 -j REJECT; iptables-save >saved; "
    restored = f"{save}bash {STEP}; iptables-restore <saved; {refused}; {command}; {refused}"
    assert in_namespace(node, f"cd {node.folder}; {restored}").split() == ["[false]", "[true]"]
    unit = node.text("etc/systemd/system/training-cluster-firewall.service")
    command = f"ExecStart=/usr/bin/env NODE_TYPE={node.environment['NODE_TYPE']} HIDES_ROLE=no bash"
    assert f"{command} {node.bundle}/bootstrap/steps/{STEP.name} rules\n" in unit
    assert node.calls() == ["systemctl daemon-reload", "systemctl enable training-cluster-firewall.service"]
