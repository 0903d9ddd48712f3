"""Pure: the IAM actions that calls of the AWS API take, where they are not the operation's own name.

Sources: the Service Authorization Reference, and for S3 the page `Required permissions for Amazon S3 API
operations` of its user guide.
"""

from __future__ import annotations

# botocore's signing names that are not IAM's prefixes.
_PREFIXES = {"tagging": "tag"}

_ACTIONS = {
    "s3 DeleteObjects": ("DeleteObject", "DeleteObjectVersion"),
    "s3 HeadBucket": ("ListBucket",),
    "s3 HeadObject": ("GetObject",),
    "s3 ListObjects": ("ListBucket",),
    "s3 ListObjectsV2": ("ListBucket",),
    "s3 ListObjectVersions": ("ListBucketVersions",),
    "s3 PutBucketEncryption": ("PutEncryptionConfiguration",),
    # It needs no permission, and cannot be denied one.
    "sts GetCallerIdentity": (),
}
# A parameter can take more than the operation, or something else.
_WITH_PARAMETER = {
    "cloudformation CreateStack Tags": ("CreateStack", "TagResource"),
    "cloudformation UpdateStack Tags": ("UpdateStack", "TagResource"),
    "ec2 RunInstances TagSpecifications": ("RunInstances", "CreateTags"),
    "s3 GetObject VersionId": ("GetObjectVersion",),
}


def actions_of(service: str, operation: str, parameters: str) -> frozenset[str]:
    """The actions of one call.

    Args:
        service: botocore's signing name.
        parameters: names, with commas between them.
    """
    call = f"{service} {operation}"
    special = [_WITH_PARAMETER.get(f"{call} {name}", ()) for name in parameters.split(",")]
    names = [name for each in special for name in each] or _ACTIONS.get(call, (operation,))
    return frozenset(f"{_PREFIXES.get(service, service)}:{name}" for name in names)
