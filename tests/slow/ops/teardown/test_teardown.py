"""`trainctl destroy --plan` and `preflight` ask an account that answers. The tests build on each other."""

import json
from collections.abc import Iterator

import pytest

from tests.slow.conftest import Cloud
from training_cluster.flags.account import CLUSTER_TAG, SHARED

pytestmark = pytest.mark.slow

STACK = "TrainingCluster-Storage"


@pytest.fixture(scope="module")
def kept(cloud: Cloud) -> Iterator[dict[str, str]]:
    """Resources of StorageStack, by output."""
    cloud.cdk.run("deploy", "StorageStack", "--require-approval", "never", output=cloud.folder / "cdk.out")
    stack = cloud.stack(STACK)
    assert stack
    yield {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}


def _order(shown: str, *parts: str) -> list[int]:
    return [shown.find(part) for part in parts]


def test_the_plan_names_what_was_made(cloud: Cloud, kept: dict[str, str]) -> None:
    done = cloud.trainctl("destroy", "--plan")
    assert done.returncode == 0, done.stderr
    assert "There is no cluster training here." in done.stdout
    assert f"{kept['FileSystemId']}  FSx for Lustre, PERSISTENT_2, 1200 GiB, 250 MB/s a TiB" in done.stdout
    found = _order(
        done.stdout,
        "--no-enable-termination-protection --stack-name TrainingCluster-Storage",
        "npx cdk destroy StorageStack",
        "aws fsx delete-data-repository-association",
        f"aws fsx delete-file-system --file-system-id {kept['FileSystemId']}",
        f"aws efs delete-file-system --file-system-id {kept['EfsId']}",
        "aws ec2 delete-security-group",
        f"aws s3api delete-bucket --bucket {kept['BucketName']}",
        "npx cdk destroy NetworkStack",
    )
    assert found == sorted(found)
    assert -1 not in found


def test_preflight_accepts_the_made_storage_as_your_own(cloud: Cloud, kept: dict[str, str]) -> None:
    flags = {"bucket_name": "BucketName", "fsx_id": "FileSystemId", "efs_id": "EfsId"}
    given = [part for flag, output in flags.items() for part in ("-c", f"{flag}={kept[output]}")]
    done = cloud.trainctl("preflight", "--json", *given)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {each["check"]: each["verdict"] for each in json.loads(done.stdout)["findings"]}
    assert found["Lustre: open to the nodes on 988, 1018-1023"] == "ok"


def test_a_deleted_stacks_data_is_found_by_tag(cloud: Cloud, kept: dict[str, str]) -> None:
    cloud.client("cloudformation").update_termination_protection(
        StackName=STACK, EnableTerminationProtection=False
    )
    cloud.cdk.run("destroy", "StorageStack", "--force", output=cloud.folder / "cdk.out")
    assert cloud.stack(STACK) is None
    # ministack drops the tags that a template gives a bucket; that it does is tested in
    # tests/unit/ops/teardown/test_remaining.py.
    cloud.client("s3").put_bucket_tagging(
        Bucket=kept["BucketName"], Tagging={"TagSet": [{"Key": CLUSTER_TAG, "Value": SHARED}]}
    )
    done = cloud.trainctl("destroy", "--plan")
    assert done.returncode == 0, done.stderr
    flags = f"-c bucket_name={kept['BucketName']} -c fsx_id={kept['FileSystemId']} -c efs_id={kept['EfsId']}"
    assert flags in done.stdout
    assert "aws ec2 delete-security-group" in done.stdout
    assert "npx cdk destroy StorageStack" not in done.stdout
