"""Secrets Manager in templates: Ref is the ARN, and passwords have only the allowed characters."""

import string
from typing import Any

from rehearsal.local_aws.cloudformation.handlers import original, wrap
from rehearsal.local_aws.emulators.ministack_client import client
from rehearsal.local_aws.emulators.moto_types import Created, Properties

_TYPE = "AWS::SecretsManager::Secret"
_EXCLUSIONS = {
    "ExcludePunctuation": string.punctuation,
    "ExcludeNumbers": string.digits,
    "ExcludeLowercase": string.ascii_lowercase,
    "ExcludeUppercase": string.ascii_uppercase,
}


def install() -> None:
    """Correct ministack's secrets."""
    theirs = original(_TYPE)

    def create(logical_id: str, properties: Properties, stack: str) -> Created:
        _, attributes = theirs["create"](logical_id, with_exclusions(properties), stack)
        return attributes["Arn"], attributes

    def update(arn: str, old: Properties, new: Properties, stack: str, logical_id: str) -> Created:
        exact = with_exclusions(old), with_exclusions(new)
        _, attributes = theirs["update"](_name(arn), *exact, stack, logical_id)
        return attributes["Arn"], attributes

    wrap(
        _TYPE,
        create=create,
        update=update,
        delete=lambda arn, properties: theirs["delete"](_name(arn), properties),
    )


def _name(arn: str) -> str:
    secrets = client("secretsmanager")
    try:
        return str(secrets.describe_secret(SecretId=arn)["Name"])
    except secrets.exceptions.ResourceNotFoundException:  # it is already deleted
        return arn


def with_exclusions(properties: Properties) -> Properties:
    """Convert the flags of GenerateSecretString to the characters that they exclude."""
    wanted: dict[str, Any] = properties.get("GenerateSecretString") or {}
    excluded = "".join(
        characters
        for flag, characters in _EXCLUSIONS.items()
        if str(wanted.get(flag, False)).lower() == "true"
    )
    if not excluded:
        return properties
    wanted = {**wanted, "ExcludeCharacters": wanted.get("ExcludeCharacters", "") + excluded}
    return {**properties, "GenerateSecretString": wanted}
