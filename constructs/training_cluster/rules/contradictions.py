"""All rules between flags: combinations that AWS or ParallelCluster would refuse during a deploy.

Each rule is a function that yields contradictions, with what to type instead. Flags that work badly together
are advice (advice/advice.py).
"""

from collections.abc import Callable, Iterator

from training_cluster.catalog.families import load_base
from training_cluster.flags.settings import Settings
from training_cluster.problems import Contradiction
from training_cluster.rules.cluster import CLUSTER_RULES
from training_cluster.rules.compute import COMPUTE_RULES, size_is_of_the_family
from training_cluster.rules.image import IMAGE_RULES
from training_cluster.rules.network import NETWORK_RULES
from training_cluster.rules.queues import QUEUE_RULES
from training_cluster.rules.storage import STORAGE_RULES


def _os_has_the_packages(settings: Settings) -> Iterator[Contradiction]:
    if settings.metrics != "cloudwatch" and settings.os_name == "alinux2023":
        yield Contradiction(
            problem=f"metrics={settings.metrics} with os=alinux2023: no repository of Amazon Linux 2023 "
            "is known to have Prometheus and node_exporter, Ubuntu's have",
            mend=f"-c metrics={settings.metrics} -c os=ubuntu2204, or -c metrics=cloudwatch",
        )


def _workspace_is_for_amp(settings: Settings) -> Iterator[Contradiction]:
    if settings.metrics == "amp" and not settings.metrics_workspace:
        yield Contradiction(
            problem="metrics=amp: metrics_workspace, which gets the metrics, is missing",
            mend="-c metrics=amp -c metrics_workspace=ARN; to create one: aws amp create-workspace",
        )
    if settings.metrics_workspace and settings.metrics != "amp":
        yield Contradiction(
            problem=f"metrics_workspace with metrics={settings.metrics}, which sends nothing there",
            mend="-c metrics=amp, or leave metrics_workspace out",
        )


def _webhook_has_alerts(settings: Settings) -> Iterator[Contradiction]:
    if settings.alert_webhook_secret and settings.metrics == "cloudwatch":
        yield Contradiction(
            problem="alert_webhook_secret with metrics=cloudwatch, whose alarms go only to alarm_email",
            mend="-c metrics=prometheus, or leave alert_webhook_secret out",
        )


def _root_volume_holds_the_image(settings: Settings) -> Iterator[Contradiction]:
    given, recipe = settings.compute_root_gib, settings.family_facts.image_recipe
    least = load_base().image_recipes[recipe].root_gib
    if given and settings.node_image == "build" and given < least:
        yield Contradiction(
            problem=f"compute_root_gib={given}: the image that ImageStack builds has {least} GiB",
            mend=f"-c compute_root_gib={least}",
        )


def _budget_tells_somebody(settings: Settings) -> Iterator[Contradiction]:
    if settings.budget_usd and not settings.alarm_email:
        yield Contradiction(
            problem=f"budget_usd={settings.budget_usd}: alarm_email, which receives its emails, is missing",
            mend=f"-c budget_usd={settings.budget_usd} -c alarm_email=me@example.com",
        )


Rule = Callable[[Settings], Iterator[Contradiction]]
_RULES: tuple[Rule, ...] = (
    *NETWORK_RULES,
    *STORAGE_RULES,
    *IMAGE_RULES,
    *COMPUTE_RULES,
    *QUEUE_RULES,
    *CLUSTER_RULES,
    _root_volume_holds_the_image,
    _os_has_the_packages,
    _workspace_is_for_amp,
    _webhook_has_alerts,
    _budget_tells_somebody,
)


def contradictions(settings: Settings) -> list[Contradiction]:
    """Return all contradictions between the flags."""
    found = list(size_is_of_the_family(settings))
    # The other rules need the facts of the size.
    return found or [each for rule in _RULES for each in rule(settings)]
