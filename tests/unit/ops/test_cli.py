"""The command `trainctl`: help, version, completion and exit codes. No AWS is asked."""

import re
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError, NoRegionError
from typer.testing import CliRunner

from ops.cli import app
from ops.usage import OpsError
from tests.unit.ops.jobs_head_node import Call
from training_cluster.problems import ConfigurationError

COMMANDS = tuple(
    each.name or each.callback.__name__.replace("_", "-") for each in app.registered_commands if each.callback
)


def test_every_subcommand_has_help_with_an_example() -> None:
    every = CliRunner().invoke(app, ["--help"]).stdout
    for command in COMMANDS:
        text = CliRunner().invoke(app, [command, "--help"]).stdout
        assert command in every
        assert f"Example: trainctl {command}" in text
        assert CliRunner().invoke(app, [command, "-h"]).stdout == text
        assert not re.search(r"<(bool|str|path|list|int)", text), command
        assert "--json" in text, command
    version = r"trainctl \d+\.\d+\.\d+, for ParallelCluster 3\.\d+\.\d+\n"
    assert re.fullmatch(version, CliRunner().invoke(app, ["--version"]).stdout)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, ""),
        (ConfigurationError("wrong"), 2, "wrong"),
        (OpsError("failed"), 1, "failed"),
        (EndpointConnectionError(endpoint_url="x"), 1, "x"),
        (NoRegionError(), 1, "destroy: no AWS region is given\n"),
    ],
)
def test_errors_have_their_exit_codes(
    error: BaseException, code: int, message: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("ops.teardown.plan.read_plan", fail)
    monkeypatch.setattr("ops.account.session.account_clients", lambda: None)
    ended, output, errors = call("destroy", "--plan", "--json")
    assert (ended, output) == (code, "")
    assert message in errors


def test_a_file_system_that_refuses_is_one_message(call: Call) -> None:
    code, _, said = call("users", "add", "bob", "--uid", "5002", "--file", "/proc/users.yaml")
    assert (code, said) == (1, "users: /proc/.users.yaml.new: No such file or directory\n")
