"""Prints the findings for people."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ops.options import print_table
from ops.preflight.finding import Finding

_STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}


def problem_count(findings: Sequence[Finding]) -> int:
    """Count the findings with which the deploy or the cluster would fail."""
    return sum(each.verdict == "problem" for each in findings)


def report(findings: Sequence[Finding], console: Console) -> int:
    """Print a table, and below it the commands to type; return 1 if there is a problem."""
    table = Table("check", "found", "", box=box.SIMPLE_HEAD, pad_edge=False)
    for each in findings:
        table.add_row(Text(each.check), Text(each.found), Text(each.verdict, style=_STYLES[each.verdict]))
    print_table(table, console)
    for each in findings:
        if each.mend:
            console.print(Text(f"{each.verdict}: {each.check}: {each.found}"))
            for number, line in enumerate(each.mend.splitlines()):
                console.print(Text(f"  {'        ' if number else 'type:   '}{line}"))
    if problems := problem_count(findings):
        console.print(Text(f"{problems} problem(s): the deploy would fail, or the cluster would not work."))
    return 1 if problems else 0
