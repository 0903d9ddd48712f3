"""A node of folders for one start step: its disk, and stubs of its programs."""

import subprocess
import sys
from pathlib import Path

from training_cluster.paths import ASSETS

STEPS = ASSETS / "bootstrap" / "steps"


class Node:
    """A node's disk, and stubs of its programs, which log their arguments."""

    def __init__(self, root: Path) -> None:
        self.slash, self.etc, self.programs = root / "slash", root / "etc", root / "bin"
        self.bundle, self._calls = root / "bundles" / ("a" * 64), root / "calls"
        self.programs.mkdir()
        self.bundle.mkdir(parents=True)
        (self.bundle / "bootstrap").symlink_to(ASSETS / "bootstrap")
        (self.etc / "partitions").mkdir(parents=True)
        for program in ("systemd-tmpfiles", "scontrol"):
            self.stub(program)

    def stub(self, name: str, script: str = "", *, at: Path | None = None) -> None:
        program = (at or self.programs) / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f'#!/bin/sh\necho "{name} $*" >>"{self._calls}"\n{script}\n')
        program.chmod(0o755)

    def calls(self) -> list[str]:
        """Return the calls since the last call of this."""
        lines = self._calls.read_text().splitlines() if self._calls.exists() else []
        self._calls.unlink(missing_ok=True)
        return lines

    def run(
        self,
        step: str,
        *,
        node_type: str = "ComputeFleet",
        recipe: str = "cpu",
        partition: str = "",
        **variables: str,
    ) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": f"{self.programs}:{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin",
            "NODE_TYPE": node_type,
            "RECIPE": recipe,
            "PARTITION": partition,
            "BUNDLE": str(self.bundle),
            "TRAINING_ROOT": str(self.slash),
            "TRAINING_ETC": str(self.etc),
            "TRAINING_SHARED": str(self.slash / "fsx"),
            "TRAINING_EFS": str(self.slash / "efs"),
        }
        (path,) = STEPS.glob(f"{step}-*.sh")
        return subprocess.run(
            ["bash", str(path)], env=environment | variables, capture_output=True, text=True
        )

    def does(self, step: str, *, node_type: str = "ComputeFleet", partition: str = "") -> str:
        """Run a step that has to succeed; return its output."""
        done = self.run(step, node_type=node_type, partition=partition)
        assert done.returncode == 0, done
        return done.stderr

    def text(self, path: str) -> str:
        return (self.slash / path).read_text()

    def write(self, path: str, text: str) -> Path:
        file = self.slash / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def files(self) -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in self.slash.rglob("*") if path.is_file()}
