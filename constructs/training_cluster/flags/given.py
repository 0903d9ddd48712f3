"""Flags of a deployed cluster, in its template's metadata: `trainctl deploy` repeats them.

CloudFormation takes new metadata only along with another change, which the cluster's guard makes. Flags of
the shared stacks may be outdated here after another cluster's deploy: the values of their guards are not.
"""

from collections.abc import Mapping
from typing import Any

from training_cluster.flags.flag import facts_of
from training_cluster.flags.network import NetworkFlags
from training_cluster.flags.settings import Settings
from training_cluster.flags.storage import StorageFlags
from training_cluster.queues.file import flags_of_file

GIVEN_FLAGS = "training-cluster:flags"
"""Key of the template's metadata."""
_OF_SHARED_STACKS = {*NetworkFlags.model_fields, *StorageFlags.model_fields} - {"home"}


def given_flags(settings: Settings) -> dict[str, Any]:
    """Return the family, and the flags that differ from their defaults; no flag is a secret, only its ARN.

    Those of one deploy alone are left out, and an image of the file of queues, which may drop it again. The
    file's other flags tell the next deploy what goes with the queue if the file no longer has it.
    """
    of_one = {flag for flag, info in Settings.model_fields.items() if not facts_of(info).is_remembered}
    flags = settings.model_dump(mode="json", exclude_defaults=True, exclude=of_one)
    of_file = flags_of_file(settings.queues, settings.queue_name)
    if "image" in of_file:
        flags.pop("image", None)
    return {"family": settings.family, **flags}


def own_flags(settings: Settings) -> dict[str, Any]:
    """Return the given flags of the cluster's own stack."""
    return {flag: each for flag, each in given_flags(settings).items() if flag not in _OF_SHARED_STACKS}


def left_out(settings: Settings) -> dict[str, str]:
    """Return the default of each flag that the deploy leaves out, though it may not drop the last one's.

    Those of the shared stacks are not among them: another cluster's deploy may have changed them since, and
    their guards have the real values.
    """
    return {
        flag: "" if info.default is None else str(info.default)
        for flag, info in Settings.model_fields.items()
        if facts_of(info).is_remembered and flag not in settings.model_fields_set | _OF_SHARED_STACKS
    }


def read_given_flags(template: Mapping[str, Any]) -> dict[str, Any] | None:
    """Read the flags from a deployed template; None if an older release of this app made it."""
    found = template.get("Metadata", {}).get(GIVEN_FLAGS)
    return dict(found) if isinstance(found, Mapping) else None
