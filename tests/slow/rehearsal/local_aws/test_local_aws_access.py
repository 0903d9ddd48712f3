"""Access to a local AWS, which only its own access key gives: other users of the machine reach its port."""

import http.client
import os
import ssl
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from rehearsal.deployed import client_options
from rehearsal.local_aws.address import ACCOUNT, LocalAwsAddress
from rehearsal.local_aws.process import LocalAws, new_access_key

pytestmark = pytest.mark.slow

COMMAND = {"commands": ["PATH=$PATH:/opt/slurm/bin squeue"]}
CALLS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "query": ("sts", "get_caller_identity", {}),
    "ec2": ("ec2", "describe_vpcs", {}),
    "rest-xml": ("s3", "list_buckets", {}),
    "json": (
        "ssm",
        "send_command",
        {"InstanceIds": ["i-0123456789abcdef0"], "DocumentName": "AWS-RunShellScript", "Parameters": COMMAND},
    ),
    "rest-json": ("lambda", "list_functions", {}),
    "json of moto": ("fsx", "describe_file_systems", {}),
    "Image Builder": ("imagebuilder", "list_images", {}),
}
# What AWS says of an access key that it does not know, by protocol.
UNKNOWN = {"query": "InvalidClientTokenId", "ec2": "AuthFailure", "rest-xml": "InvalidAccessKeyId"}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAwsAddress]:
    folder = tmp_path_factory.mktemp("aws")
    folder.chmod(0o755)
    with LocalAws(folder=folder, marker=("TRAINING_CLUSTER_TEST", f"access-{os.getpid()}")) as started:
        yield started


def client(address: LocalAwsAddress, service: str, **options: Any) -> Any:
    url = address.s3_url if service == "s3" else address.url
    return boto3.client(service, endpoint_url=url, **client_options(address) | options)  # type: ignore[call-overload]


@pytest.mark.parametrize("protocol", CALLS)
def test_somebody_elses_access_key_is_refused(address: LocalAwsAddress, protocol: str) -> None:
    """Also the key of another start."""
    service, operation, arguments = CALLS[protocol]
    for key in (ACCOUNT, "test", "AKIAIOSFODNN7EXAMPLE", new_access_key()):
        made_up = {"aws_access_key_id": key, "aws_secret_access_key": "local"}
        with pytest.raises(ClientError) as refusal:
            getattr(client(address, service, **made_up), operation)(**arguments)
        code = refusal.value.response["Error"]["Code"]
        assert code == UNKNOWN.get(protocol, "UnrecognizedClientException")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 403),
        ("POST", "/?Action=GetCallerIdentity&Version=2011-06-15", 403),
        ("POST", "/_ministack/reset", 403),
        # Where functions and nodes answer CloudFormation; the token is one that nobody has.
        ("PUT", "/_ministack/cfn-response/token", 200),
        ("GET", "/_ministack/cfn-response/token", 403),
    ],
)
def test_a_request_without_a_signature_is_refused(
    address: LocalAwsAddress, method: str, path: str, status: int
) -> None:
    trust = ssl.create_default_context(cafile=str(address.certificate))
    connection = http.client.HTTPSConnection("localhost", address.port, context=trust)
    connection.request(method, path, body=b"{}" if method != "GET" else None)
    answer = connection.getresponse()
    said = answer.read()
    assert answer.status == status, said


def test_own_key_and_its_sessions_are_taken(address: LocalAwsAddress) -> None:
    iam, sts = client(address, "iam"), client(address, "sts")
    assert sts.get_caller_identity()["Account"] == ACCOUNT
    role = iam.create_role(RoleName="somebody", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    given = sts.assume_role(RoleArn=role, RoleSessionName="session")["Credentials"]
    session = client(
        address,
        "sts",
        aws_access_key_id=given["AccessKeyId"],
        aws_secret_access_key=given["SecretAccessKey"],
        aws_session_token=given["SessionToken"],
    )
    assert ":assumed-role/somebody/session" in session.get_caller_identity()["Arn"]


def test_nobody_else_reads_the_key(address: LocalAwsAddress) -> None:
    assert stat.S_IMODE(address.folder.stat().st_mode) == 0o700
    key = client_options(address)["aws_access_key_id"].encode()
    command_lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert not [line for line in command_lines if key in line]
