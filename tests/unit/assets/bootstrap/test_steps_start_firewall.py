"""Step 63 with the real iptables, in a network namespace: who may connect to the servers of file systems."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.start_step_node import STEPS, Node

SBIN = "/usr/sbin:/sbin"
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not shutil.which("iptables", path=SBIN), reason="make setup installs iptables"),
]
STEP = STEPS / "63-protect-file-systems.sh"
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


def in_namespace(node: Node, script: str) -> str:
    """Run commands in a network namespace with a loopback interface and an address of its own."""
    begin = f"ip link set lo up; ip address add {OWN}/32 dev lo; "
    path = f"{node.programs}:/usr/bin:/bin:{SBIN}"
    done = subprocess.run(
        ["unshare", "--net", "bash", "-euo", "pipefail", "-c", begin + script],
        env={"PATH": path, "BUNDLE": str(node.bundle), "TRAINING_ROOT": str(node.slash)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def connect(*tries: tuple[int, str, int]) -> str:
    """Return a command that prints which of these (uid, address, port) are refused."""
    return f"{sys.executable} -I -c '{TRY}' '{json.dumps(tries)}'"


@pytest.fixture
def node(tmp_path: Path) -> Node:
    node = Node(tmp_path)
    node.stub("systemctl")
    return node


@pytest.mark.parametrize("uid", [USER, NOBODY, SUBORDINATE, SLURM, ROOT])
def test_no_ordinary_user_reaches_file_systems(node: Node, uid: int) -> None:
    servers = [(OWN, 2049), (OWN, 988), ("::1", 2049), ("127.0.0.1", 20049), ("127.0.0.1", 21048)]
    others = [(OWN, 20049), ("127.0.0.1", 12345)]
    command = connect(*((uid, *each) for each in servers + others))
    before, after = map(json.loads, in_namespace(node, f"{command}; bash {STEP}; {command}").splitlines())
    assert before == [False] * 7
    assert after == [uid >= USER] * 5 + [False] * 2


def test_root_of_a_user_namespace_is_refused(node: Node) -> None:
    inside = "unshare --user --map-root-user -- bash -c 'exec 3<>/dev/tcp/127.0.0.1/2049' 2>&1 || true"
    listen = f"{sys.executable} -m http.server --bind 127.0.0.1 2049 >/dev/null 2>&1 & trap 'kill $!' EXIT; "
    wait = "until exec 3<>/dev/tcp/127.0.0.1/2049; do sleep 0.05; done 2>/dev/null; "
    as_user = f'setpriv --reuid={USER} --regid={USER} --clear-groups bash -c "{inside}"'
    assert "refused" in in_namespace(node, f"{listen}{wait}bash {STEP}; cd /; {as_user}")


def test_a_server_may_answer_any_port(node: Node) -> None:
    """Sockets that the head node's NFS server accepts have the uid of some user of a client."""
    assert in_namespace(node, f"bash {STEP}; {sys.executable} -I -c '{ANSWER}'") == "answer\n"


def test_a_second_run_changes_no_rule(node: Node) -> None:
    rules = "iptables --list-rules; ip6tables --list-rules; echo"
    first, second, _ = in_namespace(node, f"bash {STEP}; {rules}; bash {STEP}; {rules}").split("\n\n")
    assert first == second
    assert first.count("--uid-owner") == 2


def test_the_rules_return_after_parallelclusters_restore(node: Node) -> None:
    """At boot its service replaces all rules by saved ones, then stops, which the drop-in waits for."""
    command = (
        "$(sed -n 's/^ExecStopPost=//p' \"$TRAINING_ROOT\"/etc/systemd/system/*.d/training-cluster.conf)"
    )
    refused = connect((USER, "127.0.0.1", 2049))
    # As that service saves the rules of Imds.Secured.
    save = "iptables -A OUTPUT -d 169.254.169.254 -j REJECT; iptables-save >saved; "
    restored = f"{save}bash {STEP}; iptables-restore <saved; {refused}; {command}; {refused}"
    assert in_namespace(node, f"cd {node.slash.parent}; {restored}").split() == ["[false]", "[true]"]
    unit = node.text("etc/systemd/system/training-cluster-firewall.service")
    assert f"ExecStart=/usr/bin/env bash {node.bundle}/bootstrap/steps/{STEP.name} rules\n" in unit
    assert node.calls() == ["systemctl daemon-reload", "systemctl enable training-cluster-firewall.service"]
