"""Banned phrases are found in prose, and nowhere else."""

from __future__ import annotations

import pytest

from tools.prose import findings, main


@pytest.mark.parametrize(
    "line",
    [
        "AWS stops what it is at.",
        "on a cluster that stands",
        "The parameter lies under /x.",
        "a VPC of one's own",
        "killed, for want of memory",
        "Besides, it is slow.",
        "It did not come to its end, it came to an end.",
        "Nothing of it has run.",
        "It joins all the same.",
        "it goes on where it was",
        "a stack of ours",
        "'7x' is no number.",
        "how to mend it",
        "It waits for ever.",
        "a bucket that is there already",
    ],
)
def test_a_banned_phrase_is_found(line: str) -> None:
    assert [number for number, _, _ in findings(f"first\n{line}\n")][:1] == [2]


@pytest.mark.parametrize(
    "line",
    [
        "OLD stands for the old region.",
        "a stand-in",
        "another one's cluster",
        "It relies on Slurm.",
        "There is no file x.",
    ],
)
def test_other_uses_of_the_words_are_not(line: str) -> None:
    assert list(findings(line)) == []


def test_the_examples_of_contributing_are_left_out() -> None:
    assert list(findings("| not | but |\n|---|---|\n| It stands. | It exists. |\n\nIt is.\n")) == []


@pytest.mark.slow
def test_the_project_has_none() -> None:
    assert main() == 0
