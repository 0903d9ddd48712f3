"""Parts of pages that load nothing else: tables, digests of styles and scripts, and writing a whole file."""

import base64
import hashlib
from html import escape
from pathlib import Path

from ops.report.tables import OPENED_BY, Table
from ops.usage import OpsError, UsageError

STYLE = (Path(__file__).parent / "page.css").read_text()
# A cell with more characters than this gets a wide column, for phones.
_LONG = 24


def digest(text: str) -> str:
    """Return the digest of a style or script, as a content security policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def table_html(table: Table) -> str:
    """Return a table's HTML; nothing for a table without rows."""
    note = f'<p class="muted">{escape(table.note)}</p>' if table.note else ""
    if not table.rows:
        return note if table.title == "Configuration" else ""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.header)
    rows = []
    for number, (first, *others) in enumerate(table.rows):
        differs = ' class="different"' if number in table.different else ""
        cells = "".join(f"<td{_width(cell)}>{_content(cell)}</td>" for cell in others)
        rows.append(f'<tr{differs}><th scope="row"{_width(first)}>{escape(first)}</th>{cells}</tr>')
    label = escape(table.title, quote=True)
    return (
        f'<div class="scroll" role="region" aria-label="{label}" tabindex="0">'
        f"<table><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>{note}"
    )


def _content(cell: str) -> str:
    """Return a cell's HTML; a page that opens profiles becomes a link, and no text of a run does."""
    return f'<a href="{cell}" rel="noreferrer">{cell}</a>' if cell in OPENED_BY.values() else escape(cell)


def _width(cell: str) -> str:
    return ' class="long"' if len(cell) > _LONG else ""


def check_file(html: Path, *, force: bool, command: str) -> None:
    """Refuse a path that cannot or must not be written, before AWS is asked. Raises UsageError."""
    if html.is_dir():
        raise UsageError(f"{command}: {html} is a folder.\n  type:   --html {html / f'{command}.html'}")
    if not html.parent.is_dir():
        raise UsageError(f"{command}: there is no folder {html.parent}.\n  type:   mkdir -p {html.parent}")
    if html.exists() and not force:
        raise UsageError(
            f"{command}: {html} already exists.\n  type:   --force to overwrite it, or another name"
        )


def write_file(content: str, html: Path, *, command: str) -> None:
    """Write a page, completely or not at all. Raises OpsError on a write error."""
    partial = html.with_name(f".{html.name}.partial")
    try:
        partial.write_bytes(content.encode())
        partial.replace(html)
    except OSError as error:
        raise OpsError(f"{command}: {html} cannot be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)
