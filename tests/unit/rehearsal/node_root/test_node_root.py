"""Throw-away machines before one exists: accepted and refused requests, and interrupted preparation."""

import os
from pathlib import Path

import psutil
import pytest

from rehearsal.node_root import base, disk, egress
from rehearsal.node_root.base import NoRootError


@pytest.fixture
def maker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replace mmdebstrap, which takes a minute, by a test's script; TARGET is the folder to fill."""
    monkeypatch.setattr(base, "FOLDER", tmp_path / "node-root")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name, body in {
        "apt-get": "printf 'Debian\\thttp://mirror/debian bookworm main\\nElse\\thttp://else/ x y\\n'",
        "setpriv": 'while [ "$1" != mmdebstrap ]; do shift; done; exec "$@"',
    }.items():
        _program(tmp_path / name, body)
    return tmp_path / "mmdebstrap"


def _program(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def _plays(maker: Path, body: str) -> None:
    find_target = 'for TARGET in "$@"; do case $TARGET in */.making-*) break ;; esac; done'
    _program(maker, f'echo "$@" >>{maker}.calls\n{find_target}\nmkdir -p "$TARGET/etc"\n{body}')


def test_a_base_comes_from_the_distributions_sources(maker: Path) -> None:
    said: list[str] = []
    _plays(maker, "echo 'I: installing packages...'")
    made = base.make_base(said.append)
    assert (made / "etc").is_dir()
    assert base.make_base(said.append) == made
    (call,) = Path(f"{maker}.calls").read_text().splitlines()
    assert call.endswith(" deb http://mirror/debian bookworm main")
    assert "http://else/" not in call
    assert said[1:] == ["installing packages..."]


@pytest.mark.parametrize("end", ["exit 25", "kill -9 $$"])
def test_a_failure_leaves_nothing_and_its_reason(maker: Path, end: str) -> None:
    _plays(maker, f"echo 'E: no such mirror'; {end}")
    with pytest.raises(NoRootError, match="could not be made:\nE: no such mirror"):
        base.make_base(lambda _: None)
    assert [path.name for path in base.FOLDER.iterdir()] == ["lock"]


def test_only_a_dead_processs_disk_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "DISKS", tmp_path)
    me = psutil.Process()
    mine = tmp_path / f"{me.pid}-{me.create_time():.2f}-abc"
    # The same number, of a process that was here before this one.
    for folder in (mine, tmp_path / f"{me.pid}-1.00-abc", tmp_path / "4194305-1.00-abc"):
        folder.mkdir()
    disk.remove_orphans()
    assert list(tmp_path.iterdir()) == [mine]


def test_a_machine_sees_what_pips_settings_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels, pages, certificate = tmp_path / "wheels", tmp_path / "index" / "simple", tmp_path / "ca.pem"
    wheels.mkdir()
    pages.mkdir(parents=True)
    certificate.touch()
    monkeypatch.setenv("PIP_FIND_LINKS", f"{wheels} {tmp_path}/nowhere")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"https://example.com/simple file://{pages}")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "mine")
    egress.egress.cache_clear()
    found = egress.egress()
    egress.egress.cache_clear()
    assert {wheels, pages.parent, certificate} <= set(found.places)
    assert tmp_path / "nowhere" not in found.places
    assert found.environment["https_proxy"] == "http://proxy:3128"
    assert "AWS_SECRET_ACCESS_KEY" not in found.environment
