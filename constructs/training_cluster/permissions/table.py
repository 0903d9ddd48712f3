"""Table of permissions, permissions.tsv: actions of the provider, with their sources.

A row is an action; its scopes (scopes.py) have its resources. docs/permissions.md describes the columns;
`make permissions` writes those that can be computed.
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

PATH = Path(__file__).with_name("permissions.tsv")
UNDECIDED = "?"
"""Scope of a row that `make permissions` found, until a person decides about it."""
NO_ACTION = "-"
"""Action of the row for resource types that need no permission."""
_SEPARATOR = "; "


@dataclass(frozen=True, kw_only=True)
class Row:
    """One action, allowed in its scopes or left out for a reason."""

    action: str
    """Action as `service:Action`. Rows that are left out may have a wildcard, or - for types without any."""
    scopes: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    """Operations of calls of the provider and the ParallelCluster library, recorded on the local AWS."""
    types: tuple[str, ...] = ()
    """Resource types whose handlers take the action by the registry: `AWS::EC2::Instance create,delete`."""
    policy: tuple[str, ...] = ()
    """Statements of ParallelCluster's published policy; `Sid as s3:Get*` where a wildcard names it."""
    documentation: tuple[str, ...] = ()
    """Pages of AWS's documentation, for actions without another source."""
    left_out: tuple[str, ...] = ()
    """Reasons to leave it out.

    `unset: AWS::EC2::Instance Volumes` for properties that alone call for it, which no template sets; with
    scopes, for those of one type. `uncalled: TYPE the reason` for a type that declares it in vain.
    """

    @property
    def service(self) -> str:
        """Service prefix of the action."""
        return self.action.partition(":")[0]

    @property
    def type_names(self) -> frozenset[str]:
        """Resource types whose handlers take the action."""
        return frozenset(each.partition(" ")[0] for each in self.types)

    @property
    def is_named(self) -> bool:
        """True when any source names the action."""
        return bool(self.calls or self.types or self.policy or self.documentation)

    @property
    def unset(self) -> Mapping[str, tuple[str, ...]]:
        """Properties that alone call for the action, by resource type."""
        words = [each.split() for each in self.left_out if each.startswith("unset: ")]
        return {name: tuple(properties) for _, name, *properties in words}

    def excuses(self, type_: str) -> bool:
        """Return True if a reason says that the handlers of a resource type do not call the action."""
        always = any(not each.startswith(("unset: ", "uncalled: ")) for each in self.left_out)
        here = any(each.startswith(f"uncalled: {type_} ") for each in self.left_out)
        return here or (always and type_ in self.type_names)


COLUMNS = tuple(each.name for each in fields(Row))


def load(path: Path = PATH) -> list[Row]:
    """Read the rows of the table.

    Raises:
        ValueError: a line is not of the table's form; the message has its number.
    """
    rows = []
    with path.open(encoding="utf-8", newline="") as file:
        for number, cells in enumerate(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE), start=1):
            if len(cells) != len(COLUMNS) or (number == 1 and tuple(cells) != COLUMNS):
                raise ValueError(
                    f"{path.name}:{number}: expected the cells {', '.join(COLUMNS)}, found {cells}"
                )
            if number > 1:
                several = {
                    name: tuple(cell.split(_SEPARATOR)) if cell else ()
                    for name, cell in zip(COLUMNS[1:], cells[1:], strict=True)
                }
                rows.append(Row(action=cells[0], **several))
    return rows


def dump(rows: Iterable[Row]) -> str:
    """Render the table, sorted, so that the same rows are always the same text."""
    lines = ["\t".join(COLUMNS)]
    for row in sorted(rows, key=lambda row: row.action.lower()):
        lines.append("\t".join([row.action, *(_SEPARATOR.join(getattr(row, name)) for name in COLUMNS[1:])]))
    return "\n".join(lines) + "\n"
