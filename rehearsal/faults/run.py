"""`make faults`: every case on local AWSs, in parallel, with a table; it can be interrupted and resumed."""

import queue
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from rehearsal.account import local_account
from rehearsal.faults import first_deploy, safe_ways, whole_stacks
from rehearsal.faults.assemblies import Assemblies
from rehearsal.faults.cases import REQUESTS, Case, call_cases, interleaved, sample
from rehearsal.faults.verdict import Results, Verdict, raised, summary
from rehearsal.faults.worker import Site, deployed_site, driver
from rehearsal.local_aws.rights.denied import denied_calls
from rehearsal.narrator import Narrator
from rehearsal.pcluster_process import PclusterProcess, ProcessEndedError
from rehearsal.problems import RehearsalError
from rehearsal.workspace import Workspace

RESULTS = "faults.jsonl"
_FEW = 8
"""Number of cases that one worker tries while a second one would deploy the app."""
_ALONE_CASES = [*first_deploy.CASES, *safe_ways.CASES]
_STEPS = {
    "site": ("Local AWS", "The whole app is deployed; its cluster is a bystander that no case may change."),
    "try": ("Faults", "Each case injects a fault; the next deploy or destroy runs without one."),
}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The choice of cases.

    Args:
        size: number of cases, plus one of whole stacks; 0 for all.
        seed: seed of the random choice.
        everywhere: True for each kind of fault at the first, a middle and the last call of a name.
        only: words, one of which must be in a case's name; empty for all.
    """

    size: int = 0
    seed: int = 1
    only: tuple[str, ...] = ()
    everywhere: bool = False


class _Table:
    """The printed and stored verdicts, shared by the workers."""

    def __init__(self, results: Results, narrator: Narrator) -> None:
        self._results, self._narrator, self._lock = results, narrator, threading.Lock()
        self.verdicts: dict[str, Verdict] = {}
        self.total = 0

    def add(self, verdict: Verdict) -> None:
        with self._lock:
            self.verdicts[verdict.id] = verdict
            self._results.add(verdict)
            row = verdict.row(len(self.verdicts), self.total)
            self._narrator.console.print(row, markup=False, style=None if verdict.is_good else "red")


def run_faults(workspace: Workspace, narrator: Narrator, plan: Plan) -> None:
    """Run all cases of the plan that have no result yet.

    Raises:
        RehearsalError: something is stuck, left behind or lost, or a case could not run.
    """
    workspace.make_anew()
    table = _Table(Results(workspace.root / RESULTS), narrator)
    known = Results(workspace.root / RESULTS).read()
    todo: queue.SimpleQueue[Case] = queue.SimpleQueue()
    with ExitStack() as running:
        with narrator.step(*_STEPS["site"]):
            assemblies = Assemblies(workspace.aws / "assemblies", narrator)
            first = _site(0, workspace, narrator, assemblies, running)
        with narrator.step(*_STEPS["try"]):
            known_cases = _cases(first[1], plan)
            cases = [
                case for case in known_cases if not plan.only or any(word in case.id for word in plan.only)
            ]
            if len(cases) < len(known_cases):
                narrator.say(f"{len(cases)} of {len(known_cases)} cases")
            if not cases:
                raise RehearsalError(f"ONLY={' '.join(plan.only)}: no case's name contains it.")
            table.total = len(cases)
            table.verdicts = {case.id: known[case.id] for case in cases if case.id in known}
            if table.verdicts:
                narrator.say(
                    f"{len(table.verdicts)} of {len(cases)} have results of an earlier run with this code"
                )
            for case in cases:
                if case.id not in table.verdicts:
                    todo.put(case)
            work = partial(_work, todo=todo, table=table, workspace=workspace, narrator=narrator)
            jobs: list[Callable[[], None]] = [lambda: work(*first)]
            if todo.qsize() > _FEW:
                jobs.append(lambda: work(*_site(1, workspace, narrator, assemblies, running)))
            _side_by_side(jobs)
    _report(table, narrator)


def _site(
    number: int, workspace: Workspace, narrator: Narrator, assemblies: Assemblies, running: ExitStack
) -> tuple[Site, PclusterProcess]:
    folder = workspace.aws / f"worker-{number}"
    site = running.enter_context(deployed_site(folder, workspace.marker, assemblies, narrator))
    return site, running.enter_context(driver(site, workspace.logs / f"driver-{number}.log"))


def _cases(process: PclusterProcess, plan: Plan) -> list[Case]:
    names = process.ask({"id": "names"})["named"]
    named = [Case(id=name, question={"id": name, "named": name}) for name in names]
    by_request = {}
    for request in REQUESTS:  # in the order in which each finds the stack that it needs
        calls = process.ask({"id": f"{request}, nothing wrong", "request": request})["calls"]
        by_request[request] = call_cases(request, calls, everywhere=plan.everywhere)
    cases = [*_ALONE_CASES, *whole_stacks.CASES, *named, *interleaved(by_request)]
    if plan.size:
        share = plan.size // (len(REQUESTS) + 1)
        part = {request: sample(by_request[request], share, plan.seed) for request in REQUESTS}
        whole = sample([*_ALONE_CASES, *whole_stacks.CASES], 1, plan.seed)
        cases = [*whole, *sample(named, share, plan.seed), *interleaved(part)]
    return cases


def _work(
    site: Site,
    process: PclusterProcess,
    *,
    todo: queue.SimpleQueue[Case],
    table: _Table,
    workspace: Workspace,
    narrator: Narrator,
) -> None:
    while True:
        try:
            case = todo.get_nowait()
        except queue.Empty:
            return
        try:
            if case in _ALONE_CASES:
                verdict = _try_alone(case, workspace, site.assemblies, narrator)
            else:
                verdict = _try_out(case, site, process)
        except ProcessEndedError as error:  # this worker can try no further case
            table.add(raised(case, error))
            raise
        except Exception as error:  # a failed case, and not the end of the run
            verdict = raised(case, error)
        table.add(verdict)


def _try_alone(case: Case, workspace: Workspace, assemblies: Assemblies, narrator: Narrator) -> Verdict:
    """Try a case of a first deploy, or of a change for all clusters, on a local AWS of its own."""
    try_ = first_deploy.try_first_deploy if "first" in case.question else safe_ways.try_safe_way
    folder, started = workspace.aws / re.sub(r"\W+", "-", case.id), time.monotonic()
    with local_account(folder, marker=workspace.marker, narrator=narrator) as account:
        verdict = try_(case, account, assemblies)
        denied = denied_calls(account.address)
    return replace(verdict, seconds=round(time.monotonic() - started, 1), denied=denied)


def _try_out(case: Case, site: Site, process: PclusterProcess) -> Verdict:
    denied_before = len(denied_calls(site.address))
    if "whole" in case.question:
        verdict = whole_stacks.try_out(case, site, process)
    else:
        answer = process.ask(case.question)
        answer.pop("calls")
        verdict = Verdict(**answer)
    return replace(verdict, denied=denied_calls(site.address)[denied_before:])


def _side_by_side(jobs: Sequence[Callable[[], None]]) -> None:
    """Run jobs in parallel; unlike in a pool, Ctrl-C does not wait for the others."""
    errors: list[BaseException] = []

    def guarded(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def _report(table: _Table, narrator: Narrator) -> None:
    verdicts = list(table.verdicts.values())
    ends = Counter((each.request, each.ended) for each in verdicts)
    for (request, ended), count in sorted(ends.items()):
        narrator.console.print(f"  {request:7} {ended:26} {count:4}")
    missed = [each.id for each in verdicts if not each.fired]
    if missed:
        narrator.console.print(f"  not reached, not counted: {len(missed)}: {'; '.join(missed[:5])} ...")
    narrator.console.print(summary(verdicts), markup=False)
    if any(not each.is_good for each in verdicts):
        raise RehearsalError("Something is stuck, left behind, lost, or denied: see the rows above.")
