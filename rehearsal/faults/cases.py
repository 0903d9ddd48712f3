"""The cases: every call of AWS that a request makes, with each kind of fault."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

KINDS = ("throttled", "error-500", "denied", "dropped", "timeout")
"""Kinds of faults, which rehearsal/faults/inside/injection.py injects."""
REQUESTS = ("Create", "Update", "Delete")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One fault that occurs once."""

    id: str
    """Name in the output and in the file of results."""
    question: Mapping[str, object]
    """Request to the driver."""


def call_cases(request: str, calls: Sequence[str], *, everywhere: bool) -> list[Case]:
    """Return a case for each kind of fault at calls of each name.

    Args:
        calls: calls of the request without faults, in order.
        everywhere: True for each kind at the first, a middle and the last call of a name; otherwise the kinds
            take turns, so that each name fails in each way, and at each place in some way.
    """
    cases = []
    for turn, (call, count) in enumerate(Counter(calls).items()):
        places = sorted({1, (count + 1) // 2, count})
        for number, kind in enumerate(KINDS):
            for occurrence in places if everywhere else [places[(turn + number) % len(places)]]:
                fault = {"kind": kind, "call": call, "occurrence": occurrence}
                name = f"{request}: {call} #{occurrence} {kind}"
                cases.append(Case(id=name, question={"id": name, "request": request, "fault": fault}))
    return cases


def interleaved(cases: Mapping[str, Sequence[Case]]) -> list[Case]:
    """Order cases so that each finds the stack that it needs: a create, some updates of it, its delete."""
    rounds = max(1, min(len(cases["Create"]), max(len(cases["Delete"]), 1)))
    shares = [[cases[request][start::rounds] for start in range(rounds)] for request in REQUESTS]
    return [case for share in zip_longest(*shares, fillvalue=()) for part in share for case in part]


def sample(cases: Sequence[Case], size: int, seed: int) -> list[Case]:
    """Choose a part of the cases, in their order; the same part for the same seed."""
    chosen = set(random.Random(seed).sample(range(len(cases)), min(size, len(cases))))  # noqa: S311
    return [case for number, case in enumerate(cases) if number in chosen]
