"""The environment of a rehearsal's clients: nothing in it can reach a real account."""

import os
import sys
from pathlib import Path

import pytest

from rehearsal.local_aws.address import LocalAwsAddress

ADDRESS = LocalAwsAddress(port=1234, folder=Path("/somewhere"), access_key="AKIA")


def test_clients_reach_no_real_account(monkeypatch: pytest.MonkeyPatch) -> None:
    names = "PROFILE SESSION_TOKEN ROLE_ARN WEB_IDENTITY_TOKEN_FILE ACCESS_KEY_ID CONFIG_FILE"
    for name in names.split():
        monkeypatch.setenv(f"AWS_{name}", "real")
    environment = ADDRESS.client_environment()
    assert "real" not in environment.values()
    assert environment["AWS_ENDPOINT_URL"] == "https://localhost:1234"
    # An IP address makes botocore use path-style addresses.
    assert environment["AWS_ENDPOINT_URL_S3"] == "https://127.0.0.1:1234"
    assert environment["AWS_CA_BUNDLE"] == str(ADDRESS.certificate)
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):  # of others, who also read public roots
        assert environment[name] == str(ADDRESS.trust_bundle)
    for name in ("TMPDIR", "HOME", "CDK_HOME", "XDG_CACHE_HOME"):
        assert environment[name].startswith("/somewhere/")
    # A fresh machine has no other Node, which Lambda's functions need.
    assert environment["PATH"].split(os.pathsep)[0] == str(Path(sys.executable).parent)
