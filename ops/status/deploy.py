"""Reads the progress of a deploy: the stacks, and the stages of the cluster's provider with their times."""

import datetime
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ops.account.deploy_command import deploy_command
from ops.account.image_stacks import destroy_image_stack_command, image_of_stack, is_image_stack, usual_min
from ops.account.session import ClientOf, every, read_parameter
from ops.account.stacks import FOUNDATIONS, LIFT_PROTECTION, cluster_of, cluster_stack_name
from training_cluster.stack_names import (
    ACCOUNTING_STACK,
    STACK_IDS,
    STORAGE_STACK,
    destroy_command,
    progress_parameter,
)

_ENDED = {"done", "failed"}
_SHOWN_MESSAGES = 12
# Estimates; none was measured on AWS yet (docs/rehearsal.md: Time).
_USUAL_STAGE = {"validating": "1 min", "head node booting": "10 to 20 min"}
_PROTECTED = (STORAGE_STACK, ACCOUNTING_STACK)
"""Stacks with termination protection."""
_USUAL_STACK = {STORAGE_STACK: "10 min for Lustre"}


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A stage of the provider's work, with its start."""

    name: str
    began: datetime.datetime


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Record that the provider wrote of its last request."""

    request: str
    """Type of the request: Create, Update or Delete."""
    stages: tuple[Stage, ...]
    messages: tuple[str, ...]

    @property
    def is_over(self) -> bool:
        """True once the provider succeeded or failed."""
        return bool(self.stages) and self.stages[-1].name in _ENDED


@dataclass(frozen=True, kw_only=True)
class Status:
    """State of a deploy at one time."""

    cluster_name: str
    stacks: tuple[tuple[str, str], ...]
    """Name and status of each existing stack: the shared ones first, the cluster's own last."""
    progress: Progress | None
    other_clusters: tuple[str, ...] = ()
    """Names of the other clusters of the account and region, sorted."""

    @property
    def has_cluster(self) -> bool:
        """True if the TrainingClusterStack exists, with or without its cluster."""
        return cluster_stack_name(self.cluster_name) in dict(self.stacks)

    @property
    def is_moving(self) -> bool:
        """True while a stack is created, updated or deleted."""
        return any(status.endswith("_IN_PROGRESS") for _, status in self.stacks)

    @property
    def awaits_cluster(self) -> bool:
        """True if intact shared stacks have no cluster yet, such as between two stacks of a first deploy."""
        intact = all(status in ("CREATE_COMPLETE", "UPDATE_COMPLETE") for _, status in self.stacks)
        remains = self.cluster_name in dict(self.stacks)
        return bool(self.stacks) and intact and not (self.has_cluster or remains or self.other_clusters)


def read_status(cluster_name: str, client: ClientOf) -> Status:
    """Read the stacks from CloudFormation and the progress from SSM. Raises botocore's errors."""
    own = cluster_stack_name(cluster_name)
    stacks = list(every(client("cloudformation"), "describe_stacks", "Stacks"))
    there = {each["StackName"]: each["StackStatus"] for each in stacks}
    clusters = {each["StackName"]: found for each in stacks if (found := cluster_of(each))}
    cluster_name = clusters.get(own, cluster_name)
    names = (*FOUNDATIONS, *sorted(filter(is_image_stack, there)), own, cluster_name)
    return Status(
        cluster_name=cluster_name,
        stacks=tuple((name, there[name]) for name in names if name in there),
        progress=_progress(own, client("ssm")),
        other_clusters=tuple(sorted({*clusters.values()} - {cluster_name})),
    )


def _progress(stack_name: str, ssm: Any) -> Progress | None:
    if (value := read_parameter(progress_parameter(stack_name), ssm)) is None:
        return None
    written = json.loads(value)
    return Progress(
        request=written["request"],
        stages=tuple(
            Stage(name=name, began=datetime.datetime.fromisoformat(at)) for name, at in written["stages"]
        ),
        messages=tuple(written["messages"].splitlines()),
    )


def render(status: Status, now: datetime.datetime) -> Iterator[str]:
    """Yield the lines for a terminal; `now` has a time zone."""
    if not status.stacks:
        yield f"The cluster {status.cluster_name} has no stack here."
        yield f"  type: {deploy_command(status.cluster_name)}"
        return
    width = max(len(name) for name, _ in status.stacks)
    for name, state in status.stacks:
        yield f"{name:{width}}  {state}{_what(name, state, status.cluster_name)}"
    if status.awaits_cluster:
        yield f"The cluster {status.cluster_name} does not exist yet. A deploy in progress creates it last."
        yield f"  without one, type: {deploy_command(status.cluster_name)}"
    elif not status.has_cluster:
        others = f" Clusters here: {', '.join(status.other_clusters)}." if status.other_clusters else ""
        yield f"There is no cluster {status.cluster_name} here.{others}"
    if status.progress:
        yield ""
        yield from _render_progress(status.progress, now)
    yield from _advice(status)


def _what(name: str, state: str, cluster_name: str) -> str:
    if name == cluster_name:
        return "  ParallelCluster's own stack"
    if name in _USUAL_STACK and state == "CREATE_IN_PROGRESS":
        return f"  usually about {_USUAL_STACK[name]}"
    if is_image_stack(name) and state in ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS"):
        log = f"/aws/imagebuilder/{image_of_stack(name)}"
        return f"  a build takes about {usual_min(name)} minutes: aws logs tail --follow {log}"
    return ""


def _render_progress(progress: Progress, now: datetime.datetime) -> Iterator[str]:
    stages = progress.stages
    began = stages[0].began if stages else now
    over = progress.is_over
    ended = stages[-1].began if over else now
    yield f"{progress.request} of the cluster, {'took' if over else 'for'} {_duration(ended - began)}:"
    following = [*(stage.began for stage in stages[1:]), now][: len(stages)]
    for stage, until in zip(stages, following, strict=True):
        last = stage is stages[-1]
        took = "" if stage.name in _ENDED else f"{'  ...' if last else ''} {_duration(until - stage.began)}"
        usual = f"  usually about {_USUAL_STAGE[stage.name]}" if last and stage.name in _USUAL_STAGE else ""
        yield f"  {stage.began:%H:%M:%S}Z  {stage.name:40}{took}{usual}".rstrip()
    for line in progress.messages[:_SHOWN_MESSAGES]:
        yield f"  {line}"


def _advice(status: Status) -> Iterator[str]:
    stacks = dict(status.stacks)
    failed = [name for name in _PROTECTED if stacks.get(name) in ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED")]
    for name in failed:
        yield ""
        if name == ACCOUNTING_STACK:
            yield f"The first deploy of {name} failed, and its database is protected from deletion."
            yield from _accounting_advice(status)
        else:
            yield f"The first deploy of {name} failed, and its termination protection keeps the CDK from"
            yield "creating it again. It holds no data yet. Lift the protection, then repeat the deploy:"
            yield f"  {LIFT_PROTECTION} {name}"
    for name, state in status.stacks:
        if state == "UPDATE_ROLLBACK_FAILED":
            yield ""
            yield f"{name} could not be rolled back. Fix the resource that its events name, then type:"
            yield f"  aws cloudformation continue-update-rollback --stack-name {name}"
        if is_image_stack(name):
            yield from _image_advice(name, state)
        elif state == "CREATE_FAILED" and name in STACK_IDS:
            yield ""
            yield f"{name} failed with rollback disabled and is kept as it is. To try again: the same deploy"
            yield "with --no-rollback. To remove it:"
            if name == ACCOUNTING_STACK:
                yield from _accounting_advice(status)
                continue
            if name in _PROTECTED:
                yield f"  {LIFT_PROTECTION} {name}"
            yield f"  npx cdk destroy {STACK_IDS[name]}"
        elif state == "CREATE_FAILED" and name != status.cluster_name:
            yield ""
            yield f"{name} failed with rollback disabled and is kept as it is: look at the head node, if"
            yield "there is one. To try again: the same deploy with --no-rollback. To remove it:"
            yield f"  {destroy_command(status.cluster_name)}"


def _accounting_advice(status: Status) -> Iterator[str]:
    yield "The database holds no data yet. Type the plan's commands for AccountingStack and for the"
    yield "accounting database, and nothing else of it; then repeat the deploy:"
    yield f"  trainctl destroy --plan --cluster {status.cluster_name}"


def _image_advice(name: str, state: str) -> Iterator[str]:
    if state in ("CREATE_FAILED", "ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"):
        yield ""
        yield f"{name}: the last deploy built no image; clusters keep their present one. The events of the"
        yield "stack name the step that failed, and the bucket holds the logs, under"
        yield f"logs/images/{image_of_stack(name)}/. Fix the step, then repeat the deploy."
    if state == "CREATE_FAILED":
        yield "It failed with rollback disabled. To remove it:"
        yield f"  {destroy_image_stack_command(name)}"


def _duration(time: datetime.timedelta) -> str:
    minutes, seconds = divmod(max(0, int(time.total_seconds())), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
