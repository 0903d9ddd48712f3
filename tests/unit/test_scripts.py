"""The bundle of scripts: its bytes depend on content alone, and a family's environment is in it."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

from training_cluster.families import load_family
from training_cluster.scripts import ASSETS, build_bundle, render_family_environment


def _open(bundle: bytes) -> tarfile.TarFile:
    return tarfile.open(fileobj=io.BytesIO(bundle), mode="r:gz")


def test_the_same_content_is_the_same_bundle_wherever_and_whenever(tmp_path: Path) -> None:
    family = load_family("p4d")
    copy = shutil.copytree(ASSETS, tmp_path / "assets")
    for path in copy.rglob("*"):
        os.utime(path, (1, 1))
    bundle = build_bundle(family=family, assets=copy)
    assert bundle == build_bundle(family=family)
    assert bundle[4:8] == bytes(4), "gzip's header holds the time of day"


def test_another_script_or_family_is_another_bundle(tmp_path: Path) -> None:
    copy = shutil.copytree(ASSETS, tmp_path / "assets")
    (copy / "training" / "job.slurm").write_text("#!/bin/bash\n")
    bundles = {
        build_bundle(family=load_family("p4d")),
        build_bundle(family=load_family("m6i")),
        build_bundle(family=load_family("p4d"), assets=copy),
    }
    assert len(bundles) == 3


def test_the_bundle_holds_the_scripts_with_their_modes() -> None:
    with _open(build_bundle(family=load_family("p4d"))) as archive:
        names = set(archive.getnames())
        assert {
            "bootstrap/bootstrap.sh",
            "training/job.slurm",
            "training/gpt2/train.sh",
            "family.env",
        } <= names
        assert archive.getmember("bootstrap/bootstrap.sh").mode == 0o755
        assert archive.getmember("family.env").mode == 0o644
        assert not [name for name in names if "__pycache__" in name]


def test_what_tools_leave_in_the_folders_does_not_ship(tmp_path: Path) -> None:
    family, copy = load_family("p4d"), shutil.copytree(ASSETS, tmp_path / "assets")
    for name in (".mypy_cache/3.11/a.json", "__pycache__/a.pyc", ".DS_Store"):
        path = copy / "training" / "gpt2" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("left")
    assert build_bundle(family=family, assets=copy) == build_bundle(family=family)


def test_a_shell_reads_the_family_environment() -> None:
    text = render_family_environment(load_family("p4d"))
    done = subprocess.run(
        ["bash", "-c", f'{text}\nprintf "%s|" "$FAMILY" "$ACCELERATORS_PER_NODE" "$NCCL_SOCKET_IFNAME"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "p4d|8|^docker,lo,veth|"
