"""The flags that a cluster was deployed with, in its template's metadata: `trainctl plan` compares with them.

CloudFormation takes new metadata only along with another change, so flags of the shared stacks may be older
here than what stands: their guards' values tell those.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from training_cluster.flags.settings import Settings

GIVEN_FLAGS = "training-cluster:flags"
"""Key of the template's metadata."""


def given_flags(settings: Settings) -> dict[str, Any]:
    """The flags that differ from their defaults, and the family. None is a secret: those go by ARN."""
    return {"family": settings.family, **settings.model_dump(mode="json", exclude_defaults=True)}


def read_given_flags(template: Mapping[str, Any]) -> dict[str, Any] | None:
    """The same out of a deployed template; None where an older release of this app made it."""
    found = template.get("Metadata", {}).get(GIVEN_FLAGS)
    return dict(found) if isinstance(found, Mapping) else None
