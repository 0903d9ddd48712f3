"""Every command of README, docs/ and the workloads' READMEs is one that its program takes.

`trainctl` is parsed by its own parser, flags by `Settings`, `make` by the Makefile. `aws` commands have a
slow test: tests/slow/ops/test_ops_printed_aws_commands.py.
"""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import typer
from typer._click import exceptions
from typer.core import TyperGroup

from ops.__main__ import _account_first
from ops.cli import app
from ops.jobs.settings import check_job_settings
from ops.usage import UsageError
from training_cluster.flags.settings import Settings
from training_cluster.paths import ROOT
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("assets/**/README.md"),
    ]
)
_PROGRAM = re.compile(r"(?:\S*/)?(?:trainctl|make|npx)")
_MAKEFILE = (ROOT / "Makefile").read_text()
_TARGETS = {*re.findall(r"^([a-z-]+):", _MAKEFILE, re.MULTILINE)}
_VARIABLES = {*re.findall(r"^(?:export )?([A-Z_]+) \?=", _MAKEFILE, re.MULTILINE)}
# Their values are files, which the reader writes.
_FILES = {"queues", "overrides", "users", "directory"}


def commands_of(text: str) -> Iterator[tuple[str, bool]]:
    """List the commands of a page, each with whether it is in a block of code, where it must be complete."""
    text = text.replace("\\\n", " ")
    for line in text.splitlines():
        if line.startswith(("    ", "$ ")) or _starts_with_program(line):
            yield from ((each, True) for each in _commands(re.sub(r"\s#\s.*", "", line)))
    prose = re.sub(r"^(?:    |```).*$", "", text, flags=re.MULTILINE)
    for span in re.findall(r"`([^`]+)`", prose):
        words = " ".join(span.split())
        typed = f"npx cdk deploy {words}" if words.startswith("-c ") else words
        yield from ((each, False) for each in _commands(typed))


def _starts_with_program(line: str) -> bool:
    return (
        bool(re.match(r"(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\S*/)?(?:trainctl|make|npx) [a-z-]", line))
        and "`" not in line
    )


def _commands(line: str) -> Iterator[str]:
    line = re.sub(r"^\s*(?:\$ |- run: )?(?:[A-Z_]+=\S+ )*", "", line)
    for each in re.split(r"&&|;|\|| and (?=make )", line):
        if _PROGRAM.fullmatch(each.strip().split(" ")[0]):
            yield each.strip()


def objection(command: str, *, complete: bool) -> str | None:
    """Return what is wrong with a command, or None. One that is not complete may lack arguments and flags."""
    program, *words = shlex.split(command)
    match program.rpartition("/")[2]:
        case "trainctl":
            return _objection_of_trainctl(words, complete=complete) or _objection_to_flags(
                words, complete=complete
            )
        case "make":
            names = {word.partition("=")[0] for word in words if "=" in word}
            targets = {word for word in words if "=" not in word and not word.startswith("-")}
            return (
                f"not in the Makefile: {wrong}"
                if (wrong := targets - _TARGETS | names - _VARIABLES)
                else None
            )
        case _:
            return _objection_to_flags(words, complete=complete) if words[:1] == ["cdk"] else None


@cache
def _trainctl() -> TyperGroup:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return group


def _objection_of_trainctl(words: list[str], *, complete: bool) -> str | None:
    if "..." in words:
        words, complete = words[: words.index("...")], False
    group = _trainctl()
    words = _account_first(words)
    while words[:1] and words[0] in {"--region", "--profile", "--as"}:
        words = words[2:]
    if not words or words[0] in {"--help", "--version", "-h", "--install-completion"}:
        return None
    if not (subcommand := group.commands.get(words[0])):
        return f"no subcommand: {words[0]}"
    try:
        with subcommand.make_context(words[0], words[1:]) as context:
            if words[0] == "submit":
                settings = dict(each.split("=", 1) for each in context.params["settings"] or ())
                check_job_settings(context.params["workload"], settings, context.params["arguments"] or ())
    except (exceptions.NoArgsIsHelpError, exceptions.MissingParameter) as error:
        return error.format_message() if complete else None
    except exceptions.UsageError as error:
        return error.format_message()
    except UsageError as error:
        return str(error)
    except typer.Exit:
        pass
    return None


def _objection_to_flags(words: list[str], *, complete: bool) -> str | None:
    flags = dict[str, str]()
    for option, value in pairwise(words):
        if option == "-c" and "=" in value:
            name, _, flags[name] = value.partition("=")
    if unknown := {*flags} - {*Settings.model_fields}:
        return f"no flags: {unknown}"
    open_values = {name for name, value in flags.items() if "..." in value or value.isupper()}
    if not complete or open_values or _FILES & {*flags}:
        return None
    try:
        read_settings(flags)
    except ConfigurationError as error:
        return str(error)
    return None


def test_every_command_of_a_page_is_taken() -> None:
    found = [(page, *each) for page in PAGES for each in commands_of(page.read_text())]
    for program in ("trainctl", "make", "npx cdk"):
        assert sum(command.startswith(program) for _, command, _ in found) > 40, program
    wrong = {
        (str(page), command): why
        for page, command, complete in found
        if (why := objection(command, complete=complete))
    }
    assert wrong == {}
