"""docs/benchmarks.md, from the raw figures of bench/results."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bench.measuring.result import Result
from tools.docs.table import table
from tools.json_text import json_text
from training_cluster.paths import ROOT

RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
_HEAD = """\
# Benchmarks

`make bench` writes this page; `make bench ONLY=synth` runs one benchmark. Each figure compares programs that
ran alternately on the same machine. The ratio is the result; the seconds show the scale. The baselines
are the real programs, at the versions named. A program that was not available is shown as "not run".
`bench/results/` has the raw figures.
"""


def keep(name: str, title: str, result: Result, *, machine: Mapping[str, Any], seconds: float) -> None:
    """Write bench/results/NAME.json, with one line for each row, figure and note."""
    RESULTS.mkdir(exist_ok=True)
    content = {"title": title, "machine": machine, "seconds": round(seconds, 1), **asdict(result)}
    (RESULTS / f"{name}.json").write_text(json_text(content, levels=2), encoding="utf-8")


def write(names: Sequence[str]) -> None:
    """Write the page."""
    kept = {name: file for name in names if (file := RESULTS / f"{name}.json").is_file()}
    results = {name: json.loads(file.read_text(encoding="utf-8")) for name, file in kept.items()}
    PAGE.write_text("\n".join(_page(names, results)), encoding="utf-8")


def _page(names: Sequence[str], results: Mapping[str, Any]) -> Iterator[str]:
    yield _HEAD
    for name in names:
        if name not in results:
            yield f"## {name}\n\nNot run yet: `make bench ONLY={name}`.\n"
            continue
        content = results[name]
        yield f"## {name}: {content['title']}\n"
        rows = ([row[key] for key in ("name", "goal", "measured", "verdict")] for row in content["rows"])
        yield table(("name", "goal", "measured", "result"), rows)
        for note in content["notes"]:
            yield f"{note}\n"
        # A subject that sums up a file of results has run before.
        took = f" The benchmark took {content['seconds']:.0f} s." if content["seconds"] >= 1 else ""
        yield f"{_machine(content['machine'])}{took}\n"


def _machine(machine: Mapping[str, Any]) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    gpu = f", {machine['gpu']}" if machine["gpu"] else ", no GPU"
    return (
        f"{machine['date']}: {machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB"
        f"{gpu}; Python {machine['python']}, {packages}."
    )
