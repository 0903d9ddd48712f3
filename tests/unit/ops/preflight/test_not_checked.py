"""Answers of AWS that lack something: the check that meets one says so, and hides no other."""

import copy
import io
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console

from ops.preflight.checks import run_checks
from ops.preflight.report import report
from ops.usage import OpsError
from tests.unit.ops.fake_account import Account
from tests.unit.ops.preflight.preflight_account import RESERVATION
from tests.unit.ops.preflight.preflight_network import OWN, Network
from training_cluster.rules.context import read_settings

NEW: dict[str, str] = {}
OWN_OF_ALL = {
    **OWN,
    "capacity": f"reservation:{RESERVATION}",
    "budget_usd": "100",
    "alarm_email": "me@example.com",
}
Path = tuple[str | int, ...]


class Damaged(Account):
    """An account, of whose answers one lacks a key, or has nothing where something belongs."""

    def __init__(self, whole: Account) -> None:
        super().__init__(whole.answers)
        self.cut: tuple[str, Path] | None = None
        self.gone = True
        self.paths: dict[tuple[str, tuple[str, ...]], Path] = {}
        """Every key of every answer once, by operation and keys above it."""

    def answer(self, model: Any, asked: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        answered = super().answer(model, asked)
        assert answered
        status, said = answered
        if status.status_code != 200:
            return status, said
        for path in _paths(said):
            keys = tuple(each for each in path if isinstance(each, str))
            if keys[0] != "ResponseMetadata":
                self.paths.setdefault((model.name, keys), path)
        return status, self._without(said) if self.cut and self.cut[0] == model.name else said

    def _without(self, said: dict[str, Any]) -> dict[str, Any]:
        said = copy.deepcopy(said)
        *above, last = self.cut[1] if self.cut else ()
        inside: Any = said
        try:
            for each in above:
                inside = inside[each]
            if self.gone:
                del inside[last]
            else:
                inside[last] = None
        except (KeyError, IndexError):
            pass  # another answer of the same operation
        return said


def _paths(said: Any, above: Path = ()) -> Iterator[Path]:
    items = said.items() if isinstance(said, dict) else enumerate(said) if isinstance(said, list) else ()
    for key, value in items:
        if isinstance(key, str):
            yield (*above, key)
        yield from _paths(value, (*above, key))


@pytest.mark.slow
@pytest.mark.parametrize(("flags", "gone"), [(NEW, True), (OWN_OF_ALL, True), (OWN_OF_ALL, False)])
def test_an_answer_that_lacks_something_hides_no_check(flags: dict[str, str], *, gone: bool) -> None:
    settings, account = read_settings(flags), Damaged(Network().account())
    whole = list[str]()
    run_checks(settings, account.client, starts=whole.append)
    assert len(whole) > 20
    cuts = [(operation, path) for (operation, _), path in account.paths.items()]
    assert len(cuts) > 50
    account.gone = gone
    for account.cut in cuts:
        if account.cut[0] == "GetCallerIdentity" and account.cut[1] != ("UserId",):
            with pytest.raises(OpsError, match="STS"):
                run_checks(settings, account.client)
            continue
        named = list[str]()
        found = run_checks(settings, account.client, starts=named.append)
        assert named == whole, account.cut
        report(found, Console(file=io.StringIO()))
        assert not [each for each in found if "\n" in each.found], account.cut
