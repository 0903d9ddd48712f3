"""`trainctl connect`: a shell on the head node, or one command there."""

import json
import os
import pwd
import shlex
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ops import connect
from ops.account.region_and_profile import choose_account
from ops.usage import OpsError
from tests.unit.ops.jobs_head_node import HEAD_NODE, Call, PlayedCluster
from training_cluster.cluster.session_command import cluster_user
from training_cluster.flags.cluster import PCLUSTER_VERSION

DOCUMENT = ["--document-name", "AWS-StartInteractiveCommand", "--parameters"]
SESSION = [
    *("aws", "ssm", "start-session", "--region", "us-east-1", "--target", HEAD_NODE),
    *(*DOCUMENT, "command=sudo --login --user ubuntu"),
]


@pytest.fixture
def connects(cluster: PlayedCluster, call: Call) -> Call:
    return partial(call, "connect")


def head_node(cluster: PlayedCluster, *, address: str | None = "203.0.113.7", os: str = "ubuntu2204") -> None:
    tags = (
        [{"Key": "parallelcluster:attributes", "Value": f"{os}, slurm, {PCLUSTER_VERSION}, x86_64"}]
        if os
        else []
    )
    instance: dict[str, Any] = {"State": {"Name": "running"}, "Tags": tags}
    instance |= {"PublicIpAddress": address} if address else {}
    cluster.says("id", f"{cluster_user(os)}\n")
    cluster.account.answers["DescribeInstances"] = {"Reservations": [{"Instances": [instance]}]}


def test_a_commands_output_is_shown(cluster: PlayedCluster, connects: Call) -> None:
    cluster.does("sinfo", 'printf "%s\\n" "$@"')
    assert connects("--", "sinfo", "--format", "%R %T", "'a b'") == (0, "--format\n%R %T\n'a b'\n", "")
    told = json.loads(connects("--json", "--", "sinfo", "-a")[1])
    assert told == {"command": ["sinfo", "-a"], "output": "-a\n"}
    cluster.says("sinfo", "", error="Unable to contact slurm controller", code=1)
    assert connects("--", "sinfo") == (1, "", "sinfo: Unable to contact slurm controller\n")
    cluster.does("squeue", "head -c 30000 /dev/zero | tr '\\0' x")
    code, said, note = connects("--", "squeue")
    assert (code, len(said)) == (0, 24_000)
    assert "returns no more" in note


def test_the_command_that_opens_a_session_is_printed(cluster: PlayedCluster, connects: Call) -> None:
    head_node(cluster)
    assert connects("--print") == (0, shlex.join(SESSION) + "\n", "")
    assert json.loads(connects("--json")[1]) == {"command": SESSION}


@pytest.mark.parametrize(("os", "user"), [("alinux2023", "ec2-user"), ("ubuntu2404", "ubuntu")])
def test_sessions_have_the_cluster_user_s_login_shell(
    os: str, user: str, cluster: PlayedCluster, connects: Call
) -> None:
    head_node(cluster, os=os)
    assert shlex.split(connects("--print")[1])[-4:] == [*DOCUMENT, f"command=sudo --login --user {user}"]


@pytest.mark.parametrize(
    "printed", ["other\n", "root bash /home/bob/evil\n", 'bob" --endpoint-url http://evil\n', "-x\n", ""]
)
def test_a_user_s_profile_cannot_change_session_commands(printed: str, cluster: PlayedCluster) -> None:
    """The session's shell may use sudo, and another person may open it: trainctl --as NAME connect."""
    head_node(cluster)
    user = pwd.getpwuid(os.getuid()).pw_name  # the rehearsal knows no other
    choose_account(region=None, profile=None, user=user)
    try:
        cluster.says("id", printed)
        with pytest.raises(OpsError, match=f"The login shell of {user} did not return its name"):
            connect.session_command("training", cluster.client)
        cluster.says("id", f"Welcome\n{user}\n")
        command = connect.session_command("training", cluster.client)
    finally:
        choose_account(region=None, profile=None)
    assert command[-1] == f"command=sudo --login --user {user}"


def test_a_shell_takes_the_place_of_trainctl(
    cluster: PlayedCluster, connects: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    head_node(cluster)
    became = list[list[str]]()
    monkeypatch.setattr(connect.found, "__kwdefaults__", {"which": lambda name: f"/bin/{name}"})
    monkeypatch.setattr("os.execv", lambda path, argv: became.append([path, *argv]))
    assert (connects()[0], became) == (0, [["/bin/aws", "/bin/aws", *SESSION[1:]]])


@pytest.mark.parametrize(
    ("here", "command", "missing"),
    [
        (set(), SESSION, "aws, session-manager-plugin"),
        ({"aws"}, SESSION, "session-manager-plugin"),
        ({"session-manager-plugin"}, SESSION, "aws"),
        ({"aws", "session-manager-plugin"}, ["ssh", "a@b"], "ssh"),
    ],
)
def test_a_missing_program_is_named_with_its_source(here: set[str], command: list[str], missing: str) -> None:
    with pytest.raises(OpsError) as error:
        connect.found(command, which=lambda name: name if name in here else None)
    said = str(error.value)
    assert said.startswith(f"Not on this machine: {missing}.\n")
    assert said.count("install: ") == len(missing.split(", "))


@pytest.mark.parametrize(
    ("os", "user"),
    [("alinux2023", "ec2-user"), ("ubuntu2204", "ubuntu"), ("rhel9", "ec2-user"), ("rocky8", "rocky")],
)
def test_ssh_has_the_clusters_user_address_and_key(
    os: str, user: str, cluster: PlayedCluster, connects: Call, tmp_path: Path
) -> None:
    head_node(cluster, os=os)
    key = tmp_path / "training-key.pem"
    key.touch()
    assert connects("--ssh", "-i", str(key), "--print")[1] == f"ssh -i {key} {user}@203.0.113.7\n"
    assert connects("--ssh", "--print")[1] == f"ssh {user}@203.0.113.7\n"


def test_a_shell_that_cannot_be_says_why(cluster: PlayedCluster, connects: Call) -> None:
    for arguments, node, said in (
        (("--ssh", "-i", "/none.pem"), {}, "There is no key /none.pem.\n  type:   the command of"),
        (("--ssh",), {"address": None}, "has no public address"),
        (("--ssh",), {"os": ""}, "names an unknown os"),
        (("--ssh",), {"os": "windows"}, "names an unknown os: windows"),
    ):
        head_node(cluster, **node)
        code, out, err = connects(*arguments, "--print")
        assert (code, out) == (1, "")
        assert said in err


@pytest.mark.parametrize("endpoint", ["https://localhost:4566", "https://127.0.1.1:9", "http://[::1]:1"])
def test_a_local_aws_offers_commands_without_a_shell(endpoint: str, cluster: PlayedCluster) -> None:
    def client(service: str) -> Any:
        local = SimpleNamespace(meta=SimpleNamespace(endpoint_url=endpoint))
        return local if service == "ssm" else cluster.client(service)

    head_node(cluster)
    with pytest.raises(OpsError, match=r"trainctl connect --cluster training -- squeue"):
        connect.session_command("training", client)
    with pytest.raises(OpsError, match=r"trainctl connect --cluster training -- squeue"):
        connect.ssh_command("training", client, key=None)
