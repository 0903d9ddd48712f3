"""The command `trainctl`: help, exit codes, messages, JSON. No AWS is asked."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from typer.testing import CliRunner

from ops.__main__ import main
from ops.cli import app
from ops.usage import OpsError
from training_cluster.paths import ROOT
from training_cluster.problems import ConfigurationError

_TEXTS = {".json", ".log", ".md", ".py", ".sh", ".slurm", ".svg", ".txt", ".yaml"}
COMMANDS = tuple(
    each.name or each.callback.__name__.replace("_", "-") for each in app.registered_commands if each.callback
)


def trainctl(*arguments: str, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The installed command, with no credentials."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home or "/"), "AWS_EC2_METADATA_DISABLED": "true"}
    return subprocess.run(
        [Path(sys.executable).with_name("trainctl"), *arguments],
        cwd=ROOT,
        env=environment | {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"},
        capture_output=True,
        text=True,
        check=False,
    )


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The command in this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["trainctl", *arguments])
    try:
        return main()
    except SystemExit as end:
        return int(end.code or 0)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_subcommand_has_help_with_an_example(command: str) -> None:
    assert command in CliRunner().invoke(app, ["--help"]).stdout
    assert f"Example: trainctl {command}" in CliRunner().invoke(app, [command, "--help"]).stdout


def test_the_version_names_parallelclusters_too() -> None:
    assert re.fullmatch(
        r"trainctl \d+\.\d+\.\d+, for ParallelCluster 3\.\d+\.\d+\n", trainctl("--version").stdout
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_h_is_help_and_flags_show_no_type(command: str) -> None:
    said = CliRunner().invoke(app, [command, "-h"]).stdout
    assert said == CliRunner().invoke(app, [command, "--help"]).stdout
    assert not re.search(r"<(bool|str|path|list|int)", said)
    assert "--json" in said


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_shown_for_each_shell(shell: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ops"],
        cwd=ROOT,
        env={**os.environ, "_TRAINCTL_COMPLETE": f"source_{shell}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "trainctl" in done.stdout


@pytest.mark.parametrize("number", ["inf", "nan", "9e400"])
@pytest.mark.parametrize("option", ["--tokens-per-s", "--dataset-tokens"])
def test_a_number_has_to_be_finite(option: str, number: str) -> None:
    done = CliRunner().invoke(app, ["price", "-c", "family=p5", option, number, "--offline"])
    assert done.exit_code == 2
    assert "Invalid value" in done.stderr
    assert done.stdout == ""


def test_no_message_or_page_names_a_make_target_for_a_subcommand() -> None:
    alias = re.compile(r"\bmake (?:status|preflight|teardown-plan|image-plan)\b")
    folders = (
        "assets",
        "bench",
        "cluster_configs",
        "constructs",
        "docs",
        "ops",
        "rehearsal",
        "stacks",
        "tests",
        "tools",
    )
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in _TEXTS]
    files += [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile", "app.py")]
    assert [str(path) for path in files if alias.search(path.read_text())] == []
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert not {*COMMANDS, "teardown-plan"} & {*targets} - {"rehearse"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("stats",), "Did you mean 'status'?"),
        (("status", "--clutser", "a"), "No such option"),
        (("status", "--watch", "--json"), "give one of them"),
        (("destroy",), "trainctl destroy --plan"),
        (("lint",), "Missing argument"),
        (("lint", "none.sh"), "There is no file none.sh."),
        (("new-workload", "Big Model"), '"Big Model" cannot name a workload'),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_is_wrong(arguments: tuple[str, ...], said: str) -> None:
    done = trainctl(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", ["status", "destroy --plan", "preflight"])
def test_without_a_region_there_is_one_message_and_no_traceback(command: str, tmp_path: Path) -> None:
    done = trainctl(*command.split(), "--json", home=tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"{command.split(maxsplit=1)[0]}: no AWS region is given\n")
    assert "Traceback" not in done.stderr


def test_a_wrong_flag_is_one_message_with_what_is_allowed() -> None:
    done = trainctl("preflight", "-c", "family=p55")
    assert done.returncode == 2
    assert "allowed:" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), 130),
        (ConfigurationError("wrong"), 2),
        (OpsError("failed"), 1),
        (EndpointConnectionError(endpoint_url="x"), 1),
    ],
)
def test_an_interrupt_and_errors_have_their_exit_codes(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("ops.teardown.plan.read_plan", fail)
    monkeypatch.setattr("ops.account.session.account_clients", lambda: None)
    assert call(monkeypatch, "destroy", "--plan") == code
    assert "Traceback" not in capsys.readouterr().err
