"""The subcommand `trainctl lint`."""

from pathlib import Path
from typing import Annotated

import typer

from ops.options import Json, print_json


def lint(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Shell scripts, such as those for sbatch.")
    ],
    as_json: Json = False,
) -> None:
    """Find obsolete and harmful settings in job scripts.

    The exit code is 1 if there are findings. To suppress a finding, add the comment `# trainctl: allow RULE
    reason` to the line or to the line above.
    """
    from ops.lint.command import lint_files

    findings = lint_files(files)
    if as_json:
        print_json({"findings": findings})
    else:
        for found in findings:
            typer.echo(found.text())
        if findings:
            typer.echo(f"{len(findings)} finding(s)", err=True)
    raise typer.Exit(1 if findings else 0)
