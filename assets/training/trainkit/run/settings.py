"""Settings of a run: a workload's dataclass, whose fields are environment variables and arguments as well."""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
from collections.abc import Collection, Mapping, Sequence
from typing import NoReturn, TypeVar

from trainkit.run.run import die

Settings = TypeVar("Settings")


class _Parser(argparse.ArgumentParser):
    """Says in one sentence what is wrong."""

    def error(self, message: str) -> NoReturn:
        die(f"{message}.")


def fill_settings(
    kind: type[Settings],
    arguments: Sequence[str] | None = None,
    *,
    about: str,
    may_be_zero: Collection[str] = (),
) -> Settings:
    """Fill a dataclass: arguments win over the environment, the environment over the defaults.

    A field `max_steps` is the variable MAX_STEPS and the argument --max-steps; its default says its type:
    int, float or str. Dies on a value of another type, whole numbers below 1, others below 0, nan and inf.

    Args:
        arguments: those of the command line unless told otherwise.
        about: what --help begins with.
        may_be_zero: whole numbers of which 0 means something.
    """
    parser = _Parser(description=about, allow_abbrev=False)
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        default = os.environ.get(field.name.upper()) or str(field.default)
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=type(field.default), default=default)
    settings = kind(**vars(parser.parse_args(arguments)))
    for name, value in vars(settings).items():
        least = 0 if name in may_be_zero or isinstance(value, float) else 1
        if not isinstance(value, str) and not least <= value < math.inf:
            die(f"{name.upper()} is {value}: give {least} or more.")
    return settings


def check_words(settings: object, allowed: Mapping[str, Sequence[str]]) -> None:
    """Die where a field holds another word than those; "" is allowed where it is among them."""
    for name, words in allowed.items():
        value = getattr(settings, name)
        if value not in words:
            die(f'{name.upper()} is "{value}"; allowed: {", ".join(filter(None, words))}.')


def family_device() -> str:
    """cuda where the instance family has GPUs, else cpu."""
    return "cuda" if os.environ.get("ACCELERATOR_KIND") == "gpu" else "cpu"
