"""`python -m tools.terminal_picture PICTURE.svg COMMAND ...`: draw the output of a command as an SVG.

The picture loads no fonts and no other file. Paths of this checkout are shown as ~/training-cluster.
"""

import io
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from training_cluster.paths import ROOT

_COLUMNS = 116
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def draw_terminal(output: str, title: str) -> str:
    """Draw output with its ANSI colours as an SVG."""
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(output.replace(str(ROOT), "~/training-cluster")))
    return _FONTS.sub("", console.export_svg(title=title, unique_id="terminal"))


def main(arguments: Sequence[str]) -> int:
    """Run the command and write the picture; return the command's exit status if it fails."""
    if len(arguments) < 2 or not arguments[0].endswith(".svg"):  # noqa: PLR2004
        print(
            f"{__doc__}\n  type: python -m tools.terminal_picture help.svg trainctl --help", file=sys.stderr
        )
        return 2
    picture, *command = arguments
    environment = os.environ | {"COLUMNS": str(_COLUMNS), "FORCE_COLOR": "1", "TTY_INTERACTIVE": "0"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if not done.returncode:
        Path(picture).write_text(draw_terminal(done.stdout, " ".join(command)), encoding="utf-8")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
