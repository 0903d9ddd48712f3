"""How what is ours is told from what others have: by our tag, never by a name, which anybody can give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ops.account.session import unless
from training_cluster.flags.account import CLUSTER_TAG, SHARED
from training_cluster.image.names import IMAGE_TAG


def is_ours(tags: Iterable[Mapping[str, str]]) -> bool:
    """Whether a network, storage or accounting stack of ours made it."""
    return any(tag["Key"] == CLUSTER_TAG and tag["Value"] == SHARED for tag in tags)


def is_of_an_image(tags: Iterable[Mapping[str, str]]) -> bool:
    """Whether an ImageStack of ours made it, or the pipeline of one."""
    return any(tag["Key"] == IMAGE_TAG for tag in tags)


def is_our_bucket(name: str, s3: Any) -> bool:
    """Ask for a bucket's tags; one whose tags we may not see is not ours."""
    answer = unless(
        lambda: s3.get_bucket_tagging(Bucket=name), "NoSuchTagSet", "NoSuchBucket", "AccessDenied"
    )
    return answer is not None and is_ours(answer["TagSet"])


def is_our_log_group(arn: str, logs: Any) -> bool:
    """Ask for a log group's tags."""
    tags = logs.list_tags_for_resource(resourceArn=arn.removesuffix(":*"))["tags"]
    return bool(tags.get(CLUSTER_TAG) == SHARED)


def is_our_database_part(arn: str, rds: Any) -> bool:
    """Ask for the tags of a subnet group or parameter group."""
    return is_ours(rds.list_tags_for_resource(ResourceName=arn)["TagList"])
