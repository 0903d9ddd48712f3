"""`make permissions`: write the generated columns of permissions.tsv, and preserve the others.

    python -m tools.pcluster.permissions_table calls                     # judged by local AWSs of .rehearsal
    python -m tools.pcluster.permissions_table types                     # the registry's schemas, by cfn-lint
    python -m tools.pcluster.permissions_table policy FILE               # ParallelCluster's published policy

The person who runs it decides about new rows: a scope, or the reason to leave it out (docs/permissions.md).
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from rehearsal.local_aws.rights.registry_schemas import UnknownTypeError, handlers, schema
from rehearsal.recording import judged_calls
from training_cluster.paths import ROOT
from training_cluster.permissions.overrides import MANAGED_TYPES
from training_cluster.permissions.table import NO_ACTION, PATH, UNDECIDED, Row, dump, load

_REQUEST = "request "
# Attributes of a resource in a template beside its properties; no schema has them.
_ATTRIBUTES = {"UpdatePolicy"}
# The published policies for clusters. The others are for AWS Batch, images, logs and FSx with S3.
_POLICIES = (
    "ParallelClusterClusterPolicy1",
    "ParallelClusterClusterPolicy2",
    "DefaultParallelClusterIamAdminPolicy",
)


class SourceError(Exception):
    """A source is not available, or differs from the table. The message has the remedy."""


class _Template(yaml.SafeLoader):
    """A loader that reads CloudFormation's short forms as None, since they are not needed."""


_Template.add_multi_constructor("!", lambda _loader, _suffix, _node: None)


def published_statements(file: Path) -> list[tuple[str, str]]:
    """Read ParallelCluster's published policy: each Sid and action, wildcards included."""
    template = yaml.load(file.read_text(encoding="utf-8"), Loader=_Template)  # noqa: S506  # a safe one
    statements = [
        statement
        for name in _POLICIES
        for statement in template["Resources"][name]["Properties"]["PolicyDocument"]["Statement"]
    ]
    return [(each.get("Sid", "without a Sid"), action) for each in statements for action in each["Action"]]


def with_column(rows: Iterable[Row], column: str, found: Mapping[str, Iterable[str]]) -> list[Row]:
    """Replace one column of the table.

    Args:
        found: contents of the column's cells, by action; rows that are no longer named are removed.
    """
    old = {row.action: row for row in rows}
    new = []
    for action in {*old, *found}:
        row = old.get(action, Row(action=action, scopes=(UNDECIDED,)))
        changed: dict[str, Any] = {column: tuple(sorted(found.get(action, ()), key=str.lower))}
        row = replace(row, **changed)
        if row.is_named:
            new.append(row)
    return sorted(new, key=lambda row: row.action.lower())


def with_calls(rows: list[Row], recording: str) -> list[Row]:
    """Replace the calls and the list of types; `types` then reads the permissions of new ones.

    Args:
        recording: judged calls of the provider's role.
    """
    calls = defaultdict[str, set[str]](set)
    for call in judged_calls.parse(recording):
        if call.by.startswith(_REQUEST):
            calls[call.need.action].add(call.by.partition(":")[2])
    recorded, types = judged_calls.types_of(recording) | MANAGED_TYPES, defaultdict[str, set[str]](set)
    for row in rows:
        types[row.action] = {each for each in row.types if each.partition(" ")[0] in recorded}
    known = {each.partition(" ")[0] for cells in types.values() for each in cells}
    types[NO_ACTION] |= recorded - known
    return with_column(with_column(rows, "calls", calls), "types", types)


def with_types(rows: list[Row]) -> list[Row]:
    """Replace the permissions of the table's types with the registry's.

    Raises:
        SourceError: a schema is not available, or lacks a property for which a row is left out.
    """
    found = defaultdict[str, dict[str, list[str]]](dict)
    try:
        for name in sorted({name for row in rows for name in row.type_names}):
            _check_properties(name, json.dumps(schema(name)), rows)
            for handler, declared in handlers(name).items():
                for action in declared:
                    found[action].setdefault(name, []).append(handler)
            if not any(name in types for types in found.values()):
                found[NO_ACTION][name] = []
    except UnknownTypeError as error:
        raise SourceError(str(error)) from None
    cells = {
        action: [f"{name} {','.join(dict.fromkeys(handlers))}".strip() for name, handlers in types.items()]
        for action, types in found.items()
    }
    return with_column(rows, "types", cells)


def _check_properties(name: str, text: str, rows: Iterable[Row]) -> None:
    for row in rows:
        for each in set(row.unset.get(name, ())) - _ATTRIBUTES:
            if f'"{each}"' not in text:
                raise SourceError(f"{row.action} is left out for the property {each}, which {name} lacks.")


def with_policy(rows: list[Row], statements: Iterable[tuple[str, str]]) -> list[Row]:
    """Replace the actions of the published policy. A wildcard is added to existing rows only."""
    known, found = {row.action.lower(): row.action for row in rows}, defaultdict[str, set[str]](set)
    wildcards = []
    for sid, action in statements:
        if "*" in action:
            wildcards.append((sid, action))
        else:  # its actions vary in upper and lower case
            found[known.get(action.lower(), action)].add(sid)
    for sid, pattern in wildcards:
        for action in known.values():
            if "*" not in action and fnmatchcase(action, pattern):
                found[action].add(f"{sid} as {pattern}")
    return with_column(rows, "policy", found)


def record(folder: Path) -> str:
    """Add the judged calls of all local AWSs below a rehearsal's folder to the recording, and return it.

    Raises:
        SourceError: there are none.
    """
    # .rehearsal/aws, .rehearsal/aws/us-east-1, .rehearsal/faults/aws/worker-0
    files = [path for each in ("aws", "*/aws") for path in folder.glob(f"{each}/**/judged-calls.jsonl")]
    if not files:
        raise SourceError(f"{folder} has no judged calls.\n  type: make validate, then: make permissions")
    recording = judged_calls.PATH.read_text(encoding="utf-8")
    for file in files:
        recording = judged_calls.add(recording, file.read_text(encoding="utf-8").splitlines())
    return recording


def _changed(arguments: argparse.Namespace) -> list[Row]:
    rows = load()
    if arguments.command == "calls":
        recording = record(ROOT / ".rehearsal")
        judged_calls.PATH.write_text(recording, encoding="utf-8")
        return with_calls(rows, recording)
    if arguments.command == "types":
        return with_types(rows)
    return with_policy(rows, published_statements(arguments.file))


def main() -> int:
    """Write the table; return 1 if a source is missing, or a person has to decide about a row."""
    parser = argparse.ArgumentParser(prog="permissions_table", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("calls", help="read the calls that rehearsals judged")
    commands.add_parser("types", help="read the permissions of resource types")
    commands.add_parser("policy", help="read ParallelCluster's published policy").add_argument(
        "file", type=Path
    )
    try:
        rows = _changed(parser.parse_args())
    except (OSError, SourceError) as error:
        print(f"permissions: {error}", file=sys.stderr)
        return 1
    PATH.write_text(dump(rows), encoding="utf-8")
    undecided = [row.action for row in rows if UNDECIDED in row.scopes]
    if undecided:
        print(f"permissions: decide about the {len(undecided)} rows of {PATH.name} with a ?", file=sys.stderr)
    return 1 if undecided else 0


if __name__ == "__main__":
    sys.exit(main())
