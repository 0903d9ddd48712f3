"""probe-link.sh writes, prints and removes files of `trainctl verify`, and no others."""

import subprocess
from pathlib import Path

from training_cluster.paths import ROOT

SCRIPT = ROOT / "ops" / "account" / "head_node_scripts" / "probe-link.sh"
NAME = f"trainctl-verify-{'0' * 32}"


def probe(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = ["bash", SCRIPT, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_file_is_written_printed_and_removed(tmp_path: Path) -> None:
    file = tmp_path / NAME
    assert probe("print", file).stdout == ""
    assert probe("write", file, "some text").returncode == 0
    assert probe("print", file).stdout == "some text"
    assert probe("remove", file).returncode == 0
    assert not file.exists()
    assert probe("remove", file).returncode == 0, "it may be removed twice"


def test_no_other_file_is_touched(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    file.write_text("precious")
    for action in ("remove", "write", "print"):
        done = probe(action, file, "x")
        assert (done.returncode, done.stdout) == (2, "")
        assert "not a file of trainctl verify" in done.stderr
    assert file.read_text() == "precious"
