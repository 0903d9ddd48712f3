"""--region, --profile and credentials, as each request to AWS is signed."""

import getpass
import hashlib
import io
import json
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders
from botocore.httpsession import URLLib3Session

from ops.account import region_and_profile
from ops.account.region_and_profile import choose_account, with_account
from tests.unit.ops.jobs_head_node import Call

SIGNED = re.compile(r"Credential=(?P<key>[^/]+)/\d+/(?P<region>[^/]+)/")
ANSWERS = {
    "GetCallerIdentity": "<Arn>arn:aws:iam::123456789012:user/a</Arn><Account>123456789012</Account>",
    "AssumeRole": "<Credentials><AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>-</SecretAccessKey>"
    "<SessionToken>-</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>",
}
REFUSED = "<ErrorResponse><Error><Code>{}</Code><Message>no</Message></Error></ErrorResponse>"
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


@dataclass(frozen=True)
class Asked:
    """One request, as it was signed."""

    operation: str
    key: str
    region: str


@dataclass
class Account:
    """An account that allows calls of STS alone; `regions_off` take no credentials."""

    regions_off: frozenset[str] = frozenset()
    page: str = ""
    """Page of a proxy, which answers in the account's place."""
    asked: list[Asked] = field(default_factory=list)

    def send(self, request: AWSPreparedRequest) -> AWSResponse:
        """Answer a request."""
        signed = SIGNED.search(str(request.headers["Authorization"]))
        assert signed
        body = request.body.decode() if isinstance(request.body, bytes) else str(request.body)
        (operation,) = parse_qs(body).get("Action", [""])
        self.asked.append(Asked(operation, signed["key"], signed["region"]))
        if self.page:
            return _answer(200, self.page)
        if signed["region"] in self.regions_off:
            return _answer(403, REFUSED.format("InvalidClientTokenId"))
        if operation not in ANSWERS:
            return _answer(403, REFUSED.format("AccessDenied"))
        answer = f"<{operation}Result>{ANSWERS[operation]}</{operation}Result>"
        return _answer(200, f"<{operation}Response>{answer}</{operation}Response>")


def _answer(status: int, text: str) -> AWSResponse:
    return AWSResponse("", status, HTTPHeaders(), SimpleNamespace(stream=lambda: [text.encode()]))


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID"):
        monkeypatch.setenv(name, "before")
    monkeypatch.setattr(region_and_profile, "_chosen", region_and_profile._Chosen())


@pytest.fixture
def account(chosen: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Account:
    """Return an account, to which a person with these profiles in HOME speaks."""
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text(PROFILES)
    for name in [each for each in os.environ if each.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    account = Account()
    monkeypatch.setattr(URLLib3Session, "send", lambda _session, request: account.send(request))
    return account


@pytest.fixture
def keys(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have credentials in the environment, too."""
    for name, value in ENVIRONMENT_KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment", [{**ENVIRONMENT_KEYS, "AWS_SESSION_TOKEN": "token"}, {"AWS_DEFAULT_PROFILE": "nobody"}]
)
def test_a_named_profile_precedes_the_environment(
    account: Account, call: Call, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    call("--profile", "prod", "status")
    assert {(asked.key, asked.region) for asked in account.asked} == {("AKIAPROD", "eu-central-1")}


@pytest.mark.slow
@pytest.mark.usefixtures("keys")
def test_without_a_profile_environment_keys_are_used(account: Account, call: Call) -> None:
    call("--region", "eu-west-1", "status")
    assert {(asked.key, asked.region) for asked in account.asked} == {("AKIAENVIRONMENT", "eu-west-1")}


@pytest.mark.slow
def test_a_page_of_a_proxy_is_one_message(account: Account, call: Call) -> None:
    account.page = "<!DOCTYPE html><html><body>Sign in<br></body></html>"
    code, _, complained = call("--profile", "prod", "status")
    assert code == 1
    what, type_ = complained.splitlines()
    assert what.startswith("status: the answer is not AWS's, but perhaps a page of a proxy: ")
    assert "NO_PROXY" in type_


@pytest.mark.slow
@pytest.mark.usefixtures("keys")
def test_a_disabled_region_gets_the_enabling_command(account: Account, call: Call) -> None:
    account.regions_off = frozenset({"ap-east-1"})
    code, _, complained = call("--region", "ap-east-1", "preflight")
    assert code == 1
    assert "the region ap-east-1 is not enabled in this account (InvalidClientTokenId)" in complained
    assert "aws account enable-region --region us-east-1 --region-name ap-east-1\n" in complained


@pytest.mark.slow
@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("region", ["ap-east-1", "us-east-1", "cn-north-1"])
def test_invalid_keys_are_not_blamed_on_the_region(account: Account, call: Call, region: str) -> None:
    account.regions_off = frozenset({region, "us-east-1"})
    _, _, complained = call("--region", region, "preflight")
    assert "AWS does not accept these credentials (InvalidClientTokenId)" in complained
    assert "enable-region" not in complained


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::getpass.GetPassWarning")
def test_an_mfa_code_is_asked_for_once(account: Account, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_terminal(*_: Any) -> int:
        raise OSError

    monkeypatch.setattr(getpass, "os", SimpleNamespace(open=no_terminal, O_RDWR=0, O_NOCTTY=0))
    monkeypatch.setattr(sys, "stdin", io.StringIO("123456\n"))
    assert [call("--profile", "role", "status")[0] for _ in range(2)] == [1, 1]
    first, *others = account.asked
    assert (first.operation, first.key) == ("AssumeRole", "AKIAPROD")
    assert [(asked.operation, asked.key) for asked in others] == [("DescribeStacks", "ASIAROLE")] * 2


@pytest.mark.slow
def test_a_profile_of_aws_login_signs_in(account: Account, call: Call, tmp_path: Path) -> None:
    keys = {"accessKeyId": "ASIALOGIN", "secretAccessKey": "secret", "sessionToken": "token"}
    token: dict[str, Any] = {
        "accessToken": {**keys, "accountId": "123456789012", "expiresAt": "2099-01-01T00:00:00Z"}
    }
    token |= {"clientId": "a", "refreshToken": "a", "dpopKey": "a"}
    assert call("--profile", "login", "status")[2].endswith("type:   aws --profile login login\n")
    name = hashlib.sha256(b"arn:aws:iam::123456789012:user/a").hexdigest()
    cache = tmp_path / ".aws" / "login" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    (cache / f"{name}.json").write_text(json.dumps(token))
    said = call("--profile", "login", "status")
    assert {asked.key for asked in account.asked} == {"ASIALOGIN"}, said


TYPED = """aws ec2 describe-vpcs, then -c vpc_id=...
aws ce list-tags --region us-east-1; aws s3 ls
until aws s3 ls | grep x; do sleep 1; done
  type: npx cdk deploy TrainingClusterStack
trainctl logs 17 --follow, and trainctl says it again
pcluster list-clusters
AWS's aws program, in ~/.aws config of /usr/bin/aws here"""
BOTH = """aws --profile 'a b' --region eu-west-1 ec2 describe-vpcs, then -c vpc_id=...
aws --profile 'a b' ce list-tags --region us-east-1; aws --profile 'a b' --region eu-west-1 s3 ls
until aws --profile 'a b' --region eu-west-1 s3 ls | grep x; do sleep 1; done
  type: AWS_REGION=eu-west-1 npx cdk --profile 'a b' deploy TrainingClusterStack
trainctl --region eu-west-1 --profile 'a b' logs 17 --follow, and trainctl says it again
env -u AWS_ACCESS_KEY_ID AWS_PROFILE='a b' pcluster list-clusters --region eu-west-1
AWS's aws program, in ~/.aws config of /usr/bin/aws here"""


@pytest.mark.usefixtures("chosen")
def test_commands_get_the_given_region_and_profile() -> None:
    of_profile = ("env -u AWS_ACCESS_KEY_ID AWS_PROFILE='a b' ", "--profile 'a b' ")
    of_region = (" --region eu-west-1", "AWS_REGION=eu-west-1 ")
    choose_account(region=None, profile=None)
    assert with_account(TYPED) == TYPED
    choose_account(region="eu-west-1", profile=None)
    assert with_account(TYPED) == re.sub("|".join(of_profile), "", BOTH)
    for region, typed in ((None, re.sub("|".join(of_region), "", BOTH)), ("eu-west-1", BOTH)):
        os.environ["AWS_ACCESS_KEY_ID"] = "AKIA"
        choose_account(region=region, profile="a b")
        assert with_account(TYPED) == typed
