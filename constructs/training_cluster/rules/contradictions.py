"""All rules between flags: combinations that AWS or ParallelCluster would refuse during a deploy.

Each rule is a function that yields contradictions, with what to type instead. Flags that work badly together
are advice (advice/advice.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from training_cluster.problems import Contradiction
from training_cluster.rules.account import ACCOUNT_RULES
from training_cluster.rules.cluster import CLUSTER_RULES
from training_cluster.rules.compute import COMPUTE_RULES, size_is_of_the_family
from training_cluster.rules.image import IMAGE_RULES
from training_cluster.rules.monitoring import MONITORING_RULES
from training_cluster.rules.network import NETWORK_RULES
from training_cluster.rules.queues import QUEUE_RULES
from training_cluster.rules.storage import STORAGE_RULES
from training_cluster.rules.tuning import TUNING_RULES

if TYPE_CHECKING:
    from training_cluster.flags.settings import Settings

Rule = Callable[["Settings"], Iterator[Contradiction]]
_RULES: tuple[Rule, ...] = (
    *NETWORK_RULES,
    *STORAGE_RULES,
    *IMAGE_RULES,
    *COMPUTE_RULES,
    *QUEUE_RULES,
    *CLUSTER_RULES,
    *TUNING_RULES,
    *MONITORING_RULES,
    *ACCOUNT_RULES,
)


def contradictions(settings: Settings) -> list[Contradiction]:
    """Return all contradictions between the flags."""
    found = list(size_is_of_the_family(settings))
    # The other rules need the facts of the size.
    return found or [each for rule in _RULES for each in rule(settings)]
