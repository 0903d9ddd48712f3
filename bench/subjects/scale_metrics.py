"""A real Prometheus with a cluster's config and the metrics of many nodes: memory, CPU, trainctl top.

A node's text is that of the programs that run there, with played GPUs, EFA and Lustre, and that of a real
node_exporter with as many network cards and disks as a p5 has. One web server gives it for all nodes.
"""

import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil

from bench.measuring.programs import BaselineError, Command
from ops.dashboards.figures import read_figures
from ops.dashboards.prometheus import Prometheus
from rehearsal.local_slurm.ports import find_ports
from rehearsal.monitoring.exporters import COLLECTORS
from rehearsal.monitoring.prometheus import config
from rehearsal.monitoring.scene import HOST, PROGRAMS, Scene
from training_cluster.catalog.families import load_family
from training_cluster.paths import ASSETS

_INTERVAL_S = 30.0
"""Seconds between two scrapes, as in a cluster."""
_SCRAPES = 3
_DISKS = 9
"""A p5's root volume and local disks."""
_START_S = 30.0
_METRICS = ASSETS / "bootstrap" / "metrics"
# As the H100 of a p5 and Lustre's client answer.
_NVIDIA_SMI = """#!/bin/bash
case "$*" in
*-gt*) for g in {0..7}; do echo "GPU $g: H100"; for l in {0..17}; do
  printf '\\t Link %d: Data Tx: 10 KiB\\n\\t Link %d: Data Rx: 1 KiB\\n' $l $l; done; done ;;
*-e*) for g in {0..7}; do echo "GPU $g: H100"; for k in Replay Recovery CRC; do
  printf '\\t Link 0: %s Errors: 0\\n' $k; done; done ;;
*) for g in {0..7}; do echo "$g, 00000000:1$g:1C.0, NVIDIA H100 80GB HBM3, 580.159.04, 97, 70000, 81559, \
650.1, 700.00, 58, 65, 1755, 1980, 0x0000000000000000, 0, 0, Completed, Success"; done ;;
esac
"""
_LCTL = """#!/bin/bash
for kind in read_bytes write_bytes; do echo "$kind 4 samples [bytes] 1 4096 8192 999"; done
for kind in open close getattr mkdir unlink rename; do echo "$kind 31 samples [usec] 1 2 3 4"; done
"""


@dataclass(frozen=True, kw_only=True)
class Watch:
    """Costs of Prometheus on the head node with one number of nodes."""

    node_bytes: int
    """Size of a node's text."""
    series: int
    memory_mib: float
    """Resident memory after three scrapes."""
    scrape_cpu_s: float
    """CPU of one interval: a scrape of every node, and the rules."""
    top_s: float
    """Time of the queries of trainctl top."""


def measure_watch(folder: Path, *, nodes: Sequence[str], head: str) -> Watch:
    """Let a Prometheus scrape all nodes.

    Args:
        head: text of the head node's exporter.
    """
    first = find_ports(2)
    scene = Scene(
        folder=folder,
        slurm=folder,
        job_files=folder,
        shared=folder,
        prices=folder,
        bootstrap=ASSETS / "bootstrap",
        cluster="bench",
        first_port=first,
        interval_s=_INTERVAL_S,
    )
    folder.mkdir()
    (folder / "prometheus.yml").write_text(config(scene))
    (folder / "rules.yml").write_text((scene.bootstrap / "monitoring" / "rules.yml").read_text())
    text = node_text(folder.parent)
    targets = [
        {
            "targets": [f"{HOST}:{first + 1}"],
            "labels": {"node": node, "partition": "gpu", "__metrics_path__": f"/nodes/{node}"},
        }
        for node in nodes
    ]
    scene.targets.write_text(json.dumps(targets))
    with _served(first + 1, text, head), _prometheus(scene) as process:
        time.sleep((_SCRAPES - 1) * _INTERVAL_S)
        before = process.cpu_times()
        time.sleep(_INTERVAL_S)
        after = process.cpu_times()
        began = time.perf_counter()
        figures = read_figures(Prometheus(scene.url).ask)
        top_s = time.perf_counter() - began
        answering = sum(each.gpu_use is not None for each in figures.nodes)
        if answering < len(nodes):
            raise BaselineError(f"Prometheus has metrics of {answering} of {len(nodes)} nodes")
        return Watch(
            node_bytes=len(text),
            series=_series(scene.url),
            memory_mib=process.memory_info().rss / 2**20,
            scrape_cpu_s=after.user + after.system - before.user - before.system,
            top_s=top_s,
        )


@cache
def node_text(folder: Path) -> str:
    """Return the metrics of a p5 node."""
    root, programs = folder / "node", folder / "programs"
    for path in (programs, counters := root / "sys/class/infiniband/rdmap0s6/ports/1/hw_counters"):
        path.mkdir(parents=True)
    for i in range(24):  # as many as EFA has
        (counters / f"counter_{i}").write_text("1\n")
    for name, script in (("nvidia-smi", _NVIDIA_SMI), ("lctl", _LCTL), ("journalctl", "#!/bin/sh\n")):
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "TRAINING_ROOT": str(root)}
    texts = root / "textfiles"
    command: Command = [sys.executable, "-B", _METRICS / "compute_node.py", "gpu", "--no-cloudwatch"]
    command += ["--cluster", "bench", "--region", "here", "--textfiles", texts]
    subprocess.run(command, env=environment, check=True)
    job = {"MOMENT": "prolog", "TRAINING_METRICS": str(texts), "SLURM_JOB_ID": "7", "SLURMD_NODENAME": "NODE"}
    subprocess.run(["bash", _METRICS / "job-file.sh"], env=os.environ | job, check=True)
    port = find_ports(1)
    exporter = subprocess.Popen(
        [
            PROGRAMS / "prometheus-node-exporter",
            f"--web.listen-address={HOST}:{port}",
            "--collector.disable-defaults",
            *(f"--collector.{name}" for name in COLLECTORS.split()),
            f"--collector.textfile.directory={texts}",
        ],
        stderr=subprocess.DEVNULL,
    )
    try:
        found = _get(f"http://{HOST}:{port}/metrics")
    finally:
        exporter.terminate()
        exporter.wait()
    cards = load_family("p5").sizes["p5.48xlarge"].network_cards
    return _as_many(_as_many(found, "network", cards), "disk", _DISKS)


def _as_many(text: str, kind: str, devices: int) -> str:
    """Return a node_exporter's text with so many devices of a kind, each like the first one."""
    line = re.compile(rf'(node_{kind}_\w+{{)device="([^"]+)"(.*)')
    first = next(match[2] for match in map(line.match, text.splitlines()) if match and match[2] != "lo")
    lines = []
    for each in text.splitlines():
        if match := line.match(each):
            copies = range(devices if match[2] == first else 0)
            lines += [f'{match[1]}device="{kind}{i}"{match[3]}' for i in copies]
        else:
            lines.append(each)
    return "\n".join(lines) + "\n"


def _get(url: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + _START_S
    while True:
        try:
            with opener.open(url, timeout=10) as answer:
                return str(answer.read().decode())
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _series(url: str) -> int:
    found = re.search(r"^prometheus_tsdb_head_series (\S+)$", _get(f"{url}/metrics"), re.MULTILINE)
    assert found
    return int(float(found[1]))


@contextmanager
def _served(port: int, node: str, head: str) -> Iterator[None]:
    """Serve the text of the head node, and that of the other nodes under /nodes/NAME."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            name = self.path.removeprefix("/nodes/")
            body = (head if name == "/metrics" else node.replace("NODE", name)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer((HOST, port), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()


@contextmanager
def _prometheus(scene: Scene) -> Iterator[psutil.Process]:
    with (scene.folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                PROGRAMS / "prometheus",
                f"--config.file={scene.folder}/prometheus.yml",
                f"--storage.tsdb.path={scene.folder}/data",
                f"--web.listen-address={HOST}:{scene.first_port}",
            ],
            stdout=log,
            stderr=log,
        )
        try:
            _get(f"{scene.url}/-/ready")
            yield psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait()
