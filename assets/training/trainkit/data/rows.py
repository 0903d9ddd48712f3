"""Rows of *.jsonl and *.parquet as documents: which are valid, and what others are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainkit.data.shards import ShardError

ROWS = 256
PAIR = ("chosen", "rejected")
"""Names of the two answers of a preference pair."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rules for the objects of *.jsonl and the rows of *.parquet."""

    columns: tuple[str, ...]
    """Columns of parquet files, of which a file may have some."""
    wanted: str
    """Description of a valid row, for messages."""
    document: Callable[[dict[str, Any]], str]
    """Returns the document of a row. Raises ValueError, KeyError, TypeError or AttributeError."""

    def wanted_instead(self, names: object) -> str:
        """Return what a row with these names had to be, and what it is if that is known."""
        is_pair = isinstance(names, Collection) and {*PAIR} <= {*names} and PAIR[0] not in self.columns
        found = ", but a preference pair, which no training here takes: give its chosen answer alone"
        return self.wanted + found * is_pair


def text_of(row: dict[str, Any]) -> str:
    """Return the text of a row; null is an empty one."""
    if not isinstance(text := row["text"], str | None):
        raise TypeError(f"text is {text!r:.40}")
    return text or ""


TEXTS = Rows(columns=("text",), wanted='a JSON object with a string "text"', document=text_of)


def groups_of(count: int, size: int, *, start: int, end: int | None) -> list[int]:
    """Return those of a file's groups of rows that begin in a range of its bytes, if all are of one size."""
    return [at for at in range(count) if start <= at * size // count < (size if end is None else end)]


def parquet_rows(
    file: Path, rows: Rows, *, start: int = 0, end: int | None = None
) -> Iterator[tuple[str, int]]:
    """Read the documents of a parquet file, or of a range of its bytes, some rows at a time."""
    import pyarrow as pa  # noqa: PLC0415 (the rest of this file needs no package)
    import pyarrow.parquet as pq  # noqa: PLC0415

    size, names = file.stat().st_size, list[str]()
    try:
        with pq.ParquetFile(file) as table:
            names = table.schema_arrow.names
            if not (columns := [name for name in rows.columns if name in names]):
                raise ShardError(
                    f'{file} has no column "{rows.columns[0]}" (it has {", ".join(names)}), so no row is '
                    f"{rows.wanted_instead(names)}: rename one, and submit again."
                )
            groups = groups_of(table.num_row_groups, size, start=start, end=end)
            size //= max(1, table.metadata.num_rows)
            for group in groups:
                for batch in table.iter_batches(batch_size=ROWS, columns=columns, row_groups=[group]):
                    for each in batch.to_pylist():
                        yield rows.document(each), size
    except (pa.ArrowException, OSError) as error:
        raise ShardError(
            f"{file} is not a readable parquet file ({error}): replace it, and submit again."
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ShardError(
            f"{file} has a row that is not {rows.wanted_instead(names)} ({error}): fix it, and submit again."
        ) from error
