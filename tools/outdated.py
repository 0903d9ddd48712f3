"""`make outdated`: every pinned version, the newest version, and the reason if a pin must not follow it.

It changes nothing. It asks PyPI (its JSON API), npm (as it is configured) and GitHub (tags, by git). A source
that cannot be reached is marked. The exit status is always 0, since this is a list, not a test.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from tools.pinned import Pinned, find_all

NOT_REACHED, NOBODY, NOTED = "not reached", "no source", "(noted)"
AT_ONCE, TIMEOUT_S = 8, 20
_RELEASE = re.compile(r"^v?(\d+(?:\.\d+)*(?:\.?post\d+)?)$")


def newest(versions: Iterable[str], ceiling: str = "") -> str:
    """Return the newest release among versions or tags, without pre-releases; empty if there is none."""
    releases = [match[1] for version in versions if (match := _RELEASE.match(version))]
    if ceiling:
        releases = [
            release for release in releases if release == ceiling or release.startswith(f"{ceiling}.")
        ]
    return max(releases, key=_key, default="")


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def ask(pinned: Pinned) -> list[str]:
    """Fetch all versions that the publisher of a pin lists.

    Raises:
        OSError, subprocess.SubprocessError: it cannot be reached, or does not have the name.
        ValueError, KeyError: its answer has an unexpected form.
    """
    kind, name = pinned.lookup.split(":", 1)
    return _SOURCES[kind](name)


def _pypi(name: str) -> list[str]:
    releases = _json(f"https://pypi.org/pypi/{name}/json")["releases"]
    return [
        version for version, files in releases.items() if files and not all(file["yanked"] for file in files)
    ]


def _npm(name: str) -> list[str]:
    listed = json.loads(_output("npm", "view", name, "versions", "--json"))
    return [listed] if isinstance(listed, str) else list(listed)


def _github(name: str) -> list[str]:
    listed = _output("git", "ls-remote", "--tags", "--refs", f"https://github.com/{name}")
    return [line.rsplit("/", 1)[1] for line in listed.splitlines()]


def _output(*command: str) -> str:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
        # git must not ask for a password.
        env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
    )
    return done.stdout


def _json(url: str) -> Any:
    request = urllib.request.Request(url, headers={"Accept": "application/json"})  # noqa: S310 (https, ours)
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
        return json.load(answer)


_SOURCES: dict[str, Callable[[str], list[str]]] = {"pypi": _pypi, "npm": _npm, "github": _github}


def look_up(pins: list[Pinned], *, say: Callable[[str], None]) -> list[dict[str, str]]:
    """Look up the newest version of each pin; return one row per pin, in order."""
    answers: dict[str, list[str] | None] = {}
    wanted = {pin.lookup: pin for pin in pins if pin.lookup}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = {pool.submit(ask, pin): lookup for lookup, pin in wanted.items()}
        for done, future in enumerate(as_completed(asked), start=1):
            try:
                answers[asked[future]] = future.result()
            except (OSError, ValueError, KeyError, subprocess.SubprocessError):
                answers[asked[future]] = None
            say(f"asked {done} of {len(asked)}")
    return [_row(pin, answers.get(pin.lookup, [])) for pin in pins]


def _row(pin: Pinned, versions: list[str] | None) -> dict[str, str]:
    row = {"name": pin.name, "pinned": pin.version, "newest": NOT_REACHED, "below ceiling": ""}
    if not pin.lookup:
        row["newest"] = f"{pin.noted} {NOTED}" if pin.noted else NOBODY
    elif versions is not None:
        row["newest"] = newest(versions) or NOT_REACHED
        row["below ceiling"] = newest(versions, pin.ceiling) if pin.ceiling else ""
    known = row["newest"] not in (NOT_REACHED, NOBODY)
    row["state"] = "" if not known else "newest" if _key(row["newest"]) <= _key(pin.version) else "older"
    return row | {"where": pin.where, "why": pin.reason}


def show(rows: list[dict[str, str]], *, every: bool) -> str:
    """Render the older and unknown rows as text, or all rows."""
    shown = [row for row in rows if every or row["state"] != "newest"]
    heads = ("name", "pinned", "newest", "below ceiling", "where")
    widths = {head: max(len(head), *(len(row[head]) for row in shown)) if shown else 0 for head in heads}
    lines = ["  ".join(f"{head:{widths[head]}}" for head in heads) + "  why"] if shown else []
    lines += ["  ".join(f"{row[head]:{widths[head]}}" for head in heads) + f"  {row['why']}" for row in shown]
    counts = {state: sum(row["state"] == state for row in rows) for state in ("newest", "older", "")}
    lines.append(
        f"{counts['newest']} are the newest, {counts['older']} are older, {counts['']} are not known"
    )
    return "\n".join(line.rstrip() for line in lines)


def main() -> None:
    """Print the list of pinned versions."""
    parser = argparse.ArgumentParser(prog="make outdated")
    parser.add_argument("--all", action="store_true", help="show the newest ones too")
    parser.add_argument("--json", action="store_true", help="print all rows as JSON")
    arguments = parser.parse_args()
    terminal = sys.stderr.isatty()

    def say(text: str) -> None:
        if terminal:
            print(f"\r{text} ", end="", file=sys.stderr, flush=True)

    rows = look_up(find_all(), say=say)
    if terminal:
        print("\r" + " " * 30 + "\r", end="", file=sys.stderr)
    print(json.dumps(rows, indent=2) if arguments.json else show(rows, every=arguments.all))


if __name__ == "__main__":
    main()
