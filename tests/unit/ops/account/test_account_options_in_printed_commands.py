"""Commands that trainctl prints are for its own account and region."""

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import boto3
import pytest

from ops.account import region_and_profile
from ops.preflight.finding import Finding
from tests.printed_aws_commands import printed_aws_commands
from tests.unit.ops.jobs_head_node import Call, PlayedCluster
from tests.unit.ops.own_account import OwnAccount
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.paths import ROOT

Said = Callable[..., str]
LOGS = sorted(str(path) for path in (ROOT / "tests/unit/ops/diagnose/logs").iterdir())
BARE = re.compile(
    r"(?<![\w./'-])(?:aws [a-z0-9][a-z0-9-]* [a-z]|(?<!AWS_REGION=eu-west-1 )npx cdk|npx cdk [a-z]|"
    r"trainctl (?!deletes nothing)[a-z]|pcluster [a-z]+-[a-z-]+ (?!--region eu-west-1)).*"
)


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> Said:
    """Call trainctl in this process, for prod in eu-west-1; gives all that it printed."""
    config = tmp_path / "config"
    config.write_text("[profile prod]\naws_access_key_id = AKIA\naws_secret_access_key = secret\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", *region_and_profile._OTHER_CREDENTIALS):
        monkeypatch.setenv(name, "before")
    monkeypatch.setattr(region_and_profile, "_chosen", region_and_profile._Chosen())
    # Another test's session has read the profiles before this file was named.
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)

    return lambda *words: "".join(call("--region", "eu-west-1", "--profile", "prod", *words)[1:])


def check(said: str, *, has: str) -> None:
    assert has in said
    assert BARE.findall(said) == []


@pytest.mark.parametrize("how", [(), ("--json",)])
def test_the_plan_of_a_teardown(
    how: tuple[str, ...], everything: OwnAccount, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.account.session.account_clients", lambda: everything.client)
    shown = said("destroy", "--plan", *how)
    steps = shown[shown.index('"steps"') :] if how else shown
    check(steps, has="aws --profile prod --region eu-west-1 fsx delete-file-system")
    assert "AWS_PROFILE=prod AWS_REGION=eu-west-1 .venv/bin/python -c 'import boto3" in steps


@pytest.mark.parametrize("how", [(), ("--json",)])
def test_the_mends_of_preflight(how: tuple[str, ...], said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    mend = "aws fsx describe-file-systems, then npx cdk deploy StorageStack, then trainctl status"
    findings = [Finding(check="a", found="b", verdict="problem", mend=mend)]
    monkeypatch.setattr("ops.preflight.checks.run_checks", lambda *_, **__: findings)
    monkeypatch.setattr("ops.account.session.account_clients", lambda: None)
    check(
        said("preflight", *how),
        has="aws --profile prod --region eu-west-1 fsx describe-file-systems, then "
        "AWS_REGION=eu-west-1 npx cdk --profile prod deploy StorageStack, then "
        "trainctl --region eu-west-1 --profile prod status",
    )


@pytest.mark.slow
def test_the_mends_of_a_diagnosis(said: Said) -> None:
    shown = "".join(said("diagnose", log) for log in LOGS)
    mends = "\n".join(re.findall(r"^(?:   fix:    |           )(.*)$", shown, re.MULTILINE))
    check(mends, has="pcluster update-compute-fleet --region eu-west-1 --cluster-name")


def test_errors_and_sessions(said: Said, cluster: PlayedCluster) -> None:
    cluster.account.answers["DescribeInstances"] = {
        "Reservations": [{"Instances": [{"State": {"Name": "a"}}]}]
    }
    check(said("connect", "--ssh"), has="trainctl --region eu-west-1 --profile prod status --cluster")
    check(said("destroy"), has="AWS_REGION=eu-west-1 npx cdk --profile prod destroy TrainingClusterStack")
    tags = [{"Key": "parallelcluster:attributes", "Value": f"ubuntu2204, slurm, {PCLUSTER_VERSION}, x86_64"}]
    instance = {"State": {"Name": "running"}, "Tags": tags}
    cluster.account.answers["DescribeInstances"] = {"Reservations": [{"Instances": [instance]}]}
    check(said("connect", "--print"), has="aws --profile prod ssm start-session --region us-east-1")


@pytest.mark.slow
def test_a_shell_leaves_every_aws_command_unchanged() -> None:
    """As in backticks within double quotes, which a shell runs."""
    changed = {}
    for command in printed_aws_commands():
        script = f"set -f -- {command}\nprintf '%s\\0' \"$@\""
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
        if done.stderr or done.stdout.split("\0")[:-1] != shlex.split(command):
            changed[command] = done.stderr or done.stdout
    assert changed == {}


def test_every_deploy_is_written_by_one_module() -> None:
    """All but the first start from the flags of the last deploy."""
    files = [*(ROOT / "ops").rglob("*.py"), *(ROOT / "ops").rglob("*.yaml")]
    cdks = re.compile(r'cdk deploy [A-Z{]|"cdk", "deploy"')
    assert [each.name for each in files if cdks.search(each.read_text())] == ["deploy_command.py"]
