"""`make screenshots`: make the README's pictures from the current output of the commands.

A picture of the terminal is an SVG of a command's output, and a picture of a page a screenshot in Chromium.
The program starts a rehearsal, leaves it running for the commands that need an account, and stops it.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from rich.console import Console
from rich.text import Text

from tools.pictures.boards import BOARDS, draw
from tools.pictures.browser import Browser, browser, find_browser
from tools.pictures.example_run import write_examples
from training_cluster.paths import ROOT

PICTURES = ROOT / "docs" / "pictures"
_MOST_BYTES = 300_000
_COLUMNS = 116
_COLOURS = 128
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_REHEARSE = "trainctl rehearse --family p4d --workload gpt2 --metrics prometheus --keep"
_PROMETHEUS = re.compile(r"trainctl top --url (\S+)")
_CHANGE = (
    "npx cdk deploy TrainingClusterStack -c family=p4d -c nodes=4 -c metrics=prometheus "
    "--require-approval never"
)
_TRAINING, _OTHER = "runs/gpt2/example-data", "runs/gpt2/example-data-lower-rate"


@dataclass(frozen=True, kw_only=True)
class Terminal:
    """A picture of a command's output; the command runs in a folder with example runs."""

    name: str
    command: str
    needs_account: bool = False


@dataclass(frozen=True, kw_only=True)
class Page:
    """A picture of a command's page.html, in a window with a size in pixels."""

    name: str
    command: str
    width: int
    height: int
    dark: bool = False


TERMINALS = (
    Terminal(name="trainctl", command="trainctl --help"),
    Terminal(name="report-terminal", command=f"trainctl report {_TRAINING}"),
    Terminal(name="preflight", command="trainctl preflight -c family=p4d", needs_account=True),
    Terminal(name="status", command="trainctl status", needs_account=True),
)
_TWO = f"trainctl report {_TRAINING} {_OTHER} --html page.html --force"
PAGES = (
    Page(name="report-desktop-light", command=_TWO, width=1280, height=1560),
    Page(name="report-desktop-dark", command=_TWO, width=1280, height=1560, dark=True),
    Page(
        name="report-phone",
        command=f"trainctl report {_TRAINING} --html page.html --force",
        width=390,
        height=1560,
    ),
)


def run(command: str, folder: Path) -> str:
    """Run a command and return its output, with its colours. Raises CalledProcessError."""
    environment = os.environ | {"COLUMNS": str(_COLUMNS), "FORCE_COLOR": "1", "TTY_INTERACTIVE": "0"}
    # trainctl is in the folder of this Python.
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    done = subprocess.run(
        shlex.split(command), cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


@contextmanager
def rehearsed(folder: Path) -> Iterator[str]:
    """Leave a rehearsal running and yield its output; commands use its account. Raises CalledProcessError."""
    before = dict(os.environ)
    try:
        printed = run(_REHEARSE, folder)
        variables = run(f"bash -c 'source {ROOT}/.rehearsal/env.sh && env -0'", folder)
        for name, _, value in (line.partition("=") for line in variables.split("\0") if "=" in line):
            os.environ[name] = value
        yield printed
    finally:
        os.environ.clear()
        os.environ.update(before)
        run("trainctl rehearse --stop", folder)


def watch_deploy(folder: Path) -> str:
    """Return the output of `trainctl status --watch` during a deploy.

    Raises:
        CalledProcessError: the deploy or the command fails.
        KeyError: no rehearsal's variables are set, and the deploy would go to a real account.
    """
    address = os.environ["AWS_ENDPOINT_URL"]
    print(f"deploying to the rehearsal at {address}", file=sys.stderr)
    deploy = subprocess.Popen(
        shlex.split(_CHANGE), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    shown = ""
    while deploy.poll() is None:
        now = run("trainctl status", folder)
        if " ... " in now:  # a stage in progress
            shown = now
    _, said = deploy.communicate()
    if deploy.returncode or not shown:
        raise subprocess.CalledProcessError(deploy.returncode or 1, _CHANGE, stderr=said)
    return shown


def draw_terminal(printed: str, title: str) -> bytes:
    """Draw printed text as an SVG that loads no fonts."""
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(printed))
    return _FONTS.sub("", console.export_svg(title=title, unique_id="terminal")).encode()


def reduce_colours(png: bytes) -> bytes:
    """Reduce the colours of a PNG, which makes it smaller."""
    content = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(_COLOURS).save(content, format="PNG", optimize=True)
    return content.getvalue()


def photograph(page: Page, folder: Path, window: Browser) -> bytes:
    """Take a PNG of the top of a page."""
    run(page.command, folder)
    window.open(folder / "page.html", width=page.width, dark=page.dark)
    return reduce_colours(window.picture(height=page.height))


def make_pictures(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the file name and content of each picture; print the omitted ones and the reason."""
    with rehearsed(folder) as printed:
        yield "rehearse.svg", draw_terminal(printed.replace(str(ROOT), "~/training-cluster"), _REHEARSE)
        for terminal in TERMINALS:
            if terminal.needs_account:
                yield f"{terminal.name}.svg", draw_terminal(run(terminal.command, folder), terminal.command)
        (url,) = _PROMETHEUS.findall(printed)
        for name, boards in BOARDS.items():
            yield f"{name}.png", reduce_colours(draw(url, boards))
        yield "status-watch.svg", draw_terminal(watch_deploy(folder), "trainctl status --watch")
    for terminal in TERMINALS:
        if terminal.needs_account:
            continue
        yield f"{terminal.name}.svg", draw_terminal(run(terminal.command, folder), terminal.command)
    program = find_browser()
    if program is None:
        names = ", ".join(page.name for page in PAGES)
        print(f"{names}: left out: no Chromium on PATH (apt-get install chromium).", file=sys.stderr)
        return
    with browser(program) as window:
        for page in PAGES:
            yield f"{page.name}.png", photograph(page, folder, window)


def main() -> int:
    """Write the pictures; return 1 if one is too large for a README."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    too_large = False
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_examples(folder)
        for name, content in make_pictures(folder):
            (PICTURES / name).write_bytes(content)
            remark = ""
            if len(content) > _MOST_BYTES:
                too_large, remark = True, f", more than {_MOST_BYTES // 1000} kB"
            print(f"{(PICTURES / name).relative_to(ROOT)}: {len(content) // 1000} kB{remark}")
    return 1 if too_large else 0


if __name__ == "__main__":
    sys.exit(main())
