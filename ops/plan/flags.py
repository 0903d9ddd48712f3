"""Reads the flags of the last deploy, and compares them with the new ones."""

from collections.abc import Iterator
from typing import Any

from ops.account.deployed_flags import flags_of
from ops.plan.deployed import Deployed
from training_cluster.flags.flag import facts_of
from training_cluster.flags.settings import Settings
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

# Flags whose deployed values are unknown: the plan assumes the values of the next deploy.
_NOT_COMPARED = tuple(flag for flag, info in Settings.model_fields.items() if not facts_of(info).is_compared)


def former_settings(
    settings: Settings, deployed: Deployed, *, with_files: bool = True
) -> tuple[Settings | None, str]:
    """Return the flags of the last deploy; None and the reason if they are unknown.

    Args:
        with_files: True to add the new files of queues and the like, whose former content is unknown.
    """
    if deployed.cluster_stack is None:
        return None, ""
    found = flags_of(deployed.templates, settings.stack_name)
    if found is None:
        return None, "the last deploy was by a release of this app that did not record flags"
    flags = {flag: value for flag, value in found.items() if flag not in _NOT_COMPARED}
    given = _NOT_COMPARED if with_files else ()
    new = {flag: getattr(settings, flag) for flag in given if getattr(settings, flag) is not None}
    try:
        return read_settings(flags | new), ""
    except ConfigurationError as error:
        last = str(error).splitlines()[-1].strip()
        named = "".join(f" with the new -c {flag}" for flag in new if flag in settings.model_fields_set)
        return None, f"this release of the app refuses the flags of the last deploy{named}: {last}"


def changed_flags(before: Settings, after: Settings) -> Iterator[tuple[str, str, str]]:
    """Yield the name, old and new value of each flag that differs, in the form that a user types."""
    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    for flag in Settings.model_fields:
        if old[flag] != new[flag]:
            yield flag, _typed(old[flag]), _typed(new[flag])


def with_flag(settings: Settings, others: Settings, flag: str) -> Settings:
    """Return settings with one flag of other settings. Raises ConfigurationError if they contradict."""
    flags = settings.model_dump(mode="json", exclude_defaults=True) | {flag: getattr(others, flag)}
    return read_settings({name: value for name, value in flags.items() if value is not None})


def _typed(value: Any) -> str:
    return "default" if value is None else str(value)
