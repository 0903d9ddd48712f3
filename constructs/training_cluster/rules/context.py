"""Reader of the CDK context as Settings: each flag is checked by itself, then against the others."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from training_cluster.directory.file import read_directory
from training_cluster.flags.file import with_flags_file
from training_cluster.flags.messages import explain, explain_contradictions
from training_cluster.flags.settings import Settings
from training_cluster.overrides.file import read_overrides
from training_cluster.problems import ConfigurationError, Contradiction
from training_cluster.queues.file import read_queues
from training_cluster.rules.contradictions import contradictions
from training_cluster.users.file import read_users

CDKS_BOUNDARY = "@aws-cdk/core:permissionsBoundary"
"""Context key of the CDK itself: a policy's name or ARN, which the CDK gives to the roles of its stacks."""


def read_settings(context: Mapping[str, Any]) -> Settings:
    """Read the flags from the CDK context; keys with ':' or a leading '@' are CDK's own.

    Raises:
        ConfigurationError: an unknown flag, a wrong value, values that contradict each other, or a
            file of flags, overrides, queues or users that cannot be used.
    """
    settings = read_each(context)
    if found := contradictions(settings):
        raise ConfigurationError(explain_contradictions(found))
    return settings


def read_each(context: Mapping[str, Any]) -> Settings:
    """Read the flags like `read_settings`, without checking them against each other."""
    context = with_flags_file(context)
    flags = {k: v for k, v in context.items() if ":" not in k and not k.startswith("@")}
    if context.get(CDKS_BOUNDARY) and "permissions_boundary" not in flags:
        raise ConfigurationError(explain_contradictions([_boundary_of_the_app_alone(context)]))
    try:
        settings = Settings(**flags)
    except ValidationError as error:
        raise ConfigurationError(explain(error, Settings.model_fields)) from None
    if settings.overrides:
        read_overrides(settings.overrides)
    if settings.queues:
        read_queues(settings.queues)
    if settings.users:
        read_users(settings.users)
    if settings.directory:
        read_directory(settings.directory)
    return settings


def _boundary_of_the_app_alone(context: Mapping[str, Any]) -> Contradiction:
    """Explain that the cluster's roles would lack the boundary, and what to type."""
    given = context[CDKS_BOUNDARY]
    arn = str(given.get("arn") or "") if isinstance(given, Mapping) else ""
    if not arn or "${" in arn:  # a shell would empty the CDK's placeholders
        arn = "arn:aws:iam::ACCOUNT:policy/NAME"
    return Contradiction(
        problem=f"{CDKS_BOUNDARY} bounds the roles of this app, not the roles that ParallelCluster makes",
        mend=f"-c permissions_boundary={arn} (the policy's ARN). A cluster that was created without the flag "
        f"takes none: -c '{CDKS_BOUNDARY}=' updates it, and the app's roles lose the boundary; or create a "
        "second cluster with the flag and another cluster_name",
    )
