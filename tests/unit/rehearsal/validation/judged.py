"""Cases with the answers of our flags and of the library."""

from rehearsal.validation.cases import Case
from rehearsal.validation.library import Finding
from rehearsal.validation.verdicts import Judged

ERROR = Finding(level="ERROR", validator="SomeValidator", message="no, never")
WARNING = Finding(level="WARNING", validator="SomeValidator", message="are you sure?")


def some_case(row: str = "p4d", os_name: str = "ubuntu2204", **changes: str) -> Case:
    named = {"table": "family", "row": row, "column": "spot", "os_name": os_name} | changes
    return Case(**named, flags={})


def some_judged(
    *findings: Finding, refusal: str | None = None, case: Case | None = None, asked: bool = True
) -> Judged:
    return Judged(case=case or some_case(), refusal=refusal, findings=findings if asked else None)
