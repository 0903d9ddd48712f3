"""Rules about the account: budget and alarms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from training_cluster.problems import Contradiction

if TYPE_CHECKING:
    from training_cluster.flags.settings import Settings


def _budget_tells_somebody(settings: Settings) -> Iterator[Contradiction]:
    if settings.budget_usd and not settings.alarm_email:
        yield Contradiction(
            problem=f"budget_usd={settings.budget_usd}: alarm_email, which receives its emails, is missing",
            mend=f"-c budget_usd={settings.budget_usd} -c alarm_email=me@example.com",
        )


ACCOUNT_RULES = (_budget_tells_somebody,)
