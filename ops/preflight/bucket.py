"""Checks of an existing bucket."""

from collections.abc import Iterator
from typing import Any

from ops.account.session import ClientOf, unless
from ops.preflight.finding import Finding, finding

_KMS = ("aws:kms", "aws:kms:dsse")
_S3S_OWN_KEY = "alias/aws/s3"
_AES256 = '{"Rules":[{"ApplyServerSideEncryptionByDefault":{"SSEAlgorithm":"AES256"}}]}'


def check_bucket(name: str, client: ClientOf) -> Iterator[Finding]:
    """Check the bucket's region, and that nodes can use it and recover overwritten objects."""
    s3, region = client("s3"), client("ec2").meta.region_name
    check = f"bucket_name {name}"
    answer = unless(lambda: s3.head_bucket(Bucket=name), "404", "NoSuchBucket", "403")
    if answer is None:
        mend = "aws s3 ls, then -c bucket_name=..."
        yield Finding(check=check, found="missing, or not yours", verdict="problem", mend=mend)
        return
    headers = answer["ResponseMetadata"].get("HTTPHeaders", {})
    where = answer.get("BucketRegion") or headers.get("x-amz-bucket-region") or region
    mend = f"-c bucket_name=... of a bucket in {region}"
    yield finding(check, f"in {where}", good=where == region, mend=mend)
    if where == region:
        yield _encryption(name, s3)
        yield _versioning(name, s3)


def _encryption(name: str, s3: Any) -> Finding:
    key = _own_key(name, s3)
    return finding(
        "bucket: encryption",
        f"with the key {key}, which the nodes may not use" if key else "with S3's own key",
        good=key is None,
        otherwise="warning",
        mend=f"aws s3api put-bucket-encryption --bucket {name} --server-side-encryption-configuration "
        f"'{_AES256}'\n"
        "or allow the roles of the nodes kms:Decrypt and kms:GenerateDataKey in the key's policy; existing "
        "objects with this key need that anyway",
    )


def _own_key(name: str, s3: Any) -> str | None:
    """Return the default KMS key of new objects; None for S3's own.

    The key aws/s3 allows everybody who may read the bucket in its account (unconfirmed).
    """
    none = "ServerSideEncryptionConfigurationNotFoundError"
    answer = unless(lambda: s3.get_bucket_encryption(Bucket=name), none)
    rules = answer["ServerSideEncryptionConfiguration"]["Rules"] if answer else []
    for rule in rules:
        default = rule.get("ApplyServerSideEncryptionByDefault", {})
        key = str(default.get("KMSMasterKeyID", _S3S_OWN_KEY))
        if default.get("SSEAlgorithm") in _KMS and not key.endswith(_S3S_OWN_KEY):
            return key
    return None


def _versioning(name: str, s3: Any) -> Finding:
    on = s3.get_bucket_versioning(Bucket=name).get("Status") == "Enabled"
    return finding(
        "bucket: versioning",
        "on" if on else "off: an overwritten checkpoint is lost",
        good=on,
        otherwise="warning",
        mend=f"aws s3api put-bucket-versioning --bucket {name} --versioning-configuration Status=Enabled",
    )
