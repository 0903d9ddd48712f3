"""The real CDK CLI of node_modules, run against the local AWS."""

import os
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from rehearsal.narrator import Narrator
from rehearsal.problems import RehearsalError, tail
from rehearsal.processes import end_group

# One line of `--progress events`: stack | done/all | time | status | type | name
_EVENT = re.compile(
    r"^(?P<stack>[\w-]+) \|\s*(?P<count>[\d/]+) \|.*?\| (?P<status>[A-Z_]+) +\| (?P<type>[\w:]+) "
)
_STACK_TYPE = "AWS::CloudFormation::Stack"
_TAIL_LINES = 30
TIMEOUT_S = 900
"""Seconds until a command counts as hung, which is a fault of the local AWS."""
_GRACE_S = 5.0
_POLL_INTERVAL = Path(__file__).with_name("cdk_poll_interval.cjs")


class CdkCli:
    """The CDK CLI, with an environment that reaches only the local AWS.

    Args:
        logs: folder of the log files, one per command.
        server_log: log of the local AWS, whose end the error of a hung command shows; None for commands
            that do not reach it.
    """

    def __init__(
        self,
        *,
        project: Path,
        environment: Mapping[str, str],
        logs: Path,
        narrator: Narrator,
        server_log: Path | None = None,
    ) -> None:
        self._project, self._logs, self._narrator, self._server_log = project, logs, narrator, server_log
        cli = project / "node_modules" / ".bin"
        # FORCE_COLOR takes precedence over --no-color, and _EVENT matches plain lines.
        self._environment = {
            **{name: value for name, value in environment.items() if name != "FORCE_COLOR"},
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
        log = self._log(arguments[0])
        options = ["--output", str(output)] if output else []
        if arguments[0] == "bootstrap":  # without it the app would be synthesised needlessly
            options = ["--app", ""]
        process = self._start(arguments, [*options, "--progress", "events"], stdout=subprocess.PIPE)
        if not self._follow(process, log):
            raise self._hung(arguments[0])
        self._check(process, arguments[0])

    @contextmanager
    def synthesis(self, *flags: str, output: Path) -> Iterator[None]:
        """Run `cdk synth` during a `with` block, and wait until it finishes after the block.

        Args:
            flags: context flags, as they are typed.
            output: folder of the cloud assembly, for `--app` of later commands.

        Raises:
            RehearsalError: the synth failed; with the end of its log.
        """
        with self._log("synth").open("w") as log:
            process = self._start(("synth", *flags), ["--quiet", "--output", str(output)], stdout=log)
        try:
            yield
            process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise self._hung("synth") from None
        finally:
            _end(process)
        self._check(process, "synth")

    def _log(self, command: str) -> Path:
        return self._logs / f"cdk-{command}.log"

    def _start(
        self, arguments: Sequence[str], options: Sequence[str], *, stdout: int | IO[str]
    ) -> subprocess.Popen[str]:
        self._narrator.say(f"$ npx cdk {' '.join(arguments)}")
        return subprocess.Popen(
            ["cdk", *arguments, *options, "--no-color", "--no-notices"],
            cwd=self._project,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def _check(self, process: subprocess.Popen[str], command: str) -> None:
        if process.wait():
            raise self._error(command, "failed")

    def _hung(self, command: str) -> RehearsalError:
        return self._error(command, f"did not finish in {TIMEOUT_S} s", self._server_log)

    def _error(self, command: str, problem: str, *logs: Path | None) -> RehearsalError:
        shown = [log for log in (self._log(command), *logs) if log]
        ends = "\n".join(f"The end of {log}:\n{tail(log, lines=_TAIL_LINES)}" for log in shown)
        return RehearsalError(f"`cdk {command}` {problem}. {ends}")

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
    """End a running command and all processes that it started."""
    if process.poll() is None:
        end_group(process, grace_s=_GRACE_S)
