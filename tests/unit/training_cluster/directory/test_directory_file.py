"""The file of a directory: what the cluster config gets of it, and the message for each mistake in it."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.sentences import assert_sentences
from training_cluster.cluster.config import render_cluster_config
from training_cluster.cluster.resource_ids import PLACEHOLDERS
from training_cluster.directory.file import read_directory
from training_cluster.pcluster.check import config_problems
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

GOOD = """\
DomainName: dc=corp,dc=example,dc=com
DomainAddr: ldaps://a.example.com,ldaps://b.example.com:1636
PasswordSecretArn: arn:aws:secretsmanager:us-east-1:123456789012:secret:ldap-AbCdEf
DomainReadOnlyUser: cn=ReadOnly,dc=corp,dc=example,dc=com
"""


def written(folder: Path, text: str) -> str:
    file = folder / "directory.yaml"
    file.write_text(text)
    return str(file)


def test_the_cluster_config_has_a_directory(tmp_path: Path) -> None:
    settings = read_settings({"directory": written(tmp_path, GOOD)})
    config = render_cluster_config(settings=settings, ids=replace(PLACEHOLDERS, bootstrap_budget_s=60))
    assert config["DirectoryService"] == {
        "DomainName": "dc=corp,dc=example,dc=com",
        "DomainAddr": "ldaps://a.example.com,ldaps://b.example.com:1636",
        "PasswordSecretArn": "arn:aws:secretsmanager:us-east-1:123456789012:secret:ldap-AbCdEf",
        "DomainReadOnlyUser": "cn=ReadOnly,dc=corp,dc=example,dc=com",
        "LdapTlsReqCert": "hard",
        "GenerateSshKeysForUsers": True,
        # A directory's group of such a name is none of sudo's rules.
        "AdditionalSssdConfigs": {"filter_groups": "nobody,root,admin,sudo,wheel"},
    }
    assert not list(config_problems(config))
    directory = read_directory(str(tmp_path / "directory.yaml"))
    assert directory.search_base == directory.DomainName
    assert directory.addresses() == ["ldaps://a.example.com:636", "ldaps://b.example.com:1636"]


MISTAKES = {
    "unencrypted": ("ldaps://a", "ldap://a"),
    "no address": ("ldaps://a", "https://a"),
    "no name": ("dc=corp,dc=example,dc=com\nDomainAddr", "corp example\nDomainAddr"),
    "no secret": ("secretsmanager", "ssm"),
    "no user": ("DomainReadOnlyUser: cn=ReadOnly,dc=corp,dc=example,dc=com\n", ""),
    "misspelled": ("DomainReadOnlyUser", "DomainReadonlyUser"),
    "never": ("DomainReadOnlyUser", "LdapTlsReqCert: never\nDomainReadOnlyUser"),
    "no keys": (GOOD, "- a"),
}


def test_each_mistake_has_a_message_with_its_line(tmp_path: Path) -> None:
    def read(name: str) -> object:
        return read_settings({"directory": written(tmp_path, GOOD.replace(*MISTAKES[name]))})

    assert_sentences("directory", MISTAKES, read, tmp_path)
    users = tmp_path / "users.yaml"
    users.write_text("users: {}")
    with pytest.raises(ConfigurationError, match="the same name could belong to two users"):
        read_settings({"users": str(users), "directory": written(tmp_path, GOOD)})
