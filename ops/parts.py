"""Several questions about one thing: one that gets no answer hides none of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from ops.account.aws_errors import explain
from ops.usage import OpsError

Answer = TypeVar("Answer")


class Parts:
    """Asks for each part, and remembers those that got no answer."""

    def __init__(self) -> None:
        self._why: dict[str, str] = {}

    def ask(self, part: str, question: Callable[[], Answer]) -> Answer | None:
        """Return the answer, None without one. May be called by several threads."""
        try:
            return question()
        except OpsError as error:
            self._why[part] = str(error)
        except (BotoCoreError, ClientError) as error:
            self._why[part] = explain(error)
        return None

    def gather(self, part: str, question: Callable[[], Iterable[Answer]]) -> tuple[Answer, ...]:
        """Return what an answer holds, up to where it breaks off."""
        found: list[Answer] = []
        self.ask(part, lambda: found.extend(question()))
        return tuple(found)

    def unanswered(self, order: Iterable[str] = ()) -> tuple[str, ...]:
        """Say in a line for each reason which parts got no answer, and why.

        Args:
            order: of the parts in a line; else they stand as they were asked.
        """
        of_a_reason: dict[str, list[str]] = {}
        for part in dict.fromkeys((*order, *self._why)):
            if part in self._why:
                of_a_reason.setdefault(self._why[part].partition("\n")[0], []).append(part)
        return tuple(f"{', '.join(parts)}: {why}" for why, parts in of_a_reason.items())
