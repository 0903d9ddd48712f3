"""Parses a shell script into the subjects of rules: assignments, commands, directives of sbatch.

shfmt is the parser. Comments, quoted prose and here-documents that are only printed are omitted.
"""

import json
import re
import subprocess
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Kind = Literal["variable", "command", "expansion", "directive"]
Node = dict[str, Any]

_SHELLS = {"bash", "sh", "dash", "zsh"}
_RUN_BODY = {*_SHELLS, "sbatch", "srun", "ssh"}
_PREFIXES = {"exec", "command", "sudo", "nohup", "env"}
_SHOW = {"echo", "printf", "grep", "logger", ":", "test", "["}
_VARIABLE = re.compile(r"[A-Za-z_]\w*=")
# A word that the reader of an example replaces, such as <bucket>; no here-document (<<A) and no redirection.
_PLACEHOLDER = re.compile(r"(?<!<)<[A-Za-z](?:[\w ./:-]*\w)?>")
# A here-document or a written file that matches this is a job script itself.
_IS_SCRIPT = re.compile(r"\A\s*#!.*\b(ba)?sh\b|^#SBATCH", re.MULTILINE)


class NotShellError(Exception):
    """The text is not a shell script."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A part of a script to which rules apply."""

    kind: Kind
    text: str
    """Text by kind. variable: NAME=value, without quotes. command: on one line, without quoted prose or the
    program's folder. expansion: the command with all that the shell expands before it starts. directive:
    #SBATCH ..."""
    line: int
    end_line: int


def read_subjects(text: str, *, first_line: int = 1) -> list[Subject]:
    """Return every subject of a script. Raises NotShellError: the text is not a shell script."""
    tree = _parse(text)
    script = _Script(source=text.encode(), offset=first_line - 1)
    return [*script.directives(tree), *script.walk(tree)]


def _parse(text: str) -> Node:
    """Return the tree of a script, if need be with its placeholders read as words of the same length."""
    words = _PLACEHOLDER.sub(lambda found: "x" * len(found[0]), text)
    try:
        return _shfmt(text)
    except NotShellError:
        if words == text:
            raise
    return _shfmt(words)


def _shfmt(text: str) -> Node:
    shfmt = Path(sysconfig.get_path("scripts"), "shfmt")
    done = subprocess.run(
        [shfmt, "-ln=bash", "--to-json"], input=text, capture_output=True, text=True, check=False
    )
    if done.returncode:
        place = done.stderr.strip().removeprefix("<standard input>:")
        line, column, problem = place.split(":", 2)
        raise NotShellError(int(line), f"column {column}, {problem.strip()}")
    tree: Node = json.loads(done.stdout)
    return tree


@dataclass(frozen=True, kw_only=True)
class _Script:
    """A parsed script, which may be part of another."""

    source: bytes
    offset: int
    """Number of lines before the script in the file."""

    def directives(self, tree: Node) -> Iterator[Subject]:
        """Yield the #SBATCH lines before the first command, where sbatch stops reading them."""
        commands = tree.get("Stmts") or []
        end = commands[0]["Pos"]["Line"] - 1 if commands else None
        for number, line in enumerate(self.source.decode().splitlines()[:end], 1):
            if line.startswith("#SBATCH"):
                at = self.offset + number
                yield Subject(kind="directive", text=" ".join(line.split()), line=at, end_line=at)

    def walk(self, node: Any) -> Iterator[Subject]:
        """Yield the subjects of a node and of its descendants, in the order of the file."""
        if isinstance(node, list):
            for each in node:
                yield from self.walk(each)
        elif isinstance(node, dict):
            if node.get("Type") == "CallExpr":
                yield from self._assignments(node.get("Assigns") or [])
                yield from self._command(node)
            elif node.get("Type") == "DeclClause":
                yield from self._assignments(node.get("Args") or [])
            yield from self._here_documents(node)
            for value in node.values():
                if isinstance(value, dict | list):
                    yield from self.walk(value)

    def _slice(self, node: Node) -> str:
        return self.source[node["Pos"]["Offset"] : node["End"]["Offset"]].decode()

    def _subject(self, kind: Kind, text: str, node: Node) -> Subject:
        line, end = (self.offset + node[edge]["Line"] for edge in ("Pos", "End"))
        return Subject(kind=kind, text=text, line=line, end_line=end)

    def _assignments(self, assigns: list[Node]) -> Iterator[Subject]:
        for each in assigns:
            if (name := each.get("Name")) and (value := each.get("Value")):
                text = f"{name['Value']}={_unquoted(self._slice(value))}"
                yield self._subject("variable", text, each)

    def _command(self, call: Node) -> Iterator[Subject]:
        words = call.get("Args") or []
        texts = [self._slice(word) for word in words]
        while texts and (texts[0] in _PREFIXES or _VARIABLE.match(texts[0])):
            if _VARIABLE.match(texts[0]):
                yield self._subject("variable", _unquoted(texts[0]), words[0])
            words, texts = words[1:], texts[1:]
        if not texts:
            return
        program = texts[0].rpartition("/")[2].strip("\"'")
        if program in _SHOW:
            return
        shown, expanded = [program], [program]
        for before, word, text in zip(texts, words[1:], texts[1:], strict=False):
            expanded.append(re.sub(r"'[^']*'|\\\$", "", text))
            for variable in _handed_on(before, text):
                yield self._subject("variable", variable, word)
            if code := self._code(before, word, texts):
                yield from _inner(code[0], first_line=self.offset + code[1])
            elif not _is_prose(word, text):
                shown.append(text)
        yield self._subject("command", _one_line(shown), call)
        yield self._subject("expansion", _one_line(expanded), call)

    def _code(self, before: str, word: Node, texts: list[str]) -> tuple[str, int] | None:
        """Return the script in an argument (`bash -c '...'`, `sbatch --wrap "..."`), and its first line."""
        parts: list[Node] = word["Parts"]
        is_code = before == "--wrap" or (before == "-c" and any(_program(text) in _SHELLS for text in texts))
        if len(parts) == 2 and parts[0].get("Value") == "--wrap=":  # noqa: PLR2004 (the option and its value)
            is_code, parts = True, parts[1:]
        if not is_code or parts[0]["Type"] not in ("SglQuoted", "DblQuoted"):
            return None
        text = self._slice(parts[0])[1:-1]
        if parts[0]["Type"] == "DblQuoted":
            text = re.sub(r'\\([$"`\\])', r"\1", text)
        return text, parts[0]["Pos"]["Line"]

    def _here_documents(self, node: Node) -> Iterator[Subject]:
        """Yield the subjects of scripts that a here-document passes to a shell, or writes to a file."""
        redirects = [each for each in node.get("Redirs") or [] if isinstance(each, dict)]
        for each in redirects:
            if not (body := each.get("Hdoc")):
                continue
            call = node.get("Cmd") or {}
            words = [_program(self._slice(word)) for word in call.get("Args") or []]
            text = self._slice(body)
            is_written = "tee" in words or len(redirects) > 1
            if _RUN_BODY & set(words) or (is_written and _IS_SCRIPT.search(text)):
                yield from _inner(text, first_line=self.offset + body["Pos"]["Line"])


def _inner(text: str, *, first_line: int) -> list[Subject]:
    """Return the subjects of a script inside a script; none if it is in another language."""
    try:
        return read_subjects(text, first_line=first_line)
    except NotShellError:
        return []


def _handed_on(before: str, text: str) -> Iterator[str]:
    """Yield the variables that a launcher sets: mpirun -x A=1, mpirun -genv A 1, srun --export=ALL,A=1."""
    value = text.removeprefix("--export=")
    if value != text or before == "--export":
        yield from (each for each in _unquoted(value).split(",") if _VARIABLE.match(each))
    elif before in ("-x", "-genv", "-env") and _VARIABLE.match(text):
        yield _unquoted(text)


def _program(word: str) -> str:
    return word.strip("\"'").rpartition("/")[2]


def _unquoted(text: str) -> str:
    return re.sub(r"[\"']", "", text)


def _is_prose(word: Node, text: str) -> bool:
    """Return True if an argument is one quoted string with blanks in it."""
    parts = word["Parts"]
    return len(parts) == 1 and parts[0]["Type"] in ("SglQuoted", "DblQuoted") and bool(re.search(r"\s", text))


def _one_line(words: list[str]) -> str:
    return " ".join(" ".join(words).replace("\\\n", " ").split())
