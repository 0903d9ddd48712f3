"""Applies the rules to files, except where a comment permits a line."""

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ops.lint.rules import load_rules
from ops.lint.shell import NotShellError, Subject, read_subjects
from ops.usage import UsageError
from training_cluster.problems import did_you_mean

_ALLOW = re.compile(r"#\s*trainctl:\s*allow\b\s*(?P<rule>\S*)[ \t]*(?P<reason>.*)$")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line that should be changed."""

    file: str
    line: int
    rule: str
    problem: str
    source: str = ""
    instead: str

    def text(self) -> str:
        """Return the finding as text, whose first line is FILE:LINE: RULE: PROBLEM."""
        why = f"\n  source: {self.source}" if self.source else ""
        return f"{self.file}:{self.line}: {self.rule}: {self.problem}{why}\n  write:  {self.instead}"


def lint_files(files: Iterable[Path]) -> list[Finding]:
    """Return the findings of all files. Raises UsageError if a file is missing, or is not text."""
    texts = {file: _read(file) for file in files}
    return [found for file, text in texts.items() for found in lint(text, name=str(file))]


def lint(text: str, *, name: str) -> list[Finding]:
    """Return the findings of one script, by line; one alone, not-shell, if bash could not parse it."""
    try:
        subjects = read_subjects(text)
    except NotShellError as error:
        return [
            Finding(
                file=name,
                line=error.line,
                rule="not-shell",
                problem=f"bash cannot parse this script: {error}",
                instead=f"a script that `bash -n {shlex.quote(name)}` accepts",
            )
        ]
    allowed, findings = _allowed(text, name)
    for rule in load_rules().values():
        for each in rule.find(subjects):
            if rule.id not in _silenced(each, allowed):
                findings.append(
                    Finding(
                        file=name,
                        line=each.line,
                        rule=rule.id,
                        problem=rule.problem,
                        source=rule.source,
                        instead=rule.instead,
                    )
                )
    return sorted(set(findings), key=lambda found: (found.line, found.rule))


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"There is no file {file}.") from None
    except IsADirectoryError:
        raise UsageError(f"{file} is a folder: name the scripts in it, such as {file}/*.sh.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not text.") from None
    except PermissionError:
        raise UsageError(f"You may not read {file}.") from None


def _allowed(text: str, name: str) -> tuple[dict[int, set[str]], list[Finding]]:
    """Return the rules that comments permit to break, by line, and the wrong comments."""
    allowed: dict[int, set[str]] = {}
    wrong = []
    for number, line in enumerate(text.splitlines(), 1):
        if not (comment := _ALLOW.search(line)):
            continue
        rule, reason = comment["rule"], comment["reason"].strip()
        if rule in load_rules() and reason:
            # A comment on a line of its own applies to the next one.
            own_line = line.lstrip().startswith("#")
            allowed.setdefault(number + own_line, set()).add(rule)
        else:
            unknown = f'"{rule}" is not a rule.{did_you_mean(rule, load_rules())}'
            problem = "this comment permits nothing: " + (
                f"{rule} needs a reason" if rule in load_rules() else unknown
            )
            instead = "# trainctl: allow RULE reason"
            wrong.append(Finding(file=name, line=number, rule="allow", problem=problem, instead=instead))
    return allowed, wrong


def _silenced(subject: Subject, allowed: dict[int, set[str]]) -> set[str]:
    lines = range(subject.line, subject.end_line + 1)
    return set().union(*(allowed.get(line, set()) for line in lines))
