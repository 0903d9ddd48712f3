"""Recognises our resources by our tag, and never by a name, which anybody can give.

The tags come from each service: the Resource Groups Tagging API also returns deleted resources for hours,
and, by one report, omits existing ones (boto3 issue 3341, aws-cli issue 8197, aws-sdk-go-v2 issue 1858).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ops.account.session import unless
from training_cluster.flags.account import CLUSTER_TAG, SHARED
from training_cluster.image.names import IMAGE_TAG


def is_ours(tags: Iterable[Mapping[str, str]]) -> bool:
    """Return True if the tags belong to this app's network, storage or accounting stack."""
    return any(tag["Key"] == CLUSTER_TAG and tag["Value"] == SHARED for tag in tags)


def is_of_an_image(tags: Iterable[Mapping[str, str]]) -> bool:
    """Return True if the tags belong to an ImageStack of this app, or of its pipeline."""
    return any(tag["Key"] == IMAGE_TAG for tag in tags)


def is_our_bucket(name: str, s3: Any) -> bool:
    """Return True if a bucket has our tag; one whose tags we may not read is not ours."""
    answer = unless(
        lambda: s3.get_bucket_tagging(Bucket=name), "NoSuchTagSet", "NoSuchBucket", "AccessDenied"
    )
    return answer is not None and is_ours(answer["TagSet"])


def is_our_log_group(arn: str, logs: Any, *, of: str = SHARED) -> bool:
    """Return True if a log group has our tag, with the name of a cluster or SHARED."""
    tags = logs.list_tags_for_resource(resourceArn=arn.removesuffix(":*"))["tags"]
    return bool(tags.get(CLUSTER_TAG) == of)


def is_our_database_part(arn: str, rds: Any) -> bool:
    """Return True if a subnet group or parameter group of RDS has our tag."""
    return is_ours(rds.list_tags_for_resource(ResourceName=arn)["TagList"])
