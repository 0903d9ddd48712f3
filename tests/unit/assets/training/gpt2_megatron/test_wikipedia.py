"""A Wikipedia dump on its way to JSON lines: streaming, checked, and taken up again."""

from __future__ import annotations

import bz2
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.assets.training.workload_modules import Import, workload_on_the_path

DATE = "20261101"
PAGE = """<page><title>{title}</title><ns>{ns}</ns>{more}<revision><model>{model}</model>
<text xml:space="preserve">{text}</text></revision></page>"""


def page(title: str, text: str, *, ns: int = 0, more: str = "", model: str = "wikitext") -> str:
    return PAGE.format(title=title, text=text, ns=ns, more=more, model=model)


def dump_of(*pages: str) -> bytes:
    inside = "".join(pages)
    return bz2.compress(
        f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/">{inside}</mediawiki>'.encode()
    )


PARTS = {
    f"tinywiki-{DATE}-pages-articles1.xml-p1p10.bz2": dump_of(
        page("Ada", "Ada was a mathematician."),
        page("Talk:Ada", "Who says so?", ns=1),
        page("Lovelace", "#REDIRECT [[Ada]]", more='<redirect title="Ada" />'),
    ),
    f"tinywiki-{DATE}-pages-articles2.xml-p11p200.bz2": dump_of(page("Bob", "Bob built things. Übung.")),
}


@pytest.fixture
def import_(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    with workload_on_the_path(monkeypatch, "gpt2-megatron") as load:
        # The package that reads wikitext is installed in slow tests only.
        monkeypatch.setattr(load("articles"), "plain", str.strip)
        yield load


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mirror of Wikimedia's on this disk; curl reads files as well."""
    day = tmp_path / "mirror" / "tinywiki" / DATE
    day.mkdir(parents=True)
    files = {}
    for name, content in PARTS.items():
        (day / name).write_bytes(content)
        sha1 = hashlib.sha1(content, usedforsecurity=False).hexdigest()
        files[name] = {"size": len(content), "url": f"/tinywiki/{DATE}/{name}", "sha1": sha1}
    status = {"jobs": {"articlesdump": {"status": "done", "files": files}}}
    (day / "dumpstatus.json").write_text(json.dumps(status))
    latest = tmp_path / "mirror" / "tinywiki" / "latest"
    latest.mkdir()
    (latest / "tinywiki-latest-sha1sums.txt").write_text(f"{'0' * 40}  tinywiki-{DATE}-pages.xml\n")
    monkeypatch.setenv("WIKIPEDIA_URL", f"file://{tmp_path / 'mirror'}")
    return tmp_path / "mirror"


def read(file: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_only_articles_become_lines(import_: Import, tmp_path: Path) -> None:
    dump = tmp_path / "part.xml.bz2"
    dump.write_bytes(
        dump_of(
            page("Ada", "Ada was a mathematician."),
            page("Ada/style.css", ".a {}", model="sanitized-css"),
            page("Template:Ada", "{{Ada}}", ns=10),
            page("Lovelace", "#REDIRECT [[Ada]]", more='<redirect title="Ada" />'),
            page("Empty", ""),
        )
    )
    told: list[int] = []
    assert import_("articles").extract(dump, tmp_path / "text.jsonl", say=told.append) == 1
    assert read(tmp_path / "text.jsonl") == [{"title": "Ada", "text": "Ada\n\nAda was a mathematician.\n"}]
    assert sum(told) == dump.stat().st_size


def test_a_torn_dump_gives_no_text_and_a_sentence(import_: Import, tmp_path: Path) -> None:
    dump = tmp_path / "part.xml.bz2"
    dump.write_bytes(dump_of(*(page(f"Page {number}", "Some words. " * 99) for number in range(50)))[:-20])
    error = import_("trainkit.data.shards").ShardError
    with pytest.raises(error, match=r"part\.xml\.bz2 is not a complete dump .*: delete it and submit again"):
        import_("articles").extract(dump, tmp_path / "text.jsonl")
    assert [file.name for file in tmp_path.iterdir()] == ["part.xml.bz2"]


def test_a_dump_is_had_once_and_taken_up_again_where_it_was_left(
    import_: Import, mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wikipedia, data = import_("wikipedia"), tmp_path / "data"
    assert wikipedia.choose_dump(data, wiki="tinywiki", date="latest") == DATE
    dump = wikipedia.read_dump(data, wiki="tinywiki", date=DATE)
    assert [part.name for part in dump.parts] == list(PARTS)
    first, second = dump.texts()
    first.parent.mkdir(parents=True)
    first.write_text('{"text": "of an earlier start"}\n')
    said: list[str] = []
    run_here(wikipedia, monkeypatch)
    wikipedia.have_text(dump, workers=2, say=said.append)
    assert "1 of 2 parts to do" in said[0]
    assert read(first) == [{"text": "of an earlier start"}]
    assert read(second) == [{"title": "Bob", "text": "Bob\n\nBob built things. Übung.\n"}]
    # Next month's dump is not what a run goes on with.
    assert wikipedia.choose_dump(data, wiki="tinywiki", date="latest") == DATE
    (mirror / "tinywiki" / DATE / "dumpstatus.json").unlink()
    assert wikipedia.read_dump(data, wiki="tinywiki", date=DATE) == dump


def test_a_part_that_arrives_damaged_is_refused_and_not_kept(
    import_: Import, mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wikipedia = import_("wikipedia")
    dump = wikipedia.read_dump(tmp_path / "data", wiki="tinywiki", date=DATE)
    (mirror / "tinywiki" / DATE / dump.parts[1].name).write_bytes(b"damaged")
    run_here(wikipedia, monkeypatch)
    with pytest.raises(
        import_("trainkit.data.shards").ShardError, match="is not the expected file: its size is 7 bytes"
    ):
        wikipedia.have_text(dump, workers=1, say=lambda _: None)
    assert not dump.text_of(dump.parts[1]).exists()
    assert [file.name for file in (dump.folder / "parts").iterdir()] in ([], [dump.parts[0].name])


def test_a_disk_that_is_too_small_is_told_before_anything_is_fetched(
    import_: Import, mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wikipedia = import_("wikipedia")
    dump = wikipedia.read_dump(tmp_path / "data", wiki="tinywiki", date=DATE)
    monkeypatch.setattr(wikipedia, "SPACE_FACTOR", 10**15)
    with pytest.raises(import_("trainkit.data.shards").ShardError, match=r"GB free: make room"):
        wikipedia.have_text(dump, workers=1, say=lambda _: None)
    assert list((dump.folder / "parts").iterdir()) == []


def test_a_dump_under_way_is_not_taken(import_: Import, mirror: Path, tmp_path: Path) -> None:
    status = {"jobs": {"articlesdump": {"status": "in-progress"}}}
    (mirror / "tinywiki" / DATE / "dumpstatus.json").write_text(json.dumps(status))
    with pytest.raises(import_("trainkit.data.shards").ShardError, match=r"not complete \(in-progress\)"):
        import_("wikipedia").read_dump(tmp_path / "data", wiki="tinywiki", date=DATE)


def run_here(wikipedia: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads in the place of processes, which could not be told of the test's own `plain`."""
    pool = wikipedia.ThreadPoolExecutor

    def threads(workers: int, *, mp_context: object, **more: object) -> object:
        return pool(workers, **more)

    monkeypatch.setattr(wikipedia, "ProcessPoolExecutor", threads)
