"""Answers of AWS that lack something: the check that meets one says so, and hides no other."""

import io
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console

from ops.preflight.checks import report, run_checks
from ops.usage import OpsError
from tests.unit.ops.fake_account import Account
from tests.unit.ops.own_account import OwnAccount
from tests.unit.ops.preflight.test_checks import BUDGET
from training_cluster.paths import ROOT
from training_cluster.rules.context import read_settings

Path = tuple[str | int, ...]


class Damage:
    """Changes one answer of an account: it lacks a key, or has nothing where something belongs."""

    def __init__(self, account: Account) -> None:
        self._receive = account.receive
        account.receive = self.receive  # type: ignore[method-assign]
        self.cut: tuple[str, Path] | None = None
        self.gone = True
        self.paths: dict[tuple[str, tuple[str, ...]], Path] = {}
        """Every key of every answer once, by operation and keys above it."""

    def receive(self, model: Any, asked: dict[str, Any], parsed: dict[str, Any]) -> None:
        """Note the keys of an answer, and damage it."""
        self._receive(model, asked, parsed)
        if "Error" in parsed:
            return
        for path in _paths(parsed):
            keys = tuple(each for each in path if isinstance(each, str))
            if keys[0] != "ResponseMetadata":
                self.paths.setdefault((model.name, keys), path)
        if self.cut and self.cut[0] == model.name:
            self._damage(parsed, *self.cut[1])

    def _damage(self, inside: Any, *keys: str | int) -> None:
        *above, last = keys
        try:
            for each in above:
                inside = inside[each]
            if self.gone:
                del inside[last]
            else:
                inside[last] = None
        except (KeyError, IndexError):
            pass  # another answer of the same operation


def _paths(said: Any, above: Path = ()) -> Iterator[Path]:
    items = said.items() if isinstance(said, dict) else enumerate(said) if isinstance(said, list) else ()
    for key, value in items:
        if isinstance(key, str):
            yield (*above, key)
        yield from _paths(value, (*above, key))


@pytest.mark.slow
@pytest.mark.parametrize(("brings", "gone"), [(False, False), (True, True)])
def test_an_answer_that_lacks_something_hides_no_check(*, brings: bool, gone: bool) -> None:
    own = OwnAccount()
    own.account.answers["DescribeBudgets"] = {"Budgets": []}
    settings, damage = read_settings(own.flags | BUDGET if brings else {}), Damage(own.account)
    whole = list[str]()
    run_checks(settings, own.client, starts=whole.append)
    assert len(whole) > 20
    sources = (
        *ROOT.glob("ops/**/*.py"),
        *ROOT.glob("assets/compute_zone/*.py"),
        *ROOT.glob("assets/cluster_image/*.py"),
    )
    code = "".join(each.read_text() for each in sources)
    # A key that no code names cannot matter.
    cuts = [(name, path) for (name, _), path in damage.paths.items() if f'"{path[-1]}"' in code]
    assert len(cuts) > 50
    damage.gone = gone
    for damage.cut in cuts:
        if damage.cut[0] == "GetCallerIdentity" and damage.cut[1] != ("UserId",):
            with pytest.raises(OpsError, match="STS"):
                run_checks(settings, own.client)
            continue
        named = list[str]()
        found = run_checks(settings, own.client, starts=named.append)
        assert named == whole, damage.cut
        report(found, Console(file=io.StringIO()))
        assert not [each for each in found if "\n" in each.found], damage.cut
