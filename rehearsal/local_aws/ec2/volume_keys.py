"""EC2's default key for volumes, which moto can change but not return."""

from typing import Any

from rehearsal.local_aws.emulators import moto_actions
from rehearsal.local_aws.emulators.moto_types import ec2

_AWS_KEY = "alias/aws/ebs"


def install() -> None:
    """Add the action GetEbsDefaultKmsKeyId."""
    moto_actions.add("ec2", get_ebs_default_kms_key_id)


def get_ebs_default_kms_key_id(self: Any) -> Any:  # noqa: ARG001
    """Answer GetEbsDefaultKmsKeyId with the alias of AWS's own key until another key is chosen."""
    return moto_actions.answer(KmsKeyId=ec2().default_kms_key_id or _AWS_KEY)
