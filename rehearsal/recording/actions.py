"""IAM actions of calls of the AWS API, where they differ from the operation's name (pure).

Sources: the Service Authorization Reference, and for S3 the page `Required permissions for Amazon S3 API
operations` of its user guide.
"""

from __future__ import annotations

# IAM's prefixes that differ from botocore's signing names.
_PREFIXES = {"tagging": "tag"}

_ACTIONS = {
    "s3 DeleteObjects": ("DeleteObject", "DeleteObjectVersion"),
    "s3 HeadBucket": ("ListBucket",),
    "s3 HeadObject": ("GetObject",),
    "s3 ListObjects": ("ListBucket",),
    "s3 ListObjectsV2": ("ListBucket",),
    "s3 ListObjectVersions": ("ListBucketVersions",),
    "s3 PutBucketEncryption": ("PutEncryptionConfiguration",),
    # This call needs no permission, and cannot be denied.
    "sts GetCallerIdentity": (),
}
# Calls that need other actions if they have a parameter.
_WITH_PARAMETER = {
    "cloudformation CreateStack Tags": ("CreateStack", "TagResource"),
    "cloudformation UpdateStack Tags": ("UpdateStack", "TagResource"),
    "ec2 RunInstances TagSpecifications": ("RunInstances", "CreateTags"),
    "s3 GetObject VersionId": ("GetObjectVersion",),
}


def actions_of(service: str, operation: str, parameters: str) -> frozenset[str]:
    """Return the actions of one call.

    Args:
        service: botocore's signing name.
        parameters: names of its parameters, separated by commas.
    """
    call = f"{service} {operation}"
    special = [_WITH_PARAMETER.get(f"{call} {name}", ()) for name in parameters.split(",")]
    names = [name for each in special for name in each] or _ACTIONS.get(call, (operation,))
    return frozenset(f"{_PREFIXES.get(service, service)}:{name}" for name in names)
