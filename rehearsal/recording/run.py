"""Recording of clusters that the provider creates on local AWSs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rehearsal.local_aws.process import LocalAws
from rehearsal.problems import RehearsalError
from rehearsal.recording.plain_foundation import PlainFoundation
from rehearsal.recording.provider import Provider
from rehearsal.recording.recording import Recording
from rehearsal.validation.cases import OS_NAMES, SECRET, Case, all_cases
from rehearsal.validation.foundation import SITES, Site
from training_cluster.catalog.families import family_names, load_family
from training_cluster.overrides.file import read_overrides
from training_cluster.overrides.storage import managed_storage
from training_cluster.problems import ConfigurationError

MARKER = "TRAINING_CLUSTER_RECORDING"
_POLL_S = 0.5
_TIMEOUT_S = 120

# Flags of one cluster with its whole lifetime, which the library also examines after the creation.
_EVERYTHING = {
    "cpu_queue": "on",
    "login_nodes": "1",
    "accounting": "db.example.com",
    "accounting_secret": SECRET,
}
# A plain update; and one that requires a stopped fleet, and so uses the fleet's table.
_UPDATES = ({"nodes": "3"}, {"nodes": "3", "capacity": "spot"})


def record(folder: Path) -> Recording:
    """Record all clusters, on all sites in parallel.

    Args:
        folder: takes all files of the local AWSs and the library.

    Raises:
        RehearsalError: an operation on a cluster failed, or no site has a family or feature.
    """
    cases = [case for case in all_cases() if case.table == "feature" and case.os_name == OS_NAMES[0]]
    features = [case for case in cases if not _makes_storage(case)]
    remaining, whole = _Remaining(features), Recording()
    with ThreadPoolExecutor(len(SITES)) as threads:
        sites = [threads.submit(_record, site, folder / site.region, remaining, whole) for site in SITES]
        for each in sites:
            each.result()
    wanted = {case.row for case in features} | set(family_names())
    if nowhere := wanted - whole.made - set(whole.refused):
        raise RehearsalError(f"No site has {', '.join(sorted(nowhere))}: rehearsal/validation/foundation.py")
    return whole


def _makes_storage(case: Case) -> bool:
    """Return True for storage that ParallelCluster makes, whose rights are in permissions/overrides.py."""
    file = case.flags.get("overrides")
    return file is not None and any(managed_storage(read_overrides(file).content))


class _Remaining:
    """The cases that no site has taken yet."""

    def __init__(self, cases: Iterable[Case]) -> None:
        self._cases, self._lock = list(cases), threading.Lock()

    def taken_by(self, foundation: PlainFoundation) -> Iterator[Case]:
        """Yield the cases that fit a site, one by one, until there are no more."""
        while True:
            with self._lock:
                case = next((each for each in self._cases if foundation.suits(each)), None)
                if case is None:
                    return
                self._cases.remove(case)
            yield case


def _record(site: Site, folder: Path, remaining: _Remaining, whole: Recording) -> None:
    """Record at one site: at the last one a cluster's lifetime, then the remaining families and features."""
    with ExitStack() as running:
        foundation, provider = _start(site, folder, running)
        if site is SITES[-1]:
            _live(foundation, provider)
        families = [case for case in _families(foundation) if case.row not in whole.made]
        _make_templates(families, foundation, provider, whole)
        for case in remaining.taken_by(foundation):
            _make_templates([case], foundation, provider, whole)
        whole.add(Recording(calls=provider.calls))


def _families(foundation: PlainFoundation) -> list[Case]:
    """Return a case for every family at this site, and for every capacity type, once."""
    chosen: dict[str, Case] = {}
    for case in all_cases():
        sold = case.table == "family" and case.column in load_family(case.row).capacity
        if sold and case.os_name == OS_NAMES[0] and foundation.suits(case):
            chosen.setdefault(case.row, case)
            chosen.setdefault(case.column, case)
    return list({case.name: case for case in chosen.values()}.values())


def _start(site: Site, folder: Path, running: ExitStack) -> tuple[PlainFoundation, Provider]:
    folder.mkdir(parents=True)
    address = running.enter_context(LocalAws(folder=folder, marker=(MARKER, str(folder)), region=site.region))
    foundation = PlainFoundation(address, site.zone)
    provider = Provider(environment=foundation.provider_environment, log=folder / "provider.log")
    return foundation, running.enter_context(provider)


def _make_templates(
    cases: Sequence[Case], foundation: PlainFoundation, provider: Provider, recording: Recording
) -> None:
    """Create one cluster for these cases, without its stack. Raises RehearsalError if the library refuses."""
    names = {case.row for case in cases}
    try:
        event = foundation.event("Create", *cases)
    except ConfigurationError as error:
        recording.refused |= dict.fromkeys(names, str(error))
        return
    checked = provider.call("on_event", event)
    tried = checked if checked.error else provider.call("is_complete", event, pretend="no-stack")
    if not tried.types:
        raise RehearsalError(f"{', '.join(sorted(names))}: {tried.error or 'no template was uploaded'}")
    recording.add(Recording(made=names, types=tried.types))


def _live(foundation: PlainFoundation, provider: Provider) -> None:
    """Create, update, fail and delete one cluster, each to its end."""
    for kind, flags in (("Create", {}), *(("Update", each) for each in _UPDATES), ("Delete", {})):
        case = Case(table="feature", row="life", column="", os_name="", flags=_EVERYTHING | flags)
        event = foundation.event(kind, case)
        begun = provider.call("on_event", event)
        if begun.error:
            raise RehearsalError(f"{kind} {flags}: {begun.error}")
        if kind == "Delete":  # pretends a failed cluster, whose logs are saved first
            provider.call("is_complete", event | begun.answer, pretend="failed")
        ended = _wait(provider, event | begun.answer)
        if kind == "Create":
            node = ended["Data"]["HeadNodeInstanceId"]
            foundation.write_head_node_log(begun.answer["PhysicalResourceId"], node)


def _wait(provider: Provider, event: dict[str, Any]) -> dict[str, Any]:
    """Poll as CDK's framework does; return the last answer."""
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        said = provider.call("is_complete", event)
        if said.error or time.monotonic() > deadline:
            raise RehearsalError(f"{event['RequestType']}: {said.error or 'did not end in time'}")
        if said.answer["IsComplete"]:
            return said.answer
        time.sleep(_POLL_S)
