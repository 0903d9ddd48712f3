"""Files of the bundle about metrics: settings of their store, and list prices of nodes. It imports no CDK."""

from training_cluster.catalog.families import head_node_size
from training_cluster.flags.monitoring import remote_write_url
from training_cluster.flags.settings import Settings
from training_cluster.stack_names import rules_topic


def render_metrics(settings: Settings) -> str:
    """Render the settings of assets/bootstrap/steps/85 to 88 as `export NAME=value` lines."""
    variables = {
        "METRICS": settings.metrics,
        "METRICS_WORKSPACE": remote_write_url(settings.metrics_workspace),
        "METRICS_TOPIC": rules_topic(settings.cluster_name) if settings.alarm_email else "",
        "METRICS_WEBHOOK_SECRET": settings.alert_webhook_secret or "",
        "METRICS_BUDGET_USD": settings.budget_usd or "",
    }
    return "".join(f"export {name}='{value}'\n" for name, value in variables.items())


def render_prices(settings: Settings) -> str:
    """Render lines of `PARTITION RESOURCE USD-AN-HOUR`, list prices on demand; the head node is `head -`.

    A resource of several instance types gets the price of the most expensive one. An unknown
    price counts as 0.
    """
    head = head_node_size(settings.head_type)
    found = {("head", "-"): (head.usd_per_hour or 0.0) if head else 0.0}
    for queue in settings.all_queues:
        for resource in queue.compute_resources:
            usd = [price for each in resource.types if (price := each.size.usd_per_hour) is not None]
            found[queue.name, resource.name] = max(usd, default=0.0)
    return "".join(f"{queue} {resource} {usd:g}\n" for (queue, resource), usd in found.items())
