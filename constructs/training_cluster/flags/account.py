"""Flags of the account: key pair, permissions boundary, tags, budget, address for alarms."""

import re
import unicodedata

from pydantic import BaseModel, field_validator

from training_cluster.flags.flag import flag

CLUSTER_TAG = "training-cluster:cluster"
"""Key of the tag with the name of a resource's cluster; costs are counted by it."""
SHARED = "_shared"
"""Value of that tag on resources that all clusters share; no cluster can have this name."""

# Regions whose CloudFormation has no AWS::Budgets::Budget: it is not among the schemas of its registry that
# cfn-lint bundles for them (compared in a test).
REGIONS_WITHOUT_BUDGETS = (
    *("af-south-1", "ap-east-1", "ap-east-2", "ap-northeast-3", "ap-south-2", "ap-southeast-3"),
    *("ap-southeast-4", "ap-southeast-5", "ap-southeast-6", "ap-southeast-7", "ca-west-1", "eu-central-2"),
    *("eu-north-1", "eu-south-1", "eu-south-2", "il-central-1", "me-central-1", "mx-central-1"),
    *("us-gov-east-1", "us-gov-west-1"),
)

MAIL_ADDRESS = r"[^@\s]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+"
POLICY_ARN = r"arn:aws[a-z-]*:iam::(\d{12}|aws):policy/[\w+=,.@/-]+"
_BUCKET = r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^\s*?,]*[^\s*?,/])?/?"
# IAM's default quota is 10 managed policies a role. CloudWatch's agent and ours (session, data sets, buckets)
# take four.
_MOST_POLICIES = 6
_RESERVED = ("aws:", "parallelcluster:", "training-cluster:")
# IAM's, FSx's, EFS's and Lambda's [\p{L}\p{Z}\p{N}_.:/=+\-@], in their models of botocore.
_TAG_CATEGORIES, TAG_MARKS = ("L", "Z", "N"), "_.:/=+-@"
_MOST_TAGS = 20


class AccountFlags(BaseModel):
    """Flags for the requirements of the account's owners."""

    key_name: str | None = flag(
        None,
        pattern=r"^[\x20-\x7e]{1,255}$",
        takes="the name of an ED25519 key pair",
        example="my-key",
        description="An existing EC2 key pair, ED25519. It cannot change during a cluster's life. Default: a "
        "new one, CLUSTER-key, whose private half is in Systems Manager.",
    )
    permissions_boundary: str | None = flag(
        None,
        pattern=f"^{POLICY_ARN}$",
        takes="an ARN such as arn:aws:iam::123456789012:policy/boundary",
        example="arn:aws:iam::123456789012:policy/boundary",
        description="ARN of a policy that bounds every role that is made, also by ParallelCluster. The "
        "provider needs IAM's actions in it (docs/permissions.md).",
        on_change="refused by the guard while a cluster exists: given, another or left out. A cluster keeps "
        "its boundary for its life, and the shared stacks have the same",
    )
    tags: str | None = flag(
        None,
        takes="KEY=VALUE,KEY=VALUE",
        example="team=nlp,project=gpt2",
        description="Tags of everything, as KEY=VALUE,KEY=VALUE. Default: none but ours "
        "(training-cluster:cluster).",
    )
    budget_usd: int | None = flag(
        None,
        ge=1,
        example="5000",
        description="Budget of the cluster's nodes and disks, whole USD a month. alarm_email gets a mail at "
        "80 % of it, at 100 %, and when 100 % is forecast. Default: no budget.",
        on_change="live",
    )
    alarm_email: str | None = flag(
        None,
        pattern=f"^{MAIL_ADDRESS}$",
        takes="an e-mail address",
        example="me@example.com",
        description="Address for the mails of the cluster's alarms and of its budget. AWS first sends it a "
        "link that confirms the alarms. Default: alarms are on the dashboard only.",
        on_change="live: the new address gets a mail to confirm",
    )

    node_policies: str | None = flag(
        None,
        takes=f"ARNs of IAM policies, comma separated, {_MOST_POLICIES} at most",
        example="arn:aws:iam::123456789012:policy/team",
        description="IAM policies that every node's role gets in addition to ours, comma separated. They "
        "must exist. Jobs have these rights, too.",
    )
    read_buckets: str | None = flag(
        None,
        takes="BUCKET or BUCKET/PREFIX, comma separated",
        example="my-data,shared/corpora",
        description="More buckets that nodes and jobs may list and read, whole or below a prefix, comma "
        "separated.",
    )
    write_buckets: str | None = flag(
        None,
        takes="BUCKET or BUCKET/PREFIX, comma separated",
        example="my-results,shared/runs",
        description="More buckets that nodes and jobs may also write to. They can delete nothing.",
    )

    @field_validator("node_policies")
    @classmethod
    def _are_policies(cls, value: str | None) -> str | None:
        found = split_list(value)
        for each in found:
            if not re.fullmatch(POLICY_ARN, each):
                raise ValueError(f'"{each}" is not the ARN of a policy')
        if len(found) > _MOST_POLICIES:
            raise ValueError(
                f"{len(found)} policies; {_MOST_POLICIES} at most, since AWS takes 10 a role and "
                "ParallelCluster and this app add theirs"
            )
        return value

    @field_validator("read_buckets", "write_buckets")
    @classmethod
    def _are_buckets(cls, value: str | None) -> str | None:
        for each in split_list(value):
            if not re.fullmatch(_BUCKET, each):
                raise ValueError(f'"{each}" is not BUCKET or BUCKET/PREFIX')
        return value

    @field_validator("tags")
    @classmethod
    def _are_tags(cls, value: str | None) -> str | None:
        if value is not None:
            parse_tags(value)
        return value


def split_list(text: str | None) -> tuple[str, ...]:
    """Split a flag's comma-separated words. Raises ValueError if one is empty or given twice."""
    words = tuple(each.strip() for each in text.split(",")) if text is not None else ()
    for word in words:
        if not word or words.count(word) > 1:
            raise ValueError(f'"{word}" is given twice' if word else "a word is empty")
    return words


def parse_tags(text: str) -> dict[str, str]:
    """Parse KEY=VALUE,KEY=VALUE.

    Raises:
        ValueError: another form, a key twice, or a key that AWS or this app uses.
    """
    found: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = (each.strip() for each in part.partition("="))
        if not (key and equals and value):
            raise ValueError(f'"{part}" is not KEY=VALUE')
        # ParallelCluster takes this one: in overrides, where no resource of another stack gets it.
        taken = '"Name": AWS and ParallelCluster name each resource by this tag' if key == "Name" else None
        if problem := taken or tag_problem(key, value):
            raise ValueError(problem)
        if key in found:
            raise ValueError(f'"{key}" is given twice')
        found[key] = value
    if len(found) > _MOST_TAGS:
        raise ValueError(f"{len(found)} tags; {_MOST_TAGS} at most, since AWS takes 50 and others add theirs")
    return found


def tag_problem(key: str, value: str) -> str | None:
    """Return why a resource of the cluster cannot have a tag: IAM's roles are among them."""
    if key.lower().startswith(_RESERVED):
        return f'"{key}": keys that start with {", ".join(_RESERVED)} are taken'
    if not value:
        return f'"{key}": CloudFormation takes no tag without a value'
    if wrong := [each for each in key + value if not _is_taken_in_tags(each)]:
        return f'"{key}={value}": a tag takes letters, digits, spaces and {TAG_MARKS}, no {wrong[0]}'
    if len(key) > 128 or len(value) > 256:  # noqa: PLR2004  # AWS's limits
        return f'"{key}={value}": a key has 128 characters at most, a value 256'
    return None


def _is_taken_in_tags(character: str) -> bool:
    return character in TAG_MARKS or unicodedata.category(character)[0] in _TAG_CATEGORIES
