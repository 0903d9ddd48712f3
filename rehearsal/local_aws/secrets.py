"""Secrets Manager in templates: Ref is the ARN, and passwords have only the allowed characters."""

import string
from collections.abc import Callable
from typing import Any

from rehearsal.local_aws.cloudformation.handlers import original, wrap
from rehearsal.local_aws.emulators import hooks, ministack_hooks
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
    hooks.replace(ministack_hooks.SECRET_STRING, with_exclusions)
    theirs = original(_TYPE)

    def create(logical_id: str, properties: Properties, stack: str) -> Created:
        _, attributes = theirs["create"](logical_id, properties, stack)
        return attributes["Arn"], attributes

    def update(arn: str, old: Properties, new: Properties, stack: str, logical_id: str) -> Created:
        _, attributes = theirs["update"](_name(arn), old, new, stack, logical_id)
        return attributes["Arn"], attributes

    wrap(
        _TYPE,
        create=create,
        update=update,
        delete=lambda arn, properties: theirs["delete"](_name(arn), properties),
    )


def _name(arn: str) -> str:
    found = (name for name, secret in hooks.find(ministack_hooks.SECRETS).items() if secret["ARN"] == arn)
    return next(found, arn)


def with_exclusions(original: Callable[[Properties], str]) -> Callable[[Properties], str]:
    """Convert the flags of GenerateSecretString to the characters that they exclude."""

    def secret_string(props: Properties) -> str:
        wanted: dict[str, Any] = props.get("GenerateSecretString") or {}
        excluded = "".join(
            characters
            for flag, characters in _EXCLUSIONS.items()
            if str(wanted.get(flag, False)).lower() == "true"
        )
        if not excluded:
            return original(props)
        wanted = {**wanted, "ExcludeCharacters": wanted.get("ExcludeCharacters", "") + excluded}
        return original({**props, "GenerateSecretString": wanted})

    return secret_string
