"""A Wikipedia dump, downloaded and made into JSON lines: in parallel, and resumed where it was interrupted.

Wikimedia publishes a dump as many parts (71 and 26.9 GB for enwiki of October 2026), with sizes and sha1
sums in dumpstatus.json. Each part becomes one .jsonl, by one process.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shutil
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from articles import extract
from trainkit.data.fetch import Expected, curl, download
from trainkit.data.shards import ShardError

URL = "https://dumps.wikimedia.org"
# Wikimedia allows three connections per address at a time, and asks for at most two.
DOWNLOADS = 2
JOB = "articlesdump"
STATUS = "dumpstatus.json"
PROGRESS_EVERY_S = 10.0
# The dump itself, and its articles as text, which are about as large.
SPACE_FACTOR = 2


@dataclass(frozen=True, kw_only=True)
class Part:
    """One file of a dump."""

    name: str
    url: str
    size_bytes: int
    sha1: str


@dataclass(frozen=True, kw_only=True)
class Dump:
    """The articles of one wiki on one day, in their own folder."""

    folder: Path
    parts: tuple[Part, ...]

    def text_of(self, part: Part) -> Path:
        """Return the file of a part's articles, which may not exist yet."""
        return self.folder / "text" / f"{part.name.removesuffix('.bz2')}.jsonl"

    def texts(self) -> list[Path]:
        """List the files of all parts' articles, in their order."""
        return [self.text_of(part) for part in self.parts]


def choose_dump(data: Path, *, wiki: str, date: str) -> str:
    """Return the date of the dump: the wanted one, else the newest on this disk, else the newest published.

    Raises:
        ShardError: `date` is not a date, or Wikimedia does not answer.
    """
    if re.fullmatch(r"\d{8}", date):
        return date
    if date != "latest":
        raise ShardError(f"WIKIPEDIA_DUMP is {date!r}: give a date such as 20261101, or latest.")
    names = sorted(status.parent.name for status in data.glob(f"{wiki}-*/{STATUS}"))
    if names:
        return names[-1].removeprefix(f"{wiki}-")
    sums = curl(f"{_base()}/{wiki}/latest/{wiki}-latest-sha1sums.txt")
    if not (found := re.search(rf" {re.escape(wiki)}-(\d{{8}})-", sums)):
        raise ShardError(f"{_base()}/{wiki}/latest names no dump: give its date (WIKIPEDIA_DUMP=20261101).")
    return found[1]


def read_dump(data: Path, *, wiki: str, date: str) -> Dump:
    """Read the list of a dump's parts, which is downloaded once and kept beside them.

    Raises:
        ShardError: there is no such dump, or it is not complete.
    """
    folder = data / f"{wiki}-{date}"
    file = folder / STATUS
    if not file.is_file():
        url = f"{_base()}/{wiki}/{date}/{STATUS}"
        status = json.loads(curl(url))["jobs"].get(JOB, {"status": "missing"})
        if status["status"] != "done":
            raise ShardError(
                f"the dump of {wiki} of {date} is not complete ({status['status']}): take another date "
                "(WIKIPEDIA_DUMP), or submit again when it is."
            )
        folder.mkdir(parents=True, exist_ok=True)
        download(url, file)
    files = json.loads(file.read_text(encoding="utf-8"))["jobs"][JOB]["files"]
    parts = [
        Part(name=name, url=_base() + each["url"], size_bytes=each["size"], sha1=each["sha1"])
        for name, each in files.items()
        if name.endswith(".bz2")
    ]
    return Dump(folder=folder, parts=tuple(sorted(parts, key=lambda part: _page(part.name))))


def _base() -> str:
    return (os.environ.get("WIKIPEDIA_URL") or URL).rstrip("/")


def _page(name: str) -> tuple[int, str]:
    """Return the number of a part's first page, since names do not sort by it."""
    found = re.search(r"-p(\d+)p\d+", name)
    return (int(found[1]) if found else 0, name)


def have_text(
    dump: Dump, *, workers: int, say: Callable[[str], None] = print, every_s: float = PROGRESS_EVERY_S
) -> None:
    """Download and extract the parts whose text is missing, the biggest first.

    Raises:
        ShardError: a part cannot be downloaded or read; finished parts are kept.
    """
    left = sorted(
        (part for part in dump.parts if not dump.text_of(part).is_file()), key=lambda part: -part.size_bytes
    )
    if not left:
        return
    (dump.folder / "text").mkdir(parents=True, exist_ok=True)
    (dump.folder / "parts").mkdir(exist_ok=True)
    total = sum(part.size_bytes for part in left)
    check_space(dump.folder, total * SPACE_FACTOR)
    say(f"data: {dump.folder.name}, {len(left)} of {len(dump.parts)} parts to do, {total / 1e6:,.1f} MB")
    spawn = multiprocessing.get_context("spawn")
    read_bytes = spawn.Value("q", 0)
    threads = ThreadPoolExecutor(DOWNLOADS)
    pool = ProcessPoolExecutor(
        min(workers, len(left)), mp_context=spawn, initializer=_begin, initargs=(read_bytes,)
    )
    try:
        _work(dump, left, threads, pool, lambda: read_bytes.value, say=say, every_s=every_s)
    except BrokenProcessPool as error:
        raise ShardError(
            "a process that read the dump was killed, perhaps because memory ran out: submit again, finished "
            f"parts are kept; fewer at a time than {workers}: PREPARE_WORKERS={max(1, workers // 2)}."
        ) from error
    finally:
        threads.shutdown(wait=True, cancel_futures=True)
        pool.shutdown(wait=True, cancel_futures=True)


def check_space(folder: Path, bytes_needed: int) -> None:
    """Refuse a file system that is too small now instead of in an hour.

    Raises:
        ShardError: it is too small.
    """
    free = shutil.disk_usage(folder).free
    if free < bytes_needed:
        raise ShardError(
            f"{folder} needs about {bytes_needed / 1e9:,.1f} GB and its file system has {free / 1e9:,.1f} GB "
            "free: make room, or take a smaller wiki (WIKI=simplewiki)."
        )


def _work(
    dump: Dump,
    left: list[Part],
    threads: ThreadPoolExecutor,
    pool: ProcessPoolExecutor,
    read_bytes: Callable[[], int],
    *,
    say: Callable[[str], None],
    every_s: float,
) -> None:
    """Give each downloaded part to a process, and report the progress from time to time."""
    started, total = time.monotonic(), sum(part.size_bytes for part in left)
    downloads: dict[Future[Path], Part] = {threads.submit(_download, dump, part): part for part in left}
    extractions: set[Future[int]] = set()
    arrived = extracted = articles = 0
    while downloads or extractions:
        pending: set[Future[Any]] = {*downloads, *extractions}
        done, _ = wait(pending, timeout=every_s, return_when=FIRST_COMPLETED)
        for future in done:
            if future in extractions:
                extractions.discard(future)
                articles, extracted = articles + future.result(), extracted + 1
            else:
                part = downloads.pop(future)
                arrived += part.size_bytes
                extractions.add(pool.submit(_extract, future.result(), dump.text_of(part)))
        rate = read_bytes() / max(1e-9, time.monotonic() - started)
        to_go = f", about {(total - read_bytes()) / rate / 60:.0f} min left" if rate else ""
        say(
            f"data: {arrived / 1e6:,.1f} of {total / 1e6:,.1f} MB here, {read_bytes() / 1e6:,.1f} MB read, "
            f"{extracted} of {len(left)} parts, {articles:,} articles{to_go}"
        )


def _download(dump: Dump, part: Part) -> Path:
    file = dump.folder / "parts" / part.name
    if not file.is_file():
        download(part.url, file, expected=Expected(size_bytes=part.size_bytes, sha1=part.sha1))
    return file


_read_bytes: Any = None
"""Bytes of the dump that all processes together have read."""


def _begin(read_bytes: Any) -> None:
    global _read_bytes  # noqa: PLW0603 (what a process of a pool is given, once)
    _read_bytes = read_bytes


def _extract(file: Path, to: Path) -> int:
    def count(new: int) -> None:
        with _read_bytes.get_lock():
            _read_bytes.value += new

    return extract(file, to, say=count)
