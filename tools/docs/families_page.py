"""docs/families.md, generated from the catalog."""

from collections.abc import Iterable

from tools.docs.table import table
from training_cluster.catalog.families import family_names, load_family
from training_cluster.catalog.family import Family, Size

_HEAD = """\
# Instance families

`make docs` generates this page from `cluster_configs/`, and a test compares the two. Each family is one file;
to add a family, add `cluster_configs/NAME.yaml`, without any code. Select a family with `-c family=NAME`, and
another size of it with `-c instance_type=TYPE`. EC2's facts are in `cluster_configs/instance_types.tsv`. A
family's file has the sources of its own facts, the variables of its jobs with their reasons, and the
bandwidth that nccl-tests requires. A `-` means that a value is unknown. Prices are those of one on-demand
node in us-east-1, of {dates}.

"""
_FAMILY = "family|accelerator|peak TFLOP/s|precision|image recipe|sold as|ParallelCluster|head node"
_SIZE = "size|accelerators|vCPUs|GiB|sockets x cores|cards|EFA|Gbps|NVMe GB|USD/h"
_ZONES = """
## Zones

The zones that are known to have the main size of a family. Most regions have the others.

"""


def _shown(value: object) -> str:
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _family_row(family: Family) -> Iterable[str]:
    accelerator = family.accelerator
    return (
        family.name,
        accelerator.name,
        _shown(accelerator.peak_bf16_tflops),
        family.mixed_precision,
        family.image_recipe,
        ", ".join(family.capacity),
        f">= {family.pcluster_min_version}",
        family.head_node_type,
    )


def _size_row(instance_type: str, size: Size) -> Iterable[str]:
    sockets = f"{size.sockets} x {size.cores_per_socket}" if size.sockets else "-"
    price = "-" if size.usd_per_hour is None else f"{size.usd_per_hour:.2f}"
    counts = (
        size.accelerators,
        size.vcpus,
        size.memory_gib,
        sockets,
        size.network_cards,
        size.efa_interfaces,
    )
    cells = (instance_type, *counts, size.network_gbps, size.nvme_gb, price)
    return map(_shown, cells)


def _zones_row(family: Family) -> Iterable[str]:
    zones = "; ".join(f"{region}: {', '.join(ids)}" for region, ids in family.zones.items())
    return f'<a id="{family.name}"></a>{family.name}', zones


def render_families_page() -> str:
    """Render docs/families.md."""
    families = [load_family(name) for name in family_names()]
    dates = sorted({f"{family.price_date}" for family in families})
    sizes = (_size_row(*size) for family in families for size in family.sizes.items())
    zones = (_zones_row(family) for family in families if family.zones)
    page = _HEAD.format(dates=", ".join(dates)) + table(_FAMILY.split("|"), map(_family_row, families))
    page += "\n## Sizes\n\n" + table(_SIZE.split("|"), sizes)
    return page + _ZONES + table(("family", "zones"), zones)
