"""The result of an import as text."""

import os
import shlex
from collections.abc import Iterator

from ops.importing.command import Imported
from training_cluster.paths import ROOT
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
    for title, sentences in (
        ("Lost", found.lost),
        ("Wider than before", found.wider),
        ("Narrower than before", found.narrower),
        ("Replaced", found.replaced),
        ("Moved, with the same effect", found.moved),
        ("To complete", found.fill),
    ):
        if sentences:
            yield f"\n{title}, {len(sentences)}:"
            yield from (f"  {each}" for each in sentences)
    if found.is_equal:
        yield "\nLost: nothing. Keys that only ours has are the app's."
    region = f"AWS_REGION={found.region} " if found.region else ""
    flags = os.path.relpath(found.files[0].resolve(), ROOT)
    yield f"\nNext: {region}trainctl preflight -c {shlex.quote(f'flags={flags}')}"
