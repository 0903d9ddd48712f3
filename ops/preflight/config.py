"""The cluster config that a deploy would render, before ParallelCluster's schema, rules and validators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ops.account.session import ClientOf
from ops.pcluster.dry_run import DryRun, account_environment, dry_run
from ops.preflight.config_ids import known_ids, without_what_a_deploy_makes
from ops.preflight.finding import Finding, Verdict
from ops.preflight.place import Place
from training_cluster.cluster.config import render_cluster_config
from training_cluster.flags.settings import Settings
from training_cluster.pcluster.check import check_settings
from training_cluster.problems import ConfigurationError
from training_cluster.stack_names import ACCOUNTING_STACK, NETWORK_STACK, STACK_IDS, STORAGE_STACK

_VERDICTS: Mapping[str, Verdict] = {"ERROR": "problem", "WARNING": "warning", "INFO": "ok"}
_CHECK = "cluster config: ParallelCluster's validators"
_OF_WHAT_WE_LEFT_OUT = {"KeyPairValidator"}
"""Validators that miss what a first deploy makes just before the cluster (config_ids.py)."""
_UNANSWERED = ("is not authorized to perform", "rate exceeded", "request limit exceeded", "endpoint url")
"""AWS's words where a validator could not ask: the caller may not, the provider of a deploy may."""
Judge = Callable[[str, Mapping[str, Any]], DryRun]


def check_config(settings: Settings) -> Iterator[Finding]:
    """Schema and rules, offline: what `cdk synth` checks too."""
    check = "cluster config: schema and rules"
    try:
        check_settings(settings)
    except ConfigurationError as error:
        mend = f"cluster_configs/{settings.family}.yaml and base.yaml: mend them there"
        yield Finding(check=check, found=str(error), verdict="problem", mend=mend)
        return
    yield Finding(check=check, found="as ParallelCluster wants them")


def ask_library(cluster_name: str, config: Mapping[str, Any]) -> DryRun:
    """The real library, with the caller's own credentials."""
    return dry_run(cluster_name, config, environment=account_environment())


def check_validators(
    settings: Settings, place: Place, client: ClientOf, judge: Judge = ask_library
) -> Iterator[Finding]:
    """What the real validators say of the config; their ids must exist, so network and storage must."""
    wanted = [NETWORK_STACK, STORAGE_STACK, *([ACCOUNTING_STACK] if settings.accounting == "new" else [])]
    missing = [STACK_IDS[name] for name in wanted if not place.has(name)]
    if missing:
        yield Finding(
            check=_CHECK,
            found=f"not checked: they ask AWS for ids, and there is no {', no '.join(missing)} yet",
            verdict="warning",
            mend=f"npx cdk deploy {' '.join(missing)}, with your flags, then trainctl preflight --dryrun",
        )
        return
    ids = known_ids(settings, place, client)
    config = render_cluster_config(settings=settings, ids=ids)
    is_new = not place.has(settings.stack_name)
    config = without_what_a_deploy_makes(config, settings, is_new=is_new)
    yield from _findings(judge(settings.cluster_name, config), settings)


def _findings(said: DryRun, settings: Settings) -> Iterator[Finding]:
    if said.refusal:
        mend = (
            f"trainctl status --cluster {settings.cluster_name}, and this again when nothing is in progress"
        )
        yield Finding(check=_CHECK, found=f"not checked: {said.refusal}", verdict="warning", mend=mend)
        return
    messages = [each for each in said.messages if said.exists or each.validator not in _OF_WHAT_WE_LEFT_OUT]
    for each in messages:
        is_unanswered = any(words in each.text.lower() for words in _UNANSWERED)
        verdict = "warning" if is_unanswered else _VERDICTS.get(each.level, "warning")
        mend = "other flags (docs/flags.md): a deploy would stop here, too" if verdict == "problem" else ""
        yield Finding(
            check=f"ParallelCluster: {each.validator}",
            found=f"not checked: {each.text}" if is_unanswered else each.text,
            verdict=verdict,
            mend=mend,
        )
    for change in said.refused_changes:
        yield Finding(
            check=f"ParallelCluster: {change.parameter}",
            found=change.refusal,
            verdict="warning",
            mend=f"trainctl plan -c cluster_name={settings.cluster_name} ..., which says what a deploy does",
        )
    if not messages and not said.refused_changes:
        tried = "an update of the cluster" if said.exists else "a new cluster"
        yield Finding(check=_CHECK, found=f"none objects to {tried}")
