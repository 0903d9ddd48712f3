"""Checks of Slurm: the settings in force that we set or rely on, and nodes that remain without work."""

from collections.abc import Iterator
from dataclasses import dataclass

from ops.verify.check import Check, Look
from ops.verify.scene import Scene, UnseenError
from training_cluster.catalog.families import load_base
from training_cluster.cluster.config import JOB_SETTINGS


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A setting of the running slurmctld; a number may be followed by its unit."""

    name: str
    wanted: str
    """The value, or words of a list."""
    reason: str
    source: str
    on_aws: str = ""
    """Part that a rehearsal cannot show, where its Slurm has another value; empty where it has the same."""


_RECIPES = "ParallelCluster's recipes, which write slurm.conf on AWS."
SETTINGS = (
    Setting(
        name="JobRequeue",
        wanted="1",
        reason="a job survives its node",
        source="our CustomSlurmSettings",
    ),
    Setting(
        name="KillWait",
        wanted=str(load_base().kill_wait_s),
        reason="a cancelled training has ten minutes to save a checkpoint",
        source="our CustomSlurmSettings",
    ),
    Setting(
        name="PrologFlags",
        wanted="DeferBatch",
        reason="a job starts once the health checks of all its nodes have passed",
        source="our CustomSlurmSettings",
    ),
    Setting(
        name="EnforcePartLimits",
        wanted="ALL",
        reason="a job that exceeds its partition is refused, and does not wait",
        source="ParallelCluster's slurm.conf",
    ),
    Setting(
        name="SchedulerParameters",
        wanted=str(JOB_SETTINGS["SchedulerParameters"]),
        reason="a job whose prolog failed goes to another node, and one that is queued again starts soon",
        source="our CustomSlurmSettings",
    ),
    Setting(
        name="Prolog",
        wanted="prolog.d",
        reason="ParallelCluster's folder of prologs, and so our health checks, run before each job",
        source="ParallelCluster's slurm.conf",
        on_aws="The path: the local Slurm has a folder of its own.",
    ),
    Setting(
        name="Epilog",
        wanted="epilog.d",
        reason="ParallelCluster's folder of epilogs, and so our health checks, run after each job",
        source="ParallelCluster's slurm.conf",
        on_aws="The path: the local Slurm has a folder of its own.",
    ),
    Setting(
        name="ProctrackType",
        wanted="cgroup",
        reason="no process and no SSH session of a job outlives it on a node",
        source="ParallelCluster's slurm.conf",
        on_aws="cgroups: the local Slurm finds a job's processes by their parents.",
    ),
)


def _is_in_force(setting: Setting) -> Look:
    def look(scene: Scene) -> tuple[bool, str]:
        value = scene.slurm_config.get(setting.name) or scene.slurm_config.get(f"{setting.name}[0]")
        if value is None:
            return False, f"no {setting.name}"
        parts = value.replace("/", ",").split(",")
        is_held = value.split(" ")[0] == setting.wanted or {*setting.wanted.split(",")} <= {*parts}
        # A blank after each comma, so that the page can break the line.
        return is_held, f"{setting.name}={value.replace(',', ', ')}"

    return look


def _checks_of_settings() -> Iterator[Check]:
    for each in SETTINGS:
        yield Check(
            id=f"slurm-{each.name.lower()}",
            claim=f"Slurm has {each.name} of {each.source} in force: {each.reason}.",
            expected=f"{each.name}: {each.wanted}",
            not_in_rehearsal=each.on_aws or _RECIPES,
            look=_is_in_force(each),
            only_on_aws=bool(each.on_aws),
        )


def _suspends_in_time(scene: Scene) -> tuple[bool, str]:
    wanted = "INFINITE" if scene.idle_min < 0 else str(scene.idle_min * 60)
    value = scene.slurm_config.get("SuspendTime")
    seen = f"SuspendTime={value}, {scene.idle_min} minutes in the config" if value else "no SuspendTime"
    return str(value).split(" ")[0] == wanted, seen


def _nothing_idles(scene: Scene) -> tuple[bool, str]:
    rows, _, _ = scene.head_node.ask_slurm("sinfo", "--all", "--Node")
    states = {row["name"]: row["word"] for row in rows}
    # A suffix says that the node is off, or starts or ends (sinfo(1), NODE STATE CODES). Static nodes remain.
    idle = [name for name, state in states.items() if state == "idle" and "-st-" not in name]
    if idle:
        when = "never end" if scene.idle_min < 0 else f"look again after {scene.idle_min} minutes"
        raise UnseenError(f"{len(idle)} of {len(states)} nodes are idle: {when}")
    return True, f"no idle node of {len(states)}"


CHECKS = (
    *_checks_of_settings(),
    Check(
        id="slurm-suspendtime",
        claim="Slurm has SuspendTime of our ScaledownIdletime in force: nodes without work are terminated.",
        expected="SuspendTime: the deployed config's ScaledownIdletime, in seconds",
        not_in_rehearsal="The local Slurm's time is shortened.",
        look=_suspends_in_time,
        only_on_aws=True,
    ),
    Check(
        id="scaled-down",
        claim="No dynamic node keeps running without work, so an idle cluster pays for no compute node.",
        expected="no idle node, once ScaledownIdletime has passed since the last job",
        not_in_rehearsal="The instances: a local node is a process.",
        look=_nothing_idles,
    ),
)
