"""EC2's default key for volumes: moto lets it be changed and not be asked for."""

from __future__ import annotations

from typing import Any

from rehearsal.local_aws.emulators import hooks, moto_actions
from rehearsal.local_aws.emulators.moto_types import ec2

_AWS_KEY = "alias/aws/ebs"


def install() -> None:
    """Add the action."""
    moto_actions.add(hooks.MOTO_EC2_ACTIONS, get_ebs_default_kms_key_id)


def get_ebs_default_kms_key_id(self: Any) -> Any:  # noqa: ARG001
    """GetEbsDefaultKmsKeyId: the alias of AWS's own key until somebody has chosen another."""
    return moto_actions.answer(KmsKeyId=ec2().default_kms_key_id or _AWS_KEY)
