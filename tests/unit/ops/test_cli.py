"""The command `trainctl`: help, exit codes, messages, JSON. No AWS is asked."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from ops.__main__ import main
from ops.cli import app
from ops.preflight.finding import Finding
from ops.status.deploy import Progress, Stage, Status
from tests.unit.ops.teardown.teardown_account import everything
from training_cluster.paths import ROOT
from training_cluster.problems import ConfigurationError

_TEXTS = {".json", ".log", ".md", ".py", ".sh", ".slurm", ".svg", ".txt", ".yaml"}
COMMANDS = tuple(
    each.callback.__name__.replace("_", "-") for each in app.registered_commands if each.callback
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


@pytest.mark.slow
def test_every_subcommand_has_help_with_an_example() -> None:
    whole = trainctl("--help")
    assert whole.returncode == 0
    for command in COMMANDS:
        assert command in whole.stdout
        assert f"Example: trainctl {command}" in trainctl(command, "--help").stdout


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
    assert done.returncode == 1
    assert "allowed:" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), 130),
        (ConfigurationError("wrong"), 1),
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


def test_the_plan_as_json_has_what_a_person_reads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ops.account.session.account_clients", lambda: everything().client)
    assert call(monkeypatch, "destroy", "--plan", "--json") == 0
    plan = json.loads(capsys.readouterr().out)
    assert call(monkeypatch, "destroy", "--plan") == 0
    shown = capsys.readouterr().out
    assert plan["stacks"]["TrainingCluster-Storage"]["status"] in shown
    assert plan["steps"]
    for step in plan["steps"]:
        assert step["title"] in shown
        assert all(command in shown for command in step["commands"])
    assert all(cost["what"] in shown for cost in plan["costs"])


def _status(stack: str) -> Status:
    return Status(cluster_name="training", stacks=(("TrainingCluster-Network", stack),), progress=None)


def test_status_as_json_has_stacks_and_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    began = datetime.datetime(2026, 11, 21, 12, tzinfo=datetime.UTC)
    progress = Progress(request="Create", stages=(Stage(name="network", began=began),), messages=("a",))
    found = dataclasses.replace(_status("CREATE_COMPLETE"), progress=progress)
    monkeypatch.setattr("ops.status.deploy.read_status", lambda *_, **__: found)
    monkeypatch.setattr("ops.account.session.account_clients", lambda: lambda _: None)
    assert call(monkeypatch, "status", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "cluster_name": "training",
        "cluster": None,
        "stacks": [["TrainingCluster-Network", "CREATE_COMPLETE"]],
        "progress": {
            "request": "Create",
            "stages": [{"name": "network", "began": "2026-11-21T12:00:00Z"}],
            "messages": ["a"],
        },
    }


def test_a_watch_goes_on_while_a_stack_moves_and_outlives_a_lost_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = EndpointConnectionError(endpoint_url="x")
    moving, still = _status("CREATE_IN_PROGRESS"), _status("CREATE_COMPLETE")
    answers: list[Status | Exception] = [moving, still, lost, moving, still, still, still, still]
    looks = iter(answers)

    def look(*_: Any, **__: Any) -> Status:
        if isinstance(found := next(looks), Exception):
            raise found
        return found

    monkeypatch.setattr("ops.status.deploy.read_status", look)
    monkeypatch.setattr("ops.account.session.account_clients", lambda: lambda _: None)
    monkeypatch.setattr("ops.commands.status._POLL_S", 0)
    assert call(monkeypatch, "status", "--watch") == 0
    assert next(looks, None) is None
    assert "CREATE_COMPLETE" in capsys.readouterr().out


@pytest.mark.parametrize(("verdict", "code"), [("ok", 0), ("warning", 0), ("problem", 1)])
@pytest.mark.parametrize("as_json", [True, False])
def test_preflight_ends_with_1_where_there_is_a_problem(
    verdict: Any,
    code: int,
    as_json: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    findings = [Finding(check="network", found="a VPC", verdict=verdict)]
    monkeypatch.setattr("ops.preflight.checks.run_checks", lambda *_, **__: findings)
    monkeypatch.setattr("ops.account.session.account_clients", lambda: None)
    assert call(monkeypatch, "preflight", *(["--json"] if as_json else [])) == code
    shown = capsys.readouterr().out
    if as_json:
        row = {"check": "network", "found": "a VPC", "verdict": verdict, "mend": ""}
        assert json.loads(shown) == {"findings": [row], "problems": code}
    else:
        assert "a VPC" in shown


def test_lint_ends_with_1_for_findings_and_0_without(tmp_path: Path) -> None:
    (tmp_path / "bad.sh").write_text("export FI_PROVIDER=efa\n")
    (tmp_path / "good.sh").write_text("true\n")
    assert trainctl("lint", str(tmp_path / "good.sh")).returncode == 0
    shown = trainctl("lint", str(tmp_path / "good.sh"), str(tmp_path / "bad.sh"))
    assert (shown.returncode, shown.stderr) == (1, "1 finding(s)\n")
    assert shown.stdout.startswith(f"{tmp_path}/bad.sh:1: fi-provider: ")
    told = trainctl("lint", "--json", str(tmp_path / "bad.sh"))
    (finding,) = json.loads(told.stdout)["findings"]
    assert (told.returncode, finding["line"], finding["rule"]) == (1, 1, "fi-provider")
