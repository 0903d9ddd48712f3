"""ParallelCluster's own library, asked about a cluster config in its own environment."""

from pathlib import Path

import pytest

from ops.pcluster import dry_run as pcluster_dry_run
from ops.pcluster.dry_run import account_environment, dry_run
from ops.usage import OpsError


def test_a_missing_library_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pcluster_dry_run, "PCLUSTER_PYTHON", tmp_path / "python")
    with pytest.raises(OpsError, match="make setup"):
        dry_run("training", {}, environment={})


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo 'ImportError: no pcluster' >&2; exit 1", "ImportError: no pcluster"),
        ("exit 3", "exit code 3"),
        ("exit 0", "exit code 0"),
    ],
)
def test_a_failed_library_shows_its_last_line(
    script: str, says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    monkeypatch.setattr(pcluster_dry_run, "PCLUSTER_PYTHON", python)
    with pytest.raises(OpsError, match=f"ended without an answer: {says}"):
        dry_run("training", {}, environment={"PATH": "/usr/bin:/bin"})


def test_the_library_gets_keys_and_region_without_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    found = account_environment()
    assert [found[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN")] == ["key", "token"]
    assert found["AWS_REGION"] == found["AWS_DEFAULT_REGION"] == "eu-north-1"
    assert "AWS_PROFILE" not in found
