"""Collects the answers to several questions; one that fails hides none of the others."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from ops.account.aws_errors import explain
from ops.usage import OpsError

Answer = TypeVar("Answer")


class Parts:
    """A series of questions that records those without an answer."""

    def __init__(self) -> None:
        self._why: dict[str, str] = {}

    def ask(self, part: str, question: Callable[[], Answer]) -> Answer | None:
        """Return the answer, or None without one. May be called by several threads."""
        try:
            return question()
        except OpsError as error:
            self._why[part] = str(error)
        except (BotoCoreError, ClientError) as error:
            self._why[part] = explain(error)
        return None

    def gather(self, part: str, question: Callable[[], Iterable[Answer]]) -> tuple[Answer, ...]:
        """Return the items of an answer, up to the point where it fails."""
        found: list[Answer] = []
        self.ask(part, lambda: found.extend(question()))
        return tuple(found)

    def unanswered(self, order: Iterable[str] = ()) -> tuple[str, ...]:
        """Return a line for each reason, with the parts without an answer, in the order given or asked."""
        of_a_reason: dict[str, list[str]] = {}
        for part in dict.fromkeys((*order, *self._why)):
            if part in self._why:
                of_a_reason.setdefault(self._why[part].partition("\n")[0], []).append(part)
        return tuple(f"{', '.join(parts)}: {why}" for why, parts in of_a_reason.items())
