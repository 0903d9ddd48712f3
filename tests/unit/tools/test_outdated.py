"""tools/outdated.py: the pins for which something newer is published."""

from __future__ import annotations

import json

import pytest

from tools import outdated
from tools.pinned import Pinned


def pin(lookup: str, version: str = "1.0", ceiling: str = "", noted: str = "") -> Pinned:
    return Pinned(
        name="it", version=version, where="here", lookup=lookup, reason="why", ceiling=ceiling, noted=noted
    )


def rows(*pins: Pinned) -> list[dict[str, str]]:
    return outdated.look_up(list(pins), say=lambda _: None)


@pytest.fixture
def publishers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace PyPI by three versions of each name, and npm by errors; return the requested names."""
    asked: list[str] = []

    def answers(name: str) -> list[str]:
        asked.append(name)
        return ["1.9", "1.10", "2.0rc1", "v1.2", "1.11.dev3"]

    def silent(name: str) -> list[str]:
        asked.append(name)
        raise OSError("no way")

    monkeypatch.setattr(outdated, "_SOURCES", {"pypi": answers, "npm": silent})
    return asked


def test_the_newest_is_a_release_and_by_number(publishers: list[str]) -> None:
    (row,) = rows(pin("pypi:it"))
    assert (row["newest"], row["state"], row["why"]) == ("1.10", "older", "why")
    (row,) = rows(pin("pypi:it", version="1.10"))
    assert row["state"] == "newest"


def test_a_ceiling_shows_what_may_still_be_taken(publishers: list[str]) -> None:
    (row,) = rows(pin("pypi:it", ceiling="1.9"))
    assert (row["newest"], row["below ceiling"]) == ("1.10", "1.9")


def test_who_cannot_be_reached_or_asked_is_said_and_the_others_are_listed(publishers: list[str]) -> None:
    listed = rows(pin("npm:it"), pin(""), pin("", noted="1.1"), pin("pypi:it"))
    assert [row["newest"] for row in listed] == ["not reached", "no source", "1.1 (noted)", "1.10"]
    assert "0 are the newest, 2 are older, 2 are not known" in outdated.show(listed, every=False)


def test_a_publisher_is_asked_once_for_a_name(publishers: list[str]) -> None:
    rows(pin("pypi:it"), pin("pypi:it", version="1.9"))
    assert publishers == ["it"]


def test_a_publisher_that_answers_nonsense_is_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    def nonsense(name: str) -> list[str]:
        return list(json.loads("<html>"))

    monkeypatch.setattr(outdated, "_SOURCES", {"pypi": nonsense})
    (row,) = rows(pin("pypi:it"))
    assert row["newest"] == "not reached"
