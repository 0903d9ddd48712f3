"""The causes of trainctl diagnose, tested with lines that users wrote in issue trackers."""

from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict

from ops.diagnose.diagnose import diagnose_evidence
from ops.diagnose.texts import Gathered

THREADS = Path(__file__).parent / "threads"


class Line(BaseModel):
    """A line of a thread, and the cause that a reader named."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    thread: str
    cause: str
    text: str


def lines(name: str) -> list[Line]:
    return [Line.model_validate(row) for row in yaml.safe_load((THREADS / name).read_text(encoding="utf-8"))]


def top(text: str) -> str | None:
    gathered = Gathered()
    gathered.add("job.log", text)
    causes = diagnose_evidence(gathered, cluster="training").causes
    return causes[0].id if causes else None


def test_a_known_line_has_its_cause_on_top() -> None:
    known = [*lines("known.yaml"), *lines("messages.yaml")]
    found = [(line, top(line.text)) for line in known]
    assert [(line, cause) for line, cause in found if cause != line.cause] == []


def test_most_held_out_lines_are_explained_none_wrongly() -> None:
    held_out = lines("held_out.yaml")
    found = {line.thread: (top(line.text), line.cause) for line in held_out}
    assert len(found) >= 20
    wrong = {thread: causes for thread, causes in found.items() if causes[0] not in (None, causes[1])}
    assert wrong == {}
    explained = [causes for causes in found.values() if causes[0] == causes[1]]
    assert len(explained) >= 0.8 * len(found), found


def test_no_line_is_both_known_and_held_out() -> None:
    known, held_out = lines("known.yaml"), lines("held_out.yaml")
    assert not {each.thread for each in known} & {each.thread for each in held_out}
