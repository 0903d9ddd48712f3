"""The result of an import as text."""

import shlex
from collections.abc import Iterator

from ops.importing.command import Imported
from training_cluster.pcluster.config_diff import shown


def render_imported(found: Imported) -> str:
    """Render the files, what is lost, what to complete, the differences, and what to type next."""
    return "\n".join(_lines(found))


def _lines(found: Imported) -> Iterator[str]:
    yield f"Written: {', '.join(map(str, found.files))}"
    if found.changes:
        yield "\nKey by key, imported -> ours:"
        yield from (f"  {path}: {shown(old)} -> {shown(new)}" for path, old, new in found.changes)
    if found.problem:
        yield f"\nThis cannot be deployed yet:\n{found.problem}"
    if found.lost:
        yield f"\nLost, {len(found.lost)}:"
        yield from (f"  {each}" for each in found.lost)
    else:
        yield "\nLost: nothing."
    if found.replaced:
        yield "\nReplaced:"
        yield from (f"  {each}" for each in found.replaced)
    if found.fill:
        yield "\nTo complete:"
        yield from (f"  {each}" for each in found.fill)
    flags = " ".join(f"-c {shlex.quote(f'{name}={value}')}" for name, value in found.flags.items())
    region = f"AWS_REGION={found.region} " if found.region else ""
    yield f"\nNext: {region}trainctl preflight {flags}"
    yield f"or put the context of {found.files[0]} into cdk.json"
