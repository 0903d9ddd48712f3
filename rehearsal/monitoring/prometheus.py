"""Prometheus of a rehearsal on 127.0.0.1, run from a folder with the head node's config and rules."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

from rehearsal.monitoring.scene import HOST, PROGRAMS, Scene
from rehearsal.problems import RehearsalError

_START_TIMEOUT_S = 30.0
_STARTING = 503
Child = subprocess.Popen[bytes]


class Monitoring:
    """A running Prometheus and the exporters of a rehearsal's nodes."""

    def __init__(self, scene: Scene, environment: Mapping[str, str]) -> None:
        self._scene, self._environment = scene, dict(environment)
        self._children: list[Child] = []

    def start(self) -> None:
        """Start both; return when Prometheus answers. Raises RehearsalError if it does not."""
        scene = self._scene
        for program in ("prometheus", "prometheus-node-exporter"):
            if not (PROGRAMS / program).exists():
                raise RehearsalError(f"{program} is missing in {PROGRAMS}.\n  type: make setup")
        scene.folder.mkdir(parents=True, exist_ok=True)
        scene.targets.write_text("[]")
        (scene.folder / "rules.yml").write_bytes((scene.bootstrap / "monitoring" / "rules.yml").read_bytes())
        (scene.folder / "prometheus.yml").write_text(config(scene))
        self._run(
            sys.executable,
            "-m",
            "rehearsal.monitoring.exporters",
            scene.model_dump_json(),
            log="exporters.log",
        )
        self._run(
            str(PROGRAMS / "prometheus"),
            f"--config.file={scene.folder}/prometheus.yml",
            f"--storage.tsdb.path={scene.folder}/data",
            f"--web.listen-address={HOST}:{scene.first_port}",
            log="prometheus.log",
        )
        deadline = time.monotonic() + _START_TIMEOUT_S
        while True:
            try:
                query(scene.url, "vector(1)")
                return
            except OSError as error:
                if time.monotonic() > deadline or self._children[-1].poll() is not None:
                    said = (scene.folder / "prometheus.log").read_text()[-2000:]
                    self.stop()
                    raise RehearsalError(f"Prometheus does not answer ({error}):\n{said}") from error
                time.sleep(0.1)

    def stop(self) -> None:
        """End both; safe to call twice."""
        while self._children:
            child = self._children.pop()
            child.terminate()
            child.wait()

    def _run(self, *command: str, log: str) -> None:
        with (self._scene.folder / log).open("wb") as output:
            self._children.append(
                subprocess.Popen(
                    command,
                    env={**os.environ, **self._environment},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            )


def config(scene: Scene) -> str:
    """Render the head node's config for a rehearsal (steps/87-start-prometheus.sh)."""
    text = (scene.bootstrap / "monitoring" / "prometheus.yml").read_text()
    words = {
        "CLUSTER": scene.cluster,
        "INTERVAL": f"{scene.interval_s:g}s",
        "TIMEOUT": f"{scene.interval_s:g}s",
        "HEAD_PORT": str(scene.first_port + 1),
        "FOLDER": str(scene.folder),
        "TARGETS": str(scene.targets),
        "REMOTE_WRITE": "",
    }
    for word, value in words.items():
        text = text.replace(f"@{word}@", value)
    return text


def query(url: str, expression: str) -> list[dict[str, Any]]:
    """Ask Prometheus for the current samples of an expression. Raises OSError if it does not answer."""
    return _ask(url, "query", {"query": expression})


def query_range(
    url: str, expression: str, *, start: float, end: float, step_s: float
) -> list[dict[str, Any]]:
    """Ask Prometheus for the samples of a time range. Raises OSError if it does not answer."""
    asked = {"query": expression, "start": str(start), "end": str(end), "step": f"{step_s:g}"}
    return _ask(url, "query_range", asked)


def _ask(url: str, what: str, asked: Mapping[str, str]) -> list[dict[str, Any]]:
    request = f"{url}/api/v1/{what}?{urllib.parse.urlencode(asked)}"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=30) as answer:
            found = json.load(answer)["data"]["result"]
    except urllib.error.HTTPError as error:
        if error.code == _STARTING:
            raise
        raise RehearsalError(f"{asked['query']}: {error.read().decode(errors='replace')}") from error
    return list(found)
