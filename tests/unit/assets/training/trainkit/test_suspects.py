"""Nodes that a comparison of ranks suspects, and the notice of them."""

from pathlib import Path

import pytest
from trainkit.suspects import mark_of, notify, suspects


def test_the_minority_is_suspected() -> None:
    for sums, nodes, did in (
        ("a a a a", "", ""),
        ("a a b a", "n1", "got other bits than 3 of 4 ranks"),
        ("a a b b a a", "n1", "got other bits than 4 of 6 ranks"),
        ("a a b b", "n0 n1", "no majority tells"),
        ("a a b ba", "n1", "got other bits when it computed again"),  # b, then a
    ):
        found, words = suspects([(f"n{i // 2}", each[0], each[-1]) for i, each in enumerate(sums.split())])
        assert (found, did in words) == (nodes.split(), True)


def test_a_suspect_is_notified_of_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[list[str]] = []
    monkeypatch.setattr("subprocess.run", lambda command, **_: sent.append(command[-3:]))
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    for node in ("n1", "n2"):
        mark_of(tmp_path, node).write_text("step 6: n1 and n2 got different bits\n")
    for job, notices in (("7", ""), ("71", "webhook"), ("7", "webhook")):
        monkeypatch.setenv("NOTIFY", notices)
        monkeypatch.setenv("SLURM_JOB_ID", job)
        told = notify(tmp_path, set())
        assert notify(tmp_path, None) == notify(tmp_path, told) == told
    assert sent == [["trainkit.notify", "suspect node", "step 6: n1 and n2 got different bits"]]
