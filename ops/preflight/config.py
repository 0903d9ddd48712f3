"""Checks the cluster config of a deploy with ParallelCluster's schema, rules and validators."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ops.account.deploy_command import stacks_command
from ops.account.session import ClientOf
from ops.pcluster.dry_run import DryRun, account_environment, dry_run, errors_without_aws
from ops.preflight.config_ids import known_ids, without_future_resources
from ops.preflight.existing_network import ExistingNetwork
from ops.preflight.finding import Finding, Verdict
from training_cluster.cluster.config import render_cluster_config
from training_cluster.flags.settings import Settings
from training_cluster.pcluster.check import checked_config
from training_cluster.problems import ConfigurationError
from training_cluster.stack_names import ACCOUNTING_STACK, NETWORK_STACK, STACK_IDS, STORAGE_STACK

_VERDICTS: Mapping[str, Verdict] = {"ERROR": "problem", "WARNING": "warning", "INFO": "ok"}
_CHECK = "cluster config: ParallelCluster's validators"
_VALIDATORS_OF_OMITTED_KEYS = {"KeyPairValidator"}
"""Validators that report keys which a first deploy fills just before the cluster (config_ids.py)."""
_UNANSWERED = ("is not authorized to perform", "rate exceeded", "request limit exceeded", "endpoint url")
"""Parts of AWS's errors that a validator's own request met: a deploy's provider may have the permission."""
Judge = Callable[[str, Mapping[str, Any]], DryRun]


def check_config(settings: Settings) -> Iterator[Finding]:
    """Check schema and rules, like `cdk synth`, and overrides by the validators that need no resources."""
    check = "cluster config: schema and rules"
    try:
        config = checked_config(settings)
    except ConfigurationError as error:
        mend = "correct the file or the flag that it names"
        yield Finding(check=check, found=str(error), verdict="problem", mend=mend)
        return
    yield Finding(check=check, found="accepted")
    for each in errors_without_aws(config) if settings.overrides else ():
        check, mend = f"ParallelCluster: {each.validator}", f"correct {settings.overrides}"
        yield Finding(check=check, found=each.text, verdict="problem", mend=mend)


def ask_library(cluster_name: str, config: Mapping[str, Any]) -> DryRun:
    """Run the real library with the caller's own credentials."""
    return dry_run(cluster_name, config, environment=account_environment())


def check_validators(
    settings: Settings, existing: ExistingNetwork, client: ClientOf, judge: Judge = ask_library
) -> Iterator[Finding]:
    """Run the real validators, which need existing ids and so an existing network and storage."""
    wanted = [NETWORK_STACK, STORAGE_STACK, *([ACCOUNTING_STACK] if settings.accounting == "new" else [])]
    missing = [STACK_IDS[name] for name in wanted if not existing.has(name)]
    if missing:
        yield Finding(
            check=_CHECK,
            found=f"not checked: they need existing ids, and there is no {', no '.join(missing)} yet",
            verdict="warning",
            mend=f"{stacks_command(missing, settings)}, then trainctl preflight --dry-run",
        )
        return
    ids = known_ids(settings, existing, client)
    config = render_cluster_config(settings=settings, ids=ids)
    is_new = not existing.has(settings.stack_name)
    config = without_future_resources(config, settings, is_new=is_new)
    yield from _findings(judge(settings.cluster_name, config), settings)


def _findings(said: DryRun, settings: Settings) -> Iterator[Finding]:
    if said.refusal:
        mend = (
            f"trainctl status --cluster {settings.cluster_name}; when nothing is in progress, preflight again"
        )
        yield Finding(check=_CHECK, found=f"not checked: {said.refusal}", verdict="warning", mend=mend)
        return
    messages = [
        each for each in said.messages if said.exists or each.validator not in _VALIDATORS_OF_OMITTED_KEYS
    ]
    for each in messages:
        is_unanswered = any(words in each.text.lower() for words in _UNANSWERED)
        verdict = "warning" if is_unanswered else _VERDICTS.get(each.level, "warning")
        mend = "other flags (docs/flags.md): a deploy would be refused, too" if verdict == "problem" else ""
        yield Finding(
            check=f"ParallelCluster: {each.validator}",
            found=f"not checked: {each.text}" if is_unanswered else each.text,
            verdict=verdict,
            mend=mend,
        )
    for parameter, why in said.refused_changes.items():
        yield Finding(
            check=f"ParallelCluster: {parameter}",
            found=why,
            verdict="warning",
            mend=f"trainctl plan -c cluster_name={settings.cluster_name} ... shows the effect of a deploy",
        )
    if not messages and not said.refused_changes:
        tried = "an update of the cluster" if said.exists else "a new cluster"
        yield Finding(check=_CHECK, found=f"accept {tried}")
