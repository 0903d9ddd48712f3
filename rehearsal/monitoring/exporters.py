"""One process for a rehearsal's metrics: it runs the writers, and a node_exporter for each node."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from rehearsal.monitoring.scene import HOST, PROGRAMS, Scene

_HEAD = "head"
# As in steps/86-export-metrics.sh.
COLLECTORS = "diskstats filesystem loadavg meminfo netdev stat textfile time uname vmstat"
Child = subprocess.Popen[bytes]


class Exporters:
    """The writers and node_exporters of all nodes that run."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._children: dict[str, tuple[Child, int]] = {}
        self._ports = itertools.count(scene.first_port + 2)
        self._log = (scene.folder / "writers.log").open("ab")

    def step(self) -> None:
        """Write all text files once; start and stop node_exporters as nodes come and go."""
        scene = self._scene
        head = scene.folder / _HEAD
        self._write(
            *("head_node.py", "--state", str(scene.folder / "state"), "--prices", str(scene.prices)),
            *("--runs", str(scene.shared / "runs"), "--storage", str(scene.shared)),
            *("--budget-usd", str(scene.budget_usd)),
            textfiles=head,
        )
        self._export(_HEAD, head, port=scene.first_port + 1)
        running = self._running_nodes()
        for node in running:
            # This machine may have no GPU, so readers of accelerators are left out.
            self._write("compute_node.py", "none", textfiles=scene.textfiles(node))
            self._export(node, scene.textfiles(node))
        for node in [each for each in self._children if each not in (*running, _HEAD)]:
            child, _ = self._children.pop(node)
            child.terminate()
            child.wait()
        self._write_targets()

    def stop(self) -> None:
        """End all node_exporters."""
        for child, _ in self._children.values():
            child.terminate()
            child.wait()
        self._log.close()

    def _running_nodes(self) -> list[str]:
        pids = (self._scene.slurm / "run").glob(
            "*-*.pid"
        )  # slurmd's; slurmctld.pid and munged.pid have no hyphen
        return sorted(file.stem for file in pids if _lives(file))

    def _write(self, program: str, *arguments: str, textfiles: Path) -> None:
        textfiles.mkdir(parents=True, exist_ok=True)
        path = self._scene.bootstrap / "metrics" / program
        common = ("--no-cloudwatch", "--cluster", self._scene.cluster, "--region", "here")
        subprocess.run(
            [sys.executable, "-B", str(path), *arguments, *common, "--textfiles", str(textfiles)],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            check=False,  # a reader's failure is itself a metric
        )

    def _export(self, node: str, textfiles: Path, *, port: int | None = None) -> None:
        if node in self._children:
            return
        port = port or next(self._ports)
        child = subprocess.Popen(
            [
                str(PROGRAMS / "prometheus-node-exporter"),
                f"--web.listen-address={HOST}:{port}",
                "--collector.disable-defaults",
                *(f"--collector.{name}" for name in COLLECTORS.split()),
                f"--collector.textfile.directory={textfiles}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        self._children[node] = (child, port)

    def _write_targets(self) -> None:
        targets = [
            {"targets": [f"{HOST}:{port}"], "labels": {"node": node, "partition": node.partition("-")[0]}}
            for node, (_, port) in sorted(self._children.items())
            if node != _HEAD
        ]
        fresh = self._scene.targets.with_suffix(".new")
        fresh.write_text(json.dumps(targets))
        fresh.rename(self._scene.targets)


def _lives(file: Path) -> bool:
    try:
        os.kill(int(file.read_text()), 0)
    except (OSError, ValueError):
        return False
    return True


def main(scene: Scene) -> None:
    """Run until a SIGTERM."""
    exporters = Exporters(scene)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        while True:
            begun = time.monotonic()
            exporters.step()
            time.sleep(max(0.0, scene.interval_s - (time.monotonic() - begun)))
    finally:
        exporters.stop()


if __name__ == "__main__":
    main(Scene.model_validate_json(sys.argv[1]))
