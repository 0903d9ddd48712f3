"""Creation of clusters by the real provider and library on a local AWS: their calls, memory and time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.measuring.timing import BaselineError
from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.local_aws.process import LocalAws
from rehearsal.processes import descendants
from rehearsal.recording.plain_foundation import PlainFoundation
from rehearsal.recording.provider import Provider
from rehearsal.validation.cases import Case
from rehearsal.validation.foundation import SITES

MARKER = "TRAINING_CLUSTER_BENCH"
"""Environment variable of every process that a benchmark starts."""
_SAMPLE_S = 0.1
_RECORDER = "recording/recorder.py"


@dataclass(frozen=True, kw_only=True)
class Created:
    """One cluster, up to the point where its stack would be created."""

    calls: int
    """Number of requests that the local AWS received."""
    peak_mib: float
    """Resident memory of the provider's process and its children, together."""
    seconds: float
    """Time of checking the config and of making the templates."""


def case(*, family: str, nodes: int = 2) -> Case:
    """Return a cluster of one queue, with a name that no deployed cluster has."""
    flags = {"family": family, "nodes": str(nodes), "cluster_name": "bench"}
    return Case(table="family", row=family, column="", os_name="", flags=flags)


def create_each(wanted: Sequence[Sequence[Case]], *, folder: Path) -> list[Created]:
    """Create clusters on a separate local AWS, which nothing else calls in the meantime.

    Args:
        wanted: for each cluster, the cases that `create` takes.
        folder: is created, and takes all files of the local AWS.

    Raises:
        RehearsalError: the local AWS does not start.
        BaselineError: the library refused a cluster.
    """
    folder.mkdir()
    site = SITES[0]
    with LocalAws(folder=folder, marker=(MARKER, str(folder)), region=site.region) as address:
        foundation = PlainFoundation(address, site.zone)
        return [create(cases, foundation=foundation, address=address, folder=folder) for cases in wanted]


def create(
    cases: Sequence[Case], *, foundation: PlainFoundation, address: LocalAwsAddress, folder: Path
) -> Created:
    """Have a fresh provider check a cluster and upload its templates, as Lambda would.

    Args:
        cases: the first gives the cluster, and each other one a further queue.
        folder: takes the provider's log.

    Raises:
        BaselineError: the library refused the cluster.
    """
    event = foundation.event("Create", *cases)
    environment = foundation.provider_environment
    before, began = count_calls(address), time.perf_counter()
    with (
        Provider(environment=environment, log=folder / f"provider-{len(cases)}.log") as provider,
        _peak() as peak,
    ):
        checked = provider.call("on_event", event)
        made = checked if checked.error else provider.call("is_complete", event, pretend="no-stack")
    if not made.types:
        raise BaselineError(f"{len(cases)} queues: {made.error or 'no template was uploaded'}")
    return Created(
        calls=count_calls(address) - before,
        peak_mib=max(peak) / 2**20,
        seconds=round(time.perf_counter() - began, 1),
    )


def count_calls(address: LocalAwsAddress) -> int:
    """Count the requests that the local AWS has received so far."""
    return len((address.folder / "requests.log").read_text(encoding="utf-8").splitlines())


@contextmanager
def _peak() -> Iterator[list[int]]:
    """Sample the bytes of the provider's running process and its children."""
    (provider,) = [each for each in psutil.Process().children() if _RECORDER in " ".join(each.cmdline())]
    samples, stop = [0], threading.Event()

    def watch() -> None:
        while not stop.wait(_SAMPLE_S):
            samples.append(sum(_resident(each) for each in [provider, *descendants(provider)]))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield samples
    finally:
        stop.set()
        watcher.join()


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:  # it has ended
        return 0
