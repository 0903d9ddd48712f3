"""The real CDK CLI of node_modules, run against the local AWS."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from rehearsal.narrator import Narrator
from rehearsal.problems import RehearsalError

# One line of `--progress events`: stack | done/all | time | status | type | name
_EVENT = re.compile(
    r"^(?P<stack>[\w-]+) \|\s*(?P<count>[\d/]+) \|.*?\| (?P<status>[A-Z_]+) +\| (?P<type>[\w:]+) "
)
_STACK_TYPE = "AWS::CloudFormation::Stack"
_TAIL_LINES = 30
TIMEOUT_S = 900
"""Seconds until a command counts as hung, which is a fault of the local AWS (server.log)."""
_GRACE_S = 5.0
_POLL_INTERVAL = Path(__file__).with_name("cdk_poll_interval.cjs")


class CdkCli:
    """The CDK CLI, with an environment that reaches only the local AWS.

    Args:
        logs: folder of the log files, one per command.
    """

    def __init__(
        self, *, project: Path, environment: Mapping[str, str], logs: Path, narrator: Narrator
    ) -> None:
        self._project, self._logs, self._narrator = project, logs, narrator
        cli = project / "node_modules" / ".bin"
        self._environment = {
            **environment,
            "PATH": f"{cli}{os.pathsep}{environment['PATH']}",
            "NODE_OPTIONS": f'{environment.get("NODE_OPTIONS", "")} --require="{_POLL_INTERVAL}"'.strip(),
        }

    def run(self, *arguments: str, output: Path | None = None) -> None:
        """Run one command; print a line for each failed resource and each finished stack.

        Args:
            output: folder of the cloud assembly (cdk.out); None if `--app` names an existing one.

        Raises:
            RehearsalError: the command failed; with the end of its log.
        """
        log = self._logs / f"cdk-{arguments[0]}.log"
        self._narrator.say(f"$ npx cdk {' '.join(arguments)}")
        options = ["--output", str(output)] if output else []
        if arguments[0] == "bootstrap":  # without it the app would be synthesised needlessly
            options = ["--app", ""]
        process = subprocess.Popen(
            ["cdk", *arguments, *options, "--progress", "events", "--no-color", "--no-notices"],
            cwd=self._project,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        in_time = self._follow(process, log)
        if not in_time:
            raise RehearsalError(f"`cdk {arguments[0]}` did not end in {TIMEOUT_S} s: {log}")
        if process.wait():
            raise RehearsalError(f"`cdk {arguments[0]}` failed. The end of {log}:\n{_tail(log)}")

    def _follow(self, process: subprocess.Popen[str], log: Path) -> bool:
        """Copy the output to the log until the command ends; return False if it had to be killed."""
        watchdog = threading.Timer(TIMEOUT_S, _end, [process])
        watchdog.start()
        try:
            assert process.stdout is not None
            with log.open("w") as file:
                for line in process.stdout:
                    file.write(line)
                    self._tell(line)
            return watchdog.is_alive()
        except BaseException:
            _end(process)
            raise
        finally:
            watchdog.cancel()

    def _tell(self, line: str) -> None:
        event = _EVENT.match(line)
        if event is None:
            return
        ended = event["type"] == _STACK_TYPE and event["status"].endswith(("_COMPLETE", "_FAILED"))
        if ended or event["status"].endswith("_FAILED"):
            self._narrator.say(f"{event['stack']}: {event['status']} ({event['count']} resources)")


def _end(process: subprocess.Popen[str]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(_GRACE_S)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def _tail(log: Path) -> str:
    lines: Sequence[str] = log.read_text(errors="replace").splitlines()
    return "\n".join(lines[-_TAIL_LINES:])
