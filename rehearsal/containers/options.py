"""Pyxis's options among srun's arguments. It runs at every step, so it uses only the standard library."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# Options of srun (22.05) without a value, or whose value is always written after "=".
_FLAGS = frozenset(
    {
        *("exact", "exclusive", "hold", "immediate", "kill-on-bad-exit", "label", "multi-prog", "no-kill"),
        *("overcommit", "overlap", "preserve-env", "pty", "quiet", "slurmd-debug", "unbuffered", "verbose"),
        *("whole", "contiguous", "disable-status", "oversubscribe", "spread-job", "use-min-nodes"),
    }
)
_WITH_VALUE = frozenset({"image", "name", "mounts", "workdir", "env"})
_SHORT_FLAGS = frozenset("EHIKklOQsuvXZ")


@dataclass(frozen=True, kw_only=True)
class ContainerOptions:
    """Options of one step, by their names in Pyxis 0.24 (args.c)."""

    image: str = ""
    name: str = ""
    mounts: tuple[tuple[str, str, str], ...] = ()
    """Source, target, flags joined with "+"."""
    workdir: str = ""
    writable: bool = False
    env: tuple[str, ...] = ()
    """Names of variables that keep the job's value even if the image sets them."""


class OptionError(Exception):
    """An option that Pyxis refuses, or that this stand-in does not have."""


def split(arguments: Sequence[str]) -> tuple[list[str], ContainerOptions, list[str]]:
    """Split srun's arguments into its own options, Pyxis's options, and the command.

    Raises:
        OptionError: a wrong or unknown option of Pyxis.
    """
    own: list[str] = []
    options = ContainerOptions()
    at = 0
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if word == "--" or not word.startswith("-"):
            return own, options, [*arguments[at - (word != "--") :]]
        name, _, value = word.lstrip("-").partition("=")
        is_long = word.startswith("--")
        if is_long and name.removeprefix("no-").startswith("container-"):
            takes_value = name.removeprefix("container-") in _WITH_VALUE
            if takes_value and "=" not in word:
                value, at = (arguments[at], at + 1) if at < len(arguments) else ("", at)
            options = _with(options, name, value)
            continue
        own.append(word)
        alone = name in _FLAGS if is_long else len(word) > len("-n") or word[1] in _SHORT_FLAGS
        if "=" not in word and not alone and at < len(arguments):
            own.append(arguments[at])
            at += 1
    return own, options, []


def _with(options: ContainerOptions, name: str, value: str) -> ContainerOptions:
    if name in ("no-container-mount-home", "no-container-remap-root", "no-container-entrypoint"):
        return options  # the stand-in always behaves so
    kind = name.removeprefix("container-")
    if kind in _WITH_VALUE and not value:
        raise OptionError(f"--{name}: argument required")
    changed: dict[str, Any]
    if kind in ("writable", "readonly"):
        changed = {"writable": kind == "writable"}
    elif kind == "mounts":
        changed = {kind: tuple(_mount(each) for each in value.split(","))}
    elif kind in _WITH_VALUE:
        changed = {kind: tuple(value.split(",")) if kind == "env" else value}
    else:
        raise OptionError(f"--{name}: the rehearsal's stand-in for Pyxis does not have it")
    return dataclasses.replace(options, **changed)


def _mount(text: str) -> tuple[str, str, str]:
    source, _, rest = text.partition(":")
    target, _, flags = rest.partition(":")
    if not source.startswith("/"):
        raise OptionError(f"--container-mounts: {text}: the source is not an absolute path")
    return source, target or source, flags
