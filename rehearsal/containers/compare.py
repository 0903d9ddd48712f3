"""The comparison of a training in a container with one outside: the same text, and the same losses."""

import json
import re
from pathlib import Path

from rehearsal.problems import RehearsalError
from training_cluster.paths import ROOT

STEPS = 60
"""Steps of both trainings; the warm-up of every workload's rehearsal is shorter."""


def same_text(workload: Path, data: Path) -> dict[str, str]:
    """Write this project's pages as the text of both jobs; return the variables with which a job reads them.

    Other rehearsals train on text of the machine (licences, Python's documentation), and an image has less of
    it. A workload that trains on other data needs no variables, so none are returned.

    Args:
        workload: folder of its scripts.
        data: its folder of data.
    """
    sizes = workload / "rehearsal.env"
    text = sizes.read_text(encoding="utf-8") if sizes.exists() else ""
    named = re.search(r"^export (\w+)=.*:-machine\}", text, re.MULTILINE)
    if named is None:
        return {}
    raw = data / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    pages = sorted((ROOT / "docs").rglob("*.md"))
    sections = [section for page in pages for section in page.read_text(encoding="utf-8").split("\n## ")]
    lines = "".join(json.dumps({"text": section}) + "\n" for section in sections)
    (raw / "docs.jsonl").write_text(lines, encoding="utf-8")
    return {named[1]: "raw", "MAX_STEPS": str(STEPS)}


def compare_losses(outside: Path, inside: Path) -> str:
    """Compare two metrics.jsonl files step by step; return a sentence with the result.

    Raises:
        RehearsalError: a loss differs, a step is missing, or there is no loss.
    """
    runs = [_losses(outside), _losses(inside)]
    if not runs[0]:
        raise RehearsalError(f"{outside} has no loss with which {inside} could be compared.")
    if runs[0] == runs[1]:
        return f"the same {len(runs[0])} losses in the container as outside"
    step = next(step for step in sorted({*runs[0], *runs[1]}) if runs[0].get(step) != runs[1].get(step))
    losses = " and ".join(str(run.get(step, "missing")) for run in runs)
    raise RehearsalError(
        f"The losses in the container differ: {losses} in step {step}, outside and inside. "
        f"Compare {outside} and {inside}."
    )


def _losses(metrics: Path) -> dict[int, float]:
    rows = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    return {row["step"]: row["loss"] for row in rows if "loss" in row}
