"""The contents of Neuron's cache of compiled graphs; as a program, a check that precompilation filled it.

A graph is a folder MODULE_<hash> below neuronxcc-<version>. It has the source as model.hlo... and, once it is
compiled, model.neff (AWS Neuron docs, Neuron Persistent Cache).
"""

from __future__ import annotations

import sys
from pathlib import Path


def graphs(cache: str) -> tuple[int, int] | None:
    """Count the compiled graphs of a cache, and the others; return None for a cache in S3."""
    if cache.startswith("s3://"):
        return None
    folders = [folder for folder in Path(cache).glob("neuronxcc-*/MODULE_*") if folder.is_dir()]
    compiled = sum((folder / "model.neff").is_file() for folder in folders)
    missing = sum(
        not (folder / "model.neff").is_file() and any(folder.glob("model.hlo*")) for folder in folders
    )
    return compiled, missing


def describe(cache: str) -> str:
    """Return a line about the cache for the start of a training."""
    found = graphs(cache)
    if found is None:
        return f"compiled graphs: in {cache}, not counted"
    compiled, _ = found
    if not compiled:
        return (
            f"compiled graphs: none in {cache}, so all ranks wait in the first steps, for about "
            "40 minutes, until they are compiled; to do that beforehand, submit a job with PRECOMPILE=1 and "
            "the same settings and nodes"
        )
    return (
        f"compiled graphs: {compiled} in {cache}; graphs of other settings or another number of ranks "
        "are compiled again"
    )


def main() -> int:
    """Check the cache after a precompilation; return 1 if it has no compiled graph."""
    cache = sys.argv[1]
    found = graphs(cache)
    if found is None:
        print(describe(cache))
        return 0
    compiled, missing = found
    if not compiled:
        print(
            f"PRECOMPILE: no graph was compiled into {cache}: see the compiler's lines above.",
            file=sys.stderr,
        )
        return 1
    print(f"precompiled: {compiled} graphs in {cache}")
    if missing:
        print(f"precompiled: {missing} graphs of this job or an earlier one are not compiled")
    return 0


if __name__ == "__main__":
    sys.exit(main())
