"""The `aws` commands that our sources and documents tell people to type, with samples in their holes."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from training_cluster.paths import ROOT

CAUSES = ROOT / "ops" / "diagnose" / "causes.yaml"
SOURCES = ("ops", "stacks", "constructs", "assets/guard", "assets/compute_zone", "assets/cluster_image")
DOCUMENTS = ("README.md", "docs/**/*.md", "assets/**/*.md")

# As long as the ids that services ask for.
_SAMPLE = "x" * 36
# What stands in a hole of an f-string, by its expression; _SAMPLE for the others.
_SAMPLES = {
    "direction": "ingress",
    "option": "dns-support",
    "rules": "IpProtocol=-1,UserIdGroupPairs=[{GroupId=sg-1}]",
    "used + wanted": "192",
    "service": "fsx",
    "which": "--db-cluster-identifier",
    "_AES256": '{"Rules": []}',
    "item": '{"Id": {"S": "x"}}',
    "window": "1:05:00",
}
_BEGINS = re.compile(r"(?<![\w./'-])aws (?=[a-z][a-z0-9-]* [a-z]|(?:login|configure)\b)")
# Shell or prose that follows a command, outside of its quotes.
_COMMAND = re.compile(r"""(?:"[^"]*"|'[^']*'|(?!  |\ 2?>|\ &&|(?<!\.)[,.:](?:\ |$)|[;|)`\n]).)*""")


def printed_aws_commands() -> dict[str, str]:
    """Map each command, once, to its file."""
    found = dict[str, str]()
    for path, text in _texts():
        for begin in _BEGINS.finditer(text):
            command = _COMMAND.match(text, begin.start())
            assert command
            typed = re.sub(r"(--stack-name)$", rf"\1 {_SAMPLE}", command[0].strip())
            found.setdefault(typed, str(path.relative_to(ROOT)))
    return found


def _texts() -> Iterator[tuple[Path, str]]:
    for folder in (*SOURCES, "assets/cluster_provider"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield from ((path, text) for text in _strings(ast.parse(path.read_text())))
    for cause in yaml.safe_load(CAUSES.read_text()):
        yield from (
            (CAUSES, re.sub(r"\{\w+\}", _SAMPLE, re.sub(r"\b(VCPUS|GIB)\b", "192", line)))
            for line in cause["mend"]
        )
    for pattern in DOCUMENTS:
        yield from ((path, path.read_text().replace("\\\n", "")) for path in sorted(ROOT.glob(pattern)))


def _strings(tree: ast.Module) -> Iterator[str]:
    """Give every string but docstrings; an f-string whole."""
    passed_over = set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            passed_over |= {id(part) for part in ast.walk(node)} - {id(node)}
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            passed_over.add(id(node.value))
    for node in ast.walk(tree):
        if id(node) in passed_over:
            continue
        if isinstance(node, ast.JoinedStr):
            yield "".join(_part(part) for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.replace("{}", _SAMPLE)


def _part(part: ast.expr) -> str:
    if isinstance(part, ast.FormattedValue):
        return _SAMPLES.get(ast.unparse(part.value), _SAMPLE)
    return str(ast.literal_eval(part))
