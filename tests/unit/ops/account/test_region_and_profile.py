"""--region, --profile and credentials: trainctl as a process, against an account on this machine."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ops.account import region_and_profile
from ops.account.region_and_profile import choose_account, with_account
from tests.unit.ops.account.account_server import AccountServer, account_server
from training_cluster.paths import ROOT

ENVIRONMENT_KEYS = {"AWS_ACCESS_KEY_ID": "AKIAENVIRONMENT", "AWS_SECRET_ACCESS_KEY": "secret"}
PROFILES = """
[profile prod]
region = eu-central-1
aws_access_key_id = AKIAPROD
aws_secret_access_key = secret

[profile role]
region = eu-central-1
role_arn = arn:aws:iam::123456789012:role/admin
source_profile = prod
mfa_serial = arn:aws:iam::123456789012:mfa/a

[profile login]
region = eu-central-1
login_session = arn:aws:iam::123456789012:user/a
"""


@pytest.fixture
def account() -> Iterator[AccountServer]:
    with account_server() as account:
        yield account


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text(PROFILES)
    return tmp_path


def trainctl(
    account: AccountServer, home: Path, *arguments: str, typed: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    own = {"PATH": os.environ["PATH"], "HOME": str(home), "AWS_EC2_METADATA_DISABLED": "true"}
    own |= {"AWS_ENDPOINT_URL": account.url, "NO_PROXY": "127.0.0.1", "COLUMNS": "200"}
    return subprocess.run(
        [Path(sys.executable).with_name("trainctl"), *arguments],
        cwd=ROOT,
        env=own | environment,
        input=typed,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,  # without a terminal to ask for a code
    )


@pytest.mark.slow
def test_a_named_profile_precedes_keys_in_the_environment(account: AccountServer, home: Path) -> None:
    trainctl(account, home, "--profile", "prod", "status", **ENVIRONMENT_KEYS, AWS_SESSION_TOKEN="token")
    assert {(asked.key, asked.region) for asked in account.asked} == {("AKIAPROD", "eu-central-1")}


@pytest.mark.slow
def test_a_named_profile_precedes_the_default_profile(account: AccountServer, home: Path) -> None:
    trainctl(account, home, "--profile", "prod", "status", AWS_DEFAULT_PROFILE="nobody")
    assert {(asked.key, asked.region) for asked in account.asked} == {("AKIAPROD", "eu-central-1")}


@pytest.mark.slow
def test_without_a_profile_environment_keys_are_used(account: AccountServer, home: Path) -> None:
    trainctl(account, home, "--region", "eu-west-1", "status", **ENVIRONMENT_KEYS)
    assert {(asked.key, asked.region) for asked in account.asked} == {("AKIAENVIRONMENT", "eu-west-1")}


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("--profile", "prod", "status"),
        ("status", "--profile", "prod"),
        ("--profile=prod", "status"),
        ("--as", "alice", "--profile", "prod", "status"),
        ("status", "--profile", "prod", "--as", "alice"),
    ],
)
def test_an_error_is_headed_by_the_subcommand(
    arguments: tuple[str, ...], account: AccountServer, home: Path
) -> None:
    done = trainctl(account, home, *arguments)
    assert done.returncode == 1
    assert done.stderr.startswith("status: these credentials may not do that: ")


@pytest.mark.slow
def test_a_page_of_a_proxy_is_one_message(account: AccountServer, home: Path) -> None:
    account.page = "<!DOCTYPE html><html><body>Sign in<br></body></html>"
    done = trainctl(account, home, "--profile", "prod", "status")
    assert done.returncode == 1
    what, type_ = done.stderr.splitlines()
    assert what.startswith("status: the answer is not AWS's, but perhaps a page of a proxy: ")
    assert "NO_PROXY" in type_


@pytest.mark.slow
def test_a_disabled_region_gets_the_enabling_command(account: AccountServer, home: Path) -> None:
    account.regions_off = frozenset({"ap-east-1"})
    done = trainctl(account, home, "--region", "ap-east-1", "preflight", **ENVIRONMENT_KEYS)
    assert done.returncode == 1
    assert "the region ap-east-1 is not enabled in this account (InvalidClientTokenId)" in done.stderr
    assert "aws account enable-region --region us-east-1 --region-name ap-east-1\n" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("region", ["ap-east-1", "us-east-1", "cn-north-1"])
def test_invalid_keys_are_not_blamed_on_the_region(region: str, account: AccountServer, home: Path) -> None:
    account.regions_off = frozenset({region, "us-east-1"})
    done = trainctl(account, home, "--region", region, "preflight", **ENVIRONMENT_KEYS)
    assert "AWS does not accept these credentials (InvalidClientTokenId)" in done.stderr
    assert "enable-region" not in done.stderr


@pytest.mark.slow
def test_an_mfa_code_is_asked_for_once(account: AccountServer, home: Path) -> None:
    first = trainctl(account, home, "--profile", "role", "status", typed="123456\n")
    second = trainctl(account, home, "--profile", "role", "status")
    assert [first.returncode, second.returncode] == [1, 1]  # nothing but STS is answered
    assert [asked.key for asked in account.asked if asked.operation != "AssumeRole"] == ["ASIAROLE"] * 2
    assert sum(asked.operation == "AssumeRole" for asked in account.asked) == 1


@pytest.mark.slow
def test_a_profile_of_aws_login_signs_in(account: AccountServer, home: Path) -> None:
    keys = {"accessKeyId": "ASIALOGIN", "secretAccessKey": "secret", "sessionToken": "token"}
    token: dict[str, Any] = {
        "accessToken": {**keys, "accountId": "123456789012", "expiresAt": "2099-01-01T00:00:00Z"}
    }
    token |= {"clientId": "a", "refreshToken": "a", "dpopKey": "a"}
    name = hashlib.sha256(b"arn:aws:iam::123456789012:user/a").hexdigest()
    cache = home / ".aws" / "login" / "cache"
    cache.mkdir(parents=True)
    (cache / f"{name}.json").write_text(json.dumps(token))
    done = trainctl(account, home, "--profile", "login", "status")
    assert {asked.key for asked in account.asked} == {"ASIALOGIN"}, done.stderr


def test_an_expired_login_says_what_to_type(account: AccountServer, home: Path) -> None:
    done = trainctl(account, home, "--profile", "login", "status")
    assert done.stderr.endswith("type:   aws --profile login login\n")


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID"):
        monkeypatch.setenv(name, "before")
    monkeypatch.setattr(region_and_profile, "_chosen", region_and_profile._Chosen())


@pytest.mark.parametrize(
    ("typed", "region", "profile", "both"),
    [
        (
            "aws ec2 describe-vpcs, then -c vpc_id=...",
            "aws --region eu-west-1 ec2 describe-vpcs, then -c vpc_id=...",
            "aws --profile 'a b' ec2 describe-vpcs, then -c vpc_id=...",
            "aws --profile 'a b' --region eu-west-1 ec2 describe-vpcs, then -c vpc_id=...",
        ),
        (
            "aws ce list-tags --region us-east-1; aws s3 ls",
            "aws ce list-tags --region us-east-1; aws --region eu-west-1 s3 ls",
            "aws --profile 'a b' ce list-tags --region us-east-1; aws --profile 'a b' s3 ls",
            "aws --profile 'a b' ce list-tags --region us-east-1; "
            "aws --profile 'a b' --region eu-west-1 s3 ls",
        ),
        (
            "until aws s3 ls | grep x; do sleep 1; done",
            "until aws --region eu-west-1 s3 ls | grep x; do sleep 1; done",
            "until aws --profile 'a b' s3 ls | grep x; do sleep 1; done",
            "until aws --profile 'a b' --region eu-west-1 s3 ls | grep x; do sleep 1; done",
        ),
        (
            "  type: npx cdk deploy TrainingClusterStack",
            "  type: AWS_REGION=eu-west-1 npx cdk deploy TrainingClusterStack",
            "  type: npx cdk --profile 'a b' deploy TrainingClusterStack",
            "  type: AWS_REGION=eu-west-1 npx cdk --profile 'a b' deploy TrainingClusterStack",
        ),
        (
            "trainctl logs 17 --follow, and trainctl says it again",
            "trainctl --region eu-west-1 logs 17 --follow, and trainctl says it again",
            "trainctl --profile 'a b' logs 17 --follow, and trainctl says it again",
            "trainctl --region eu-west-1 --profile 'a b' logs 17 --follow, and trainctl says it again",
        ),
        (
            "pcluster list-clusters",
            "pcluster list-clusters --region eu-west-1",
            "env -u AWS_ACCESS_KEY_ID AWS_PROFILE='a b' pcluster list-clusters",
            "env -u AWS_ACCESS_KEY_ID AWS_PROFILE='a b' pcluster list-clusters --region eu-west-1",
        ),
        (
            "AWS's aws program, in ~/.aws config of /usr/bin/aws here",
            *["AWS's aws program, in ~/.aws config of /usr/bin/aws here"] * 3,
        ),
    ],
)
@pytest.mark.usefixtures("chosen")
def test_commands_get_the_given_region_and_profile(typed: str, region: str, profile: str, both: str) -> None:
    choose_account(region=None, profile=None)
    assert with_account(typed) == typed
    choose_account(region="eu-west-1", profile=None)
    assert with_account(typed) == region
    os.environ["AWS_ACCESS_KEY_ID"] = "AKIA"
    choose_account(region=None, profile="a b")
    assert with_account(typed) == profile
    os.environ["AWS_ACCESS_KEY_ID"] = "AKIA"
    choose_account(region="eu-west-1", profile="a b")
    assert with_account(typed) == both
