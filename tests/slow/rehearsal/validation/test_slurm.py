"""slurmctld starts with what `cdk synth` accepts, and not with what it refuses."""

from typing import Any

import pytest

from rehearsal.validation.slurm import refused_settings
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.pcluster.slurm_settings import slurm_problems
from training_cluster.rules.context import read_settings

pytestmark = pytest.mark.slow

# Two values for a key of each form, on each kind of line: one that Slurm reads, one that it does not.
CLUSTER: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"SlurmdTimeout": 65535}, {"SlurmdTimeout": 65536}),
    ({"MaxJobCount": "1k"}, {"MaxJobCount": "many"}),
    ({"DefMemPerCPU": "UNLIMITED"}, {"DefMemPerCPU": -1}),
    ({"UsePAM": False}, {"UsePAM": "off"}),
    ({"PriorityDecayHalfLife": "7-0"}, {"PriorityDecayHalfLife": "7d"}),
    ({"MailDomain": '"a b"'}, {"MailDomain": "a b"}),
    ({"MailDomain": "example.com"}, {"MailDomain": ""}),
    ({"SlurmdTimeout": 600}, {"SlurmdTimout": 600}),
    ({"PreemptType": "preempt/none"}, {"PreemptType": "preempt/foo"}),
    ({"DebugFlags": "steps,NO_CONF_HASH"}, {"DebugFlags": "Step"}),
    ({"PropagateResourceLimitsExcept": "RLIMIT_CORE,MEMLOCK"}, {"PropagateResourceLimitsExcept": "memlock"}),
    ({"PropagateResourceLimits": '"STACK CORE"'}, {"PropagateResourceLimits": '"STACK core"'}),
    ({"SlurmdDebug": 3}, {"SlurmdDebug": "verbos"}),
    ({"PriorityUsageResetPeriod": "MONTHLY"}, {"PriorityUsageResetPeriod": "hourly"}),
    ({"TaskPluginParam": "autobind=threads"}, {"TaskPluginParam": "auto"}),
    ({"NodeName": "own[1-2]", "CPUs": 4}, {"NodeName": "own[1-2]", "CPUs": "four"}),
    ({"NodeSet": "big", "Feature": "x"}, {"NodeSet": "big", "Features": "x"}),
]
QUEUE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"MaxTime": "12:00:0"}, {"MaxTime": "12:00:00:00"}),
    ({"DefaultTime": "1-12"}, {"DefaultTime": "tomorrow"}),
    ({"GraceTime": "0x10"}, {"GraceTime": 4294967296}),
    ({"LLN": True}, {"LLN": "maybe"}),
    ({"PriorityTier": "INFINITE"}, {"PriorityTier": 1.5}),
    ({"PreemptMode": "Requeue"}, {"PreemptMode": "kill"}),
    ({"SelectTypeParameters": "CR_Core"}, {"SelectTypeParameters": "CR_CPU"}),
]


def _config(settings: dict[str, Any], *, of_queue: bool) -> dict[str, Any]:
    config = config_before_deploy(read_settings({"family": "g5"}))
    if of_queue:
        config["Scheduling"]["SlurmQueues"][0]["CustomSlurmSettings"] = settings
    else:
        config["Scheduling"]["SlurmSettings"]["CustomSlurmSettings"].append(settings)
    return config


def test_slurmctld_agrees_with_synth() -> None:
    configs = {}
    for pairs, of_queue in ((CLUSTER, False), (QUEUE, True)):
        for good, bad in pairs:
            configs[f"good {good}"] = _config(good, of_queue=of_queue)
            configs[f"bad {bad}"] = _config(bad, of_queue=of_queue)
    refused = refused_settings(configs.items(), print)
    by_slurmctld = {name for name in configs if any(each.startswith(f"{name}: ") for each in refused)}
    by_us = {name for name, config in configs.items() if list(slurm_problems(config))}
    assert by_slurmctld == by_us == {name for name in configs if name.startswith("bad ")}


def test_settings_of_other_machines_are_left_out() -> None:
    lines: list[str] = []
    config = _config({"MetricsType": "metrics/openmetrics"}, of_queue=False)
    config["Scheduling"]["SlurmSettings"]["CustomSlurmSettings"][0]["PrologFlags"] += ",X11,RunInJob"
    config["Scheduling"]["SlurmSettings"]["CustomSlurmSettings"] += [
        {"TopologyPlugin": "topology/tree"},
        {"AccountingStorageEnforce": "limits"},
        {"MinJobAge": 300},
        {"Nodes": "own[1-2]", "PartitionName": "own", "ExclusiveTopo": "yes"},
        {"NodeName": "own[1-2]", "NodeAddr": "own.example.com", "CPUs": 2},
    ]
    assert refused_settings([("a", config)], lines.append) == []
    assert lines == [
        "slurmctld started with 1 of 1 distinct sets of settings",
        "left out: AccountingStorageEnforce=limits: there is no slurmdbd here",
        "left out: ExclusiveTopo=yes: newer than Slurm 22.05",
        "left out: MaxBatchRequeue=50: newer than Slurm 22.05",
        "left out: MetricsType=metrics/openmetrics: newer than Slurm 22.05",
        "left out: MinJobAge=300: this machine has its own",
        "left out: PrologFlags=RunInJob: newer than Slurm 22.05",
        "left out: PrologFlags=X11: not with proctrack/linuxproc, which this machine has",
        "left out: TopologyPlugin=topology/tree: reads topology.conf, which a script on the head node brings",
    ]
