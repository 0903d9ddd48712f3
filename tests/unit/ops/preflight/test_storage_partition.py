"""`trainctl preflight` in China: what FSx has not there is told before a deploy."""

from typing import Any

import boto3
import pytest

from ops.preflight.existing_network import unknown_network
from ops.preflight.storage import check_storage
from training_cluster.rules.context import read_settings

SCRATCH = {"fsx_type": "scratch2"}


@pytest.mark.parametrize(
    ("region", "flags", "problems"),
    [
        ("cn-north-1", SCRATCH, ["fsx_type=scratch2"]),
        ("cn-northwest-1", SCRATCH, ["fsx_type=scratch2"]),
        ("cn-north-1", {}, []),
        ("us-gov-west-1", SCRATCH, []),
        ("us-east-1", SCRATCH, []),
    ],
)
def test_scratch_file_systems_are_not_sold_in_china(
    region: str, flags: dict[str, str], problems: list[str]
) -> None:
    settings = read_settings(flags)

    def client(service: str) -> Any:
        keys = {"aws_access_key_id": "none", "aws_secret_access_key": "none"}
        made: Any = boto3.client(service, region_name=region, **keys)  # type: ignore[call-overload]
        return made

    found = list(check_storage(settings, unknown_network(settings), client))
    assert [each.check for each in found if each.verdict == "problem"] == problems
    assert all("leave fsx_type out" in each.mend for each in found)
