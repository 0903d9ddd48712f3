"""`python -m tools.docs.families_page`: docs/families.md, generated from the catalog."""

from __future__ import annotations

from collections.abc import Iterator

from training_cluster.catalog.families import family_names, load_base, load_family
from training_cluster.catalog.family import FACTS, Family, Size

_HEAD = """\
# Instance families

`make docs` generates this page from `cluster_configs/`, and a test compares the two. Each family is one file;
to add a family, add `cluster_configs/NAME.yaml`, without any code. Select a family with `-c family=NAME`, and
another size of it with `-c instance_type=TYPE`. A `-` means that the value is unknown. Prices are those of
one on-demand node in us-east-1.

| family | accelerator | peak TFLOP/s | precision | image recipe | sold as | ParallelCluster | head node |
|---|---|---|---|---|---|---|---|
"""
_SIZES = """\
| size | accelerators | vCPUs | GiB | sockets x cores | cards | EFA | Gbps | NVMe GB | USD/h |
|---|---|---|---|---|---|---|---|---|---|
"""


def _shown(value: object) -> str:
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _family_row(family: Family) -> str:
    accelerator = family.accelerator
    cells = (
        f"[{family.name}](#{family.name})",
        accelerator.name,
        _shown(accelerator.peak_bf16_tflops),
        family.mixed_precision,
        family.image_recipe,
        ", ".join(family.capacity),
        f">= {family.pcluster_min_version}",
        family.head_node_type,
    )
    return f"| {' | '.join(cells)} |"


def _size_row(instance_type: str, size: Size) -> str:
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
    return f"| {' | '.join(_shown(cell) for cell in cells)} |"


def _details(family: Family) -> Iterator[str]:
    yield f"\n## {family.name}\n\n{_SIZES}" + "\n".join(_size_row(*each) for each in family.sizes.items())
    zones = "; ".join(
        f"{region}: {', '.join(ids) or 'zones not known'}" for region, ids in family.zones.items()
    )
    where = (
        f"Zones known to have it: {zones}" if zones else "Most regions have it; its zones are not listed here"
    )
    yield f"\n{where}. Prices of {family.price_date}."
    if family.notice:
        yield f"\n{family.notice}"
    base = load_base()
    common = base.efa_environment if any(size.efa_interfaces for size in family.sizes.values()) else ()
    for variable in (*common, *family.job_environment):
        yield f"\n`{variable.name}={variable.value}` ({variable.since}): {variable.reason}"
    for floor in family.nccl_floors:
        yield (
            f"\nNCCL all_reduce on {floor.nodes} nodes, {floor.message_gib:g} GiB: at least "
            f"{floor.busbw_gb_per_s:g} GB/s bus bandwidth ({floor.source})"
        )
    yield "\n<details><summary>Where these facts are from</summary>\n"
    yield "\n".join(f"- {fact}: {base.source(family, fact)}" for fact in FACTS)
    yield "\n</details>"


def render_families_page() -> str:
    """Render docs/families.md."""
    families = [load_family(name) for name in family_names()]
    rows = "\n".join(_family_row(family) for family in families)
    details = "\n".join(line for family in families for line in _details(family))
    return f"{_HEAD}{rows}\n{details}\n"


if __name__ == "__main__":
    print(render_families_page(), end="")
