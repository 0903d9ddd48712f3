"""The attacks of a second user, read from attacks.tsv; docs/security.md shows them.

An empty cell repeats the one above. `finding` is the number in the reviews of 2026-11-26 (N: of nodes). `by`
shows the attack: a command of bob's shell after `$ `, a function of the rehearsal, a test, or `verify` and a
check of trainctl.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from training_cluster.paths import ROOT

VENVS = Path(os.environ.get("TRAINING_VENVS", ROOT / ".rehearsal" / "venvs"))
"""Python environments of workloads."""


class Attack(NamedTuple):
    """A row of the table."""

    finding: str
    attack: str
    before: str
    now: str
    by: str


def _read() -> Iterator[Attack]:
    cells = [""] * len(Attack._fields)
    for line in Path(__file__).with_suffix(".tsv").read_text("utf-8").splitlines()[1:]:
        cells = [cell or above for cell, above in zip(line.split("\t"), cells, strict=True)]
        yield Attack(*cells)


ATTACKS = {each.by: each for each in _read()}
"""Attacks by what shows them."""


def tried(by: str, wrong: Iterable[str]) -> Iterator[str]:
    """Yield what an attempt shows against a row of the table; if it is nothing, print the row."""
    found = [f"bob can {ATTACKS[by].attack}: {each}" for each in wrong]
    if not found:
        print(f"  bob cannot {ATTACKS[by].attack}", flush=True)
    yield from found


def run_tests() -> Iterator[str]:
    """Run the tests that show attacks; yield a sentence for each that failed, and print the others."""
    tests = [by for by in ATTACKS if by.startswith("tests/")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--verbose", *tests],
        cwd=ROOT,
        env=os.environ | {"TRAINING_VENVS": str(VENVS)},
        capture_output=True,
        text=True,
        check=False,
    )
    for by in tests:
        line = rf"^{re.escape(by)}\b.* (PASSED|FAILED|ERROR|SKIPPED)\b"
        if (ended := {*re.findall(line, done.stdout, re.MULTILINE)}) == {"SKIPPED"}:
            print(f"  not tried: {ATTACKS[by].attack}; for the reason, type pytest {by}", flush=True)
        else:
            yield from tried(by, [] if ended == {"PASSED"} else [f"{by} fails\n{done.stdout[-4000:]}"])
    for by in (by for by in ATTACKS if by.startswith("verify ")):
        print(f"  not tried here: {ATTACKS[by].attack}; on AWS, type trainctl {by.replace(' ', ', check ')}")
