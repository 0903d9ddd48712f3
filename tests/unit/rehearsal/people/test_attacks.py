"""Each attack of the red team names what shows it."""

from ops.verify.checks import CHECKS
from ops.verify.nodes import NODE_CHECKS
from rehearsal.people import __main__, nodes
from rehearsal.people.attacks import ATTACKS
from training_cluster.paths import ROOT


def _exists(by: str) -> bool:
    if by.startswith("tests/"):
        file, _, test = by.partition("::")
        return f"def {test}(" in (ROOT / file).read_text()
    if by.startswith("verify "):
        return by.split()[1] in {each.id for each in (*CHECKS, *NODE_CHECKS)}
    return by.startswith("$ ") or any(hasattr(each, by) for each in (__main__, nodes))


def test_what_shows_an_attack_exists() -> None:
    assert [by for by in ATTACKS if not _exists(by)] == []
