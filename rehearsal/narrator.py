"""Output for a person who watches a rehearsal: steps with headings, times and live lines."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape


class Narrator:
    """Printer of steps to the terminal; it prints plain lines to a file."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False, soft_wrap=True)
        self.seconds: dict[str, float] = {}
        """Seconds of each step, by its title."""

    @contextmanager
    def step(self, title: str, explanation: str) -> Iterator[None]:
        """Print the heading of a step, time it, and print how it ended."""
        number = len(self.seconds) + 1
        self.console.print(f"\n[bold cyan]{number}. {escape(title)}[/]")
        self.console.print(f"   [dim]{escape(explanation)}[/]")
        started = time.monotonic()
        try:
            yield
        except BaseException:
            self.console.print(f"   [red]failed after {time.monotonic() - started:.0f} s[/]")
            raise
        self.seconds[title] = time.monotonic() - started
        self.console.print(f"   [green]done[/] in {self.seconds[title]:.0f} s")

    def say(self, text: str) -> None:
        """Print one line within a step."""
        self.console.print(f"   {escape(text)}")

    def sum_up(self) -> None:
        """Print how long each step took."""
        steps = ", ".join(f"{title.lower()} {seconds:.0f} s" for title, seconds in self.seconds.items())
        total = sum(self.seconds.values())
        self.console.print(f"\n[bold green]Rehearsed in {total:.0f} s[/]: {steps}")
