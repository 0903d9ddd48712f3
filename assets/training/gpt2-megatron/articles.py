"""Wikipedia's articles as plain text: streamed from a compressed dump into JSON lines."""

from __future__ import annotations

import bz2
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from trainkit.data.shards import ShardError
from trainkit.run.files import sync

# Links to pictures and categories, in English; other wikis have more names.
NOT_TEXT = re.compile(r"\s*(file|image|category)\s*:", re.IGNORECASE)
# Elements whose content is not text of sentences.
NOT_PROSE = frozenset({"table", "ref", "gallery", "math", "timeline", "score", "syntaxhighlight", "source"})
EMPTY_LINES = re.compile(r"\s*\n\s*\n\s*")
LINE_ENDS = re.compile(r"[ \t]*\n[ \t]*")
SAY_EVERY_ARTICLES = 200


def extract(dump: Path, to: Path, *, say: Callable[[int], None] = lambda _: None) -> int:
    """Write the articles of one .xml.bz2 as JSON lines, whole or not at all; return their number.

    Args:
        say: called from time to time with the bytes of the dump that were read since the last call.

    Raises:
        ShardError: the dump is incomplete.
    """
    partial = to.with_name(f".{to.name}.partial")
    count = 0
    try:
        with (
            dump.open("rb") as compressed,
            bz2.open(compressed) as opened,
            partial.open("w", encoding="utf-8") as out,
        ):
            reported = 0
            for title, wikitext in pages(opened):
                text = plain(wikitext)
                if text:
                    count += 1
                    line = {"title": title, "text": f"{title}\n\n{text}\n"}
                    out.write(json.dumps(line, ensure_ascii=False) + "\n")
                if count % SAY_EVERY_ARTICLES == 0:
                    say(compressed.tell() - reported)
                    reported = compressed.tell()
            say(compressed.tell() - reported)
    except (EOFError, OSError, ET.ParseError) as error:
        partial.unlink(missing_ok=True)
        raise ShardError(f"{dump} is not a complete dump ({error}): delete it and submit again.") from error
    sync(partial)
    partial.replace(to)
    return count


def pages(opened: IO[bytes]) -> Iterator[tuple[str, str]]:
    """Read title and wikitext of each article, without redirects and meta pages, in little memory."""
    # The dump's checksum is verified, and the parser fetches no external entity.
    events = ET.iterparse(opened, events=("start", "end"))  # noqa: S314
    _, root = next(events)
    for event, element in events:
        if event != "end" or _name(element) != "page":
            continue
        found = {_name(child): child for child in element.iter()}
        namespace, model = _text(found.get("ns")), _text(found.get("model"))
        if "redirect" not in found and namespace == "0" and model == "wikitext":
            yield _text(found.get("title")), _text(found.get("text"))
        # Otherwise the tree would grow to the size of the dump.
        root.clear()


def _name(element: ET.Element) -> str:
    """Return an element's name without the namespace, which has the format's version."""
    return element.tag.rpartition("}")[2]


def _text(element: ET.Element | None) -> str:
    return "" if element is None else element.text or ""


def plain(wikitext: str) -> str:
    """Return the text of an article, without tables, notes, pictures and templates."""
    import mwparserfromhell  # noqa: PLC0415 (the rest of this file needs no package)

    code = mwparserfromhell.parse(wikitext)
    for link in code.filter_wikilinks(recursive=False):
        if NOT_TEXT.match(str(link.title)):
            _remove(code, link)
    for tag in code.filter_tags(recursive=False):
        if str(tag.tag).strip().lower() in NOT_PROSE:
            _remove(code, tag)
    text = str(code.strip_code(normalize=True, collapse=True))
    return EMPTY_LINES.sub("\n\n", LINE_ENDS.sub("\n", text)).strip()


def _remove(code: Any, node: Any) -> None:
    code.nodes = [each for each in code.nodes if each is not node]
