"""The environment of a rehearsal's clients: nothing in it can reach a real account."""

import os
import sys
from pathlib import Path

import pytest

from rehearsal.local_aws.address import LocalAwsAddress

ADDRESS = LocalAwsAddress(port=1234, folder=Path("/somewhere"), access_key="AKIA")


def test_what_names_a_real_account_is_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE"):
        monkeypatch.setenv(name, "real")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "real")
    monkeypatch.setenv("AWS_CONFIG_FILE", "real")
    environment = ADDRESS.client_environment()
    assert "real" not in environment.values()


def test_every_service_is_on_the_loopback() -> None:
    environment = ADDRESS.client_environment()
    assert environment["AWS_ENDPOINT_URL"] == "https://localhost:1234"
    # An IP address makes botocore use path-style addresses.
    assert environment["AWS_ENDPOINT_URL_S3"] == "https://127.0.0.1:1234"


def test_node_is_the_one_beside_this_interpreter() -> None:
    # A fresh machine has no other: Lambda's Node functions need it.
    assert ADDRESS.client_environment()["PATH"].split(os.pathsep)[0] == str(Path(sys.executable).parent)


def test_everything_that_clients_write_stays_in_its_folder() -> None:
    environment = ADDRESS.client_environment()
    for name in ("TMPDIR", "HOME", "CDK_HOME", "XDG_CACHE_HOME"):
        assert environment[name].startswith("/somewhere/")


def test_clients_of_aws_read_no_public_roots_and_others_do() -> None:
    environment = ADDRESS.client_environment()
    assert environment["AWS_CA_BUNDLE"] == str(ADDRESS.certificate)
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        assert environment[name] == str(ADDRESS.trust_bundle)
