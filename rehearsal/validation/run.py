"""The matrix: every case is checked by our flags and by the library on a deployed foundation."""

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from rich.progress import Progress

from ops.pcluster.dry_run import Message
from rehearsal.account import local_account
from rehearsal.narrator import Narrator
from rehearsal.pcluster_process import PclusterProcess
from rehearsal.problems import RehearsalError
from rehearsal.validation.cases import Case, all_cases
from rehearsal.validation.foundation import SITES, Foundation, Site, deploy
from rehearsal.validation.slurm import refused_settings
from rehearsal.validation.verdicts import (
    Judged,
    Verdict,
    render_matrix,
    render_reasons,
    render_unexpected,
    render_warnings,
)
from rehearsal.workspace import Workspace
from training_cluster.cluster.config import render_cluster_config
from training_cluster.flags.settings import Settings
from training_cluster.pcluster.check import checked_config
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

_JUDGE = Path(__file__).with_name("judge.py")


def judge(case: Case, *, foundation: Foundation, library: PclusterProcess) -> Judged:
    """Check one case with our flags and with the library, which keeps AWS's answers between cases.

    Raises RehearsalError if the library's process ended, or did not answer.
    """
    flags = foundation.flags(case)
    refusal = None
    try:
        checked = read_settings(flags)
        checked_config(checked)
    except ConfigurationError as error:
        refusal = str(error)
    # Rendered without our rules between flags, to see whether the library refuses it as well.
    settings = Settings(**flags)  # type: ignore[arg-type]  # pydantic parses text
    config = render_cluster_config(settings=settings, ids=foundation.ids(settings))
    cluster_name = f"m{settings.cluster_name}"[:60]
    answer = library.ask({"cluster_name": cluster_name, "config": config})
    if answer["refusal"]:
        raise RehearsalError(f"{case.name}: {answer['refusal']}")
    findings = tuple(Message(**each) for each in answer["messages"])
    return Judged(case=case, refusal=refusal, findings=findings, config=config)


def validate(workspace: Workspace, narrator: Narrator) -> None:
    """Check all cases, print the matrix, and start slurmctld with the settings of the accepted configs.

    Raises:
        RehearsalError: our flags and the library differ somewhere, or slurmctld does not start.
    """
    workspace.make_anew()
    cases, judged = list(all_cases()), dict[str, Judged]()
    for site in SITES:
        with ExitStack() as running:
            folder = workspace.aws / site.region
            folder.mkdir()
            with narrator.step(f"Deploy in {site.zone}", "Network, storage, accounting and a cluster."):
                environment, foundation = _deploy(site, folder, workspace, narrator, running)
            here = [each for each in cases if each.name not in judged and foundation.suits(each)]
            explanation = f"{len(here)} combinations are checked by our flags and by the real library."
            log = workspace.logs / f"library-{site.region}.log"
            with narrator.step(f"Validate in {site.zone}", explanation):
                library = running.enter_context(PclusterProcess(_JUDGE, environment=environment, log=log))
                with Progress(console=narrator.console, transient=True) as progress:
                    for case in progress.track(here, description="   checking"):
                        judged[case.name] = judge(case, foundation=foundation, library=library)
    nobody = [Judged(case=case, refusal=None, findings=None) for case in cases]
    accepted = [(name, each.config) for name, each in judged.items() if each.verdict is Verdict.BOTH_TAKE]
    with narrator.step("slurm.conf", "A real slurmctld starts with each distinct set of settings."):
        refused = refused_settings(accepted, narrator.say)
    report([judged.get(each.case.name, each) for each in nobody], narrator)
    if refused:
        raise RehearsalError("slurmctld does not start:\n" + "\n".join(refused))


def _deploy(
    site: Site, folder: Path, workspace: Workspace, narrator: Narrator, running: ExitStack
) -> tuple[dict[str, str], Foundation]:
    """Start a local AWS and deploy on it; return the environment of its clients, and its foundation."""
    account = running.enter_context(
        local_account(
            folder, marker=workspace.marker, narrator=narrator, region=site.region, logs=workspace.logs
        )
    )
    deploy(account.cdk, site, folder / "cdk.out")
    return account.environment, Foundation(account.address, site.zone)


def report(judged: list[Judged], narrator: Narrator) -> None:
    """Print tables, warnings and unexpected results. Raises RehearsalError: a result is unexpected."""
    unexpected = [each for each in judged if not each.verdict.is_expected]
    lines = ["", *render_matrix(judged), "", *render_reasons(judged), ""]
    lines += ["Warnings of the library about combinations that both accept:"]
    lines += [f"  {line}" for line in render_warnings(judged) or ["none"]]
    lines += ["", *render_unexpected(judged)]
    for line in lines:
        narrator.console.print(line, markup=False)
    counts = Counter(each.verdict for each in judged)
    summary = (
        f"{len(judged)} combinations: {counts[Verdict.BOTH_TAKE]} accepted by both (ok), "
        f"{counts[Verdict.BOTH_REFUSE]} refused by both (no), "
        f"{counts[Verdict.WE_REFUSE_FOR_A_REASON]} refused by us for a reason (ours), "
        f"{counts[Verdict.NOT_TRIED]} not checked (-), {len(unexpected)} unexpected"
    )
    if unexpected:
        raise RehearsalError(summary)
    narrator.console.print(summary, markup=False)
