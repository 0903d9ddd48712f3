"""Runs the matrix: deploys a foundation, asks both sides about every case, prints, judges."""

from __future__ import annotations

from contextlib import ExitStack

from rich.progress import Progress

from rehearsal.cdk import CdkCli
from rehearsal.local_aws.process import LocalAws, LocalAwsParts
from rehearsal.narrator import Narrator
from rehearsal.problems import RehearsalError
from rehearsal.validation.cases import Case, all_cases
from rehearsal.validation.foundation import Foundation, deploy
from rehearsal.validation.library import Library
from rehearsal.validation.verdicts import (
    Judged,
    Verdict,
    render_matrix,
    render_unexpected,
    render_warnings,
)
from rehearsal.workspace import PROJECT, Workspace
from training_cluster.cluster_config import render_cluster_config
from training_cluster.config_check import check_settings
from training_cluster.problems import ConfigurationError
from training_cluster.settings import Settings


def judge(case: Case, *, foundation: Foundation, library: Library) -> Judged:
    """Ask our flags and the library about one case."""
    flags = foundation.flags(case)
    refusal = None
    try:
        check_settings(Settings.from_context(flags))
    except ConfigurationError as error:
        refusal = str(error)
    # Rendered all the same, without our rules between flags: would the library refuse it, too?
    settings = Settings(**flags)  # type: ignore[arg-type]  # pydantic parses text
    config = render_cluster_config(settings=settings, ids=foundation.ids(settings))
    findings = library.judge(name=case.name, cluster_name=f"m{settings.cluster_name}"[:60], config=config)
    return Judged(case=case, refusal=refusal, findings=tuple(findings))


def validate(workspace: Workspace, narrator: Narrator) -> None:
    """Print the whole matrix.

    Raises:
        RehearsalError: our flags and the library differ somewhere.
    """
    workspace.make_anew()
    with ExitStack() as running:
        parts = LocalAwsParts(
            lambda_python=PROJECT / ".venv-pcluster" / "bin" / "python", node_modules=PROJECT / "node_modules"
        )
        local_aws = LocalAws(folder=workspace.aws, parts=parts, marker=workspace.marker)
        with narrator.step(
            "Deploy", "Network, storage, accounting and a cluster on a local AWS to stand on."
        ):
            running.callback(local_aws.stop)
            address = local_aws.start()
            environment = address.client_environment() | dict([workspace.marker])
            deploy(
                CdkCli(project=PROJECT, environment=environment, logs=workspace.logs, narrator=narrator),
                workspace,
            )
        foundation = Foundation(address)
        cases = list(all_cases())
        with narrator.step("Validate", f"{len(cases)} combinations go to our flags and to the real library."):
            library = running.enter_context(
                Library(environment=environment, log=workspace.logs / "library.log")
            )
            judged = []
            with Progress(console=narrator.console, transient=True) as progress:
                for case in progress.track(cases, description="   judging"):
                    judged.append(judge(case, foundation=foundation, library=library))
    report(judged, narrator)


def report(judged: list[Judged], narrator: Narrator) -> None:
    """Print tables, warnings and what was not expected.

    Raises:
        RehearsalError: something was not expected.
    """
    unexpected = [each for each in judged if not each.verdict.is_expected]
    lines = ["", *render_matrix(judged), "", "What the library warns of where both take it:"]
    lines += [f"  {line}" for line in render_warnings(judged)] or ["  nothing"]
    lines += ["", *render_unexpected(judged)]
    for line in lines:
        narrator.console.print(line, markup=False)
    taken = sum(each.verdict is Verdict.BOTH_TAKE for each in judged)
    refused = sum(each.verdict is Verdict.BOTH_REFUSE for each in judged)
    summary = (
        f"{len(judged)} combinations: {taken} that both take (ok), {refused} that both refuse (no), "
        f"{len(unexpected)} unexpected"
    )
    if unexpected:
        raise RehearsalError(summary)
    narrator.console.print(summary, markup=False)
