"""Credentials of each user of a node, asked for by real users with AWS's own client; `aws` is a stand-in."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from ops.asset_code import asset_code

ALICE, BOB, TWIN, NOBODY, SLURM, ROOT = 5001, 5002, 7001, 65534, 401, 0
NAMES = {ALICE: "alice", BOB: "bob", TWIN: "alice", NOBODY: "nobody", SLURM: "slurm", ROOT: "root"}
AWS = """#!/bin/bash
echo "$*" >>{folder}/calls
case $2 in
  get-caller-identity) echo '{{"Arn": "arn:aws-cn:sts::111122223333:assumed-role/RoleGpu/i-1"}}' ;;
  *) [[ $* =~ Value\\"..\\"([a-z]+) ]] && sed "s/NAME/${{BASH_REMATCH[1]}}/" <<'END' ;;
{{"Credentials": {{"AccessKeyId": "of-NAME", "SecretAccessKey": "s", "SessionToken": "t",
 "Expiration": "2036-01-01T00:00:00+00:00"}}}}
END
esac
"""
# Prints which credentials each uid gets, or the reason why it gets none.
ASK = """
import json, os, sys
from botocore.utils import ContainerMetadataFetcher
ContainerMetadataFetcher.SLEEP_TIME = 0
def ask(uid):
    if not (child := os.fork()):
        os.setgroups([]); os.setgid(uid); os.setuid(uid)
        try: print(ContainerMetadataFetcher().retrieve_full_uri(sys.argv[1])["AccessKeyId"])
        except Exception as error: print(next((each for each in ("403", "503") if each in str(error)), error))
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
try: ContainerMetadataFetcher().retrieve_full_uri(sys.argv[1])  # imports what other users cannot read
except Exception: pass
for each in sys.argv[2:]: ask(int(each))
"""


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module on a node of a cluster that several people share."""
    module: ModuleType = asset_code("bootstrap/services", "credentials").credentials
    (tmp_path / "aws").write_text(AWS.format(folder=tmp_path))
    (tmp_path / "aws").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("USERS_ROLE", "TrainingClusterStack-UsersRole0-X")
    monkeypatch.setattr(module, "ADDRESS", ("127.0.0.1", 0))
    users = {uid: SimpleNamespace(pw_name=name, pw_uid=uid) for uid, name in NAMES.items()}
    named = {each.pw_name: each for each in reversed(users.values())}
    monkeypatch.setattr(
        module, "pwd", SimpleNamespace(getpwuid=users.__getitem__, getpwnam=named.__getitem__)
    )
    return module


@pytest.fixture
def address(service: ModuleType) -> Iterator[str]:
    """The address at which the service answers."""
    with service.serve() as server:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


def ask(address: str, *uids: int) -> list[str]:
    """Return what AWS's client gets as each of the users."""
    command = [sys.executable, "-c", ASK, address, *map(str, uids)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.root
def test_each_user_gets_credentials_of_their_own(address: str, tmp_path: Path) -> None:
    """No system user, and nobody who has another's name. Processes of a user share a session."""
    asked = (ALICE, BOB, ALICE, TWIN, NOBODY, SLURM, ROOT)
    assert ask(address, *asked) == ["of-alice", "of-bob", "of-alice", *["403"] * 4]
    calls = [each for each in (tmp_path / "calls").read_text().splitlines() if "assume-role" in each]
    role = "sts assume-role --role-arn arn:aws-cn:iam::111122223333:role/TrainingClusterStack-UsersRole0-X"
    assert calls == [
        f'{role} --role-session-name {uid}-{name} --tags [{{"Key": "user", "Value": "{name}"}}] '
        "--duration-seconds 3600 --output json"
        for uid, name in ((ALICE, "alice"), (BOB, "bob"))
    ]


@pytest.mark.root
def test_a_session_is_renewed_before_its_end(
    service: ModuleType, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "EARLY_S", service.SESSION_S)
    ask(address, ALICE, ALICE)
    assert (tmp_path / "calls").read_text().count("assume-role") == 2
    (tmp_path / "aws").write_text("#!/bin/sh\nexit 1\n")
    assert ask(address, ALICE) == ["503"], "AWS's tools ask again"


@pytest.mark.parametrize("host", ["127.0.0.1", "::ffff:127.0.0.1"])
def test_the_kernel_knows_a_connected_caller(service: ModuleType, host: str) -> None:
    """A socket that is closed has the uid of root in the kernel's table."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        client.connect((host, server.getsockname()[1]))
        connection, _ = server.accept()
        with connection:
            assert service.caller(connection) == os.getuid()
            client.close()
            assert service.caller(connection) is None


def test_one_user_needs_no_credentials(service: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USERS_ROLE", "")
    assert service.serve() is None
