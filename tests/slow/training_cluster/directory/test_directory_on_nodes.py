"""A directory of people: a real OpenLDAP, what preflight says of it, and a node whose sssd asks it."""

import io
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ops.preflight.account.directory import check_directory
from ops.preflight.finding import Finding
from rehearsal.local_slurm.ports import find_ports
from tests.slow.training_cluster.directory.node import run_on_node
from tests.slow.training_cluster.directory.server import BASE, PACKAGES, PASSWORD, READER, Server, serve
from tests.unit.ops.fake_account import Account
from training_cluster.cluster.bundle import build_bundle
from training_cluster.directory.file import Directory, read_directory
from training_cluster.flags.settings import Settings
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.rules.context import read_settings

PATH = os.environ["PATH"] + ":/usr/sbin"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly,
    pytest.mark.root,
    pytest.mark.skipif(
        not (shutil.which("slapd", path=PATH) and shutil.which("sssd", path=PATH)),
        reason=f"apt-get install {PACKAGES}",
    ),
]
ARN = "arn:aws:secretsmanager:us-east-1:123456789012:secret:ldap-AbCdEf"
# Of a directory that is no Active Directory (docs/how-to/users.md).
POSIX = {"ldap_schema": "rfc2307", "ldap_id_mapping": "False"}
WAIT = "for _ in {1..60}; do if getent passwd alice; then break; fi; sleep 0.1; done\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    groups = {"sudo": (70100, "alice"), "nlp": (70101, "alice")}
    with serve(
        tmp_path_factory.mktemp("ldap") / "server", people={"alice": 70001, "bob": 70002}, groups=groups
    ) as server:
        yield server


def settings_of(folder: Path, server: Server, **keys: Any) -> Settings:
    """Settings of a cluster with this directory, whose file has other values of some keys."""
    content = {
        "DomainName": BASE,
        "DomainAddr": server.address,
        "PasswordSecretArn": ARN,
        "DomainReadOnlyUser": READER,
        "LdapTlsCaCert": str(server.certificate),
        "AdditionalSssdConfigs": POSIX,
    }
    file = folder / "directory.yaml"
    file.write_text(yaml.safe_dump({**content, **keys}))
    return read_settings({"family": "p4d", "directory": str(file)})


def directory_of(settings: Settings) -> Directory:
    assert settings.directory
    return read_directory(settings.directory)


def asked(settings: Settings, password: str = PASSWORD) -> list[Finding]:
    secret = {"GetSecretValue": {"ARN": ARN, "Name": "ldap", "SecretString": f"{password}\n"}}
    return list(check_directory(settings, Account(secret).client))


def groups_of_alice(folder: Path, directory: Directory) -> str:
    return run_on_node(folder, WAIT + "id -nG alice", directory=directory, password=PASSWORD).stdout


def test_a_user_of_the_directory_is_private(tmp_path: Path, server: Server) -> None:
    settings, bundle = settings_of(tmp_path, server), tmp_path / "bundle"
    packed = build_bundle(settings=settings, config=config_before_deploy(settings))
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(bundle)  # Debian 12 has no filter
    step = f"BUNDLE={bundle} NODE_TYPE=HeadNode TRAINING_ROOT= TRAINING_SHARED=/mnt bash -e {bundle}"
    script = f"""
        {step}/bootstrap/steps/73-protect-directory-users.sh
        {WAIT}
        id -nG alice
        su - alice -c 'umask; echo $TRAINING_VENVS; mkdir -p $TRAINING_VENVS; echo mine >~/secret'
        su - bob -c 'cat /home/alice/secret; ls /mnt/users/alice; rmdir /mnt/users/alice'
        su - bob -c 'mkdir -p $TRAINING_VENVS; pwd'
        stat --format '%n %U %a' /home/alice /mnt/users /mnt/users/alice
        {step}/bootstrap/steps/73-protect-directory-users.sh
    """
    done = run_on_node(tmp_path / "node", script, directory=directory_of(settings), password=PASSWORD)
    assert done.stdout.splitlines() == [
        "alice:*:70001:70001:alice:/home/alice:/bin/bash",
        # Without the name of the directory's group sudo, which the rules of sudo would take for the node's.
        "70001 nlp",
        "0077",
        "/mnt/users/alice/venvs",
        "/home/bob",
        "/home/alice alice 700",
        "/mnt/users root 1777",
        "/mnt/users/alice alice 700",
    ], done
    assert len(re.findall("Permission denied|Operation not permitted", done.stderr)) == 3, done.stderr
    login = (tmp_path / "node" / "etc" / "login.defs").read_text().splitlines()
    assert sum(line.startswith("HOME_MODE") for line in login) == 1


def test_a_login_takes_password_and_filter(tmp_path: Path, server: Server) -> None:
    """Through PAM, as sshd asks it; su has the same common-auth, common-account and common-session."""
    directory = directory_of(settings_of(tmp_path, server, LdapAccessFilter="(uid=alice)"))
    script = f"""
        {WAIT}
        login() {{
          printf '%s\\n' "$2" | setpriv --reuid=nobody --regid=nogroup --clear-groups \\
            su - "$1" -c 'id -un; pwd'
          echo "$1 ${{PIPESTATUS[1]}}"
        }}
        login alice 'of alice'
        login alice 'of bob'
        login alice ''
        login bob 'of bob'
        stat --format '%U' /home/*
    """
    done = run_on_node(tmp_path / "node", script, directory=directory, password=PASSWORD)
    assert done.stdout.splitlines()[1:] == [
        *("alice", "/home/alice", "alice 0"),
        *("alice 1", "alice 1", "bob 1"),
        "alice",  # the one home: PAM made none for who did not get in
    ], done
    assert done.stderr.count("Authentication failure") == 2, done.stderr
    # Bob's password is right, and the filter has the last word.
    assert done.stderr.splitlines()[-1].endswith("Permission denied"), done.stderr


def test_a_group_of_sudo_counts_when_listed(tmp_path: Path, server: Server) -> None:
    shown = {**POSIX, "filter_groups": "nobody,root"}
    directory = directory_of(settings_of(tmp_path, server, AdditionalSssdConfigs=shown))
    assert groups_of_alice(tmp_path / "node", directory).split()[-2:] == ["nlp", "sudo"]


def test_an_openldap_is_no_active_directory(tmp_path: Path, server: Server) -> None:
    directory = directory_of(settings_of(tmp_path, server, AdditionalSssdConfigs={}))
    assert groups_of_alice(tmp_path / "node", directory) == ""


def test_preflight_finds_the_directory_and_its_people(tmp_path: Path, server: Server) -> None:
    password, answer = asked(settings_of(tmp_path, server))
    assert (password.verdict, answer.verdict) == ("ok", "ok")
    assert answer.found == f"{server.address} knows the user, and has entries below {BASE}"


@pytest.mark.parametrize(
    ("keys", "said", "mend"),
    [
        ({"password": "another"}, f"refuses {READER} with the secret's password", "DomainReadOnlyUser in "),
        ({"DomainReadOnlyUser": f"cn=No,{BASE}"}, "refuses cn=No,", "DomainReadOnlyUser in "),
        ({"DomainName": "corp.example.org"}, "has no DC=corp,DC=example,DC=org", "DomainName in "),
        ({"LdapTlsCaCert": None}, "has a certificate that is not trusted", "LdapTlsCaCert"),
        ({"LdapAccessFilter": "(uid=carol)"}, f"no entry below {BASE} that fits (uid=carol)", "LdapAccess"),
    ],
)
def test_preflight_says_what_is_wrong_with_a_directory(
    tmp_path: Path, server: Server, keys: dict[str, Any], said: str, mend: str
) -> None:
    others = {name: value for name, value in keys.items() if name != "password"}
    password = keys.get("password", PASSWORD)
    _, answer = asked(settings_of(tmp_path, server, **others), password)
    assert answer.verdict == "problem", answer
    assert said in answer.found
    assert mend in answer.mend
    assert password not in f"{answer.found} {answer.mend}"


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"DomainAddr": "ldaps://127.0.0.1:PORT"}, "is not reached from here: "),
        ({"LdapTlsCaCert": "/no/ca.pem"}, "/no/ca.pem is a file of the nodes, and none of this machine"),
    ],
)
def test_what_preflight_cannot_ask_is_a_warning(
    tmp_path: Path, server: Server, keys: dict[str, str], said: str
) -> None:
    closed = {name: value.replace("PORT", str(find_ports(1))) for name, value in keys.items()}
    _, answer = asked(settings_of(tmp_path, server, **closed))
    assert (answer.verdict, said in answer.found) == ("warning", True), answer
    assert f"curl --user {READER} ldaps://" in answer.mend


def test_the_password_is_on_no_command_line(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = subprocess.run
    lines: list[list[str]] = []

    def noted(command: list[str], **options: Any) -> Any:
        lines.append(command)
        return run(command, **options)

    monkeypatch.setattr(subprocess, "run", noted)
    assert asked(settings_of(tmp_path, server))[1].verdict == "ok"
    assert lines
    assert not any(PASSWORD in word for line in lines for word in line)
