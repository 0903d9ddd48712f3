"""`trainctl lint`: each row of rules.yaml on its own examples, and our own job scripts."""

import pytest

from ops.lint.command import lint, lint_files
from ops.lint.rules import load_rules
from training_cluster.paths import ROOT, TRAINING

OURS = [
    *(file for suffix in ("sh", "slurm") for file in (TRAINING).rglob(f"*.{suffix}")),
    *(ROOT / "ops" / "workload_template").glob("*.sh"),
]

BAD = [(rule.id, script) for rule in load_rules().values() for script in rule.bad]
GOOD = [(rule.id, script) for rule in load_rules().values() for script in rule.good]


@pytest.mark.parametrize(("rule", "script"), BAD)
def test_a_rule_finds_its_bad_examples_once(rule: str, script: str) -> None:
    assert [found.rule for found in lint(script, name="job.slurm")].count(rule) == 1


@pytest.mark.parametrize(("rule", "script"), GOOD)
def test_good_examples_please_every_rule(rule: str, script: str) -> None:
    assert lint(script, name="job.slurm") == []


@pytest.mark.parametrize(("rule", "script"), BAD)
def test_comments_with_a_reason_allow_bad_examples(rule: str, script: str) -> None:
    lines = script.splitlines()
    at = next(found.line for found in lint(script, name="job.slurm") if found.rule == rule)
    lines.insert(at - 1, f"# trainctl: allow {rule} measured on our image")
    assert rule not in {found.rule for found in lint("\n".join(lines), name="job.slurm")}


def test_every_rule_has_problem_source_and_replacement() -> None:
    for rule in load_rules().values():
        assert min(len(rule.problem), len(rule.source), len(rule.instead)) >= len("nothing")


def test_what_the_old_walkthroughs_set_is_known() -> None:
    old = {
        "export MASTER_ADDR=$SLURM_SUBMIT_HOST": "master-addr-submit-host",
        "export NCCL_TREE_THRESHOLD=0": "nccl-thresholds",
        "export NCCL_SOCKET_IFNAME=eth0": "nccl-socket-ifname",
        "export FI_PROVIDER=efa": "fi-provider",
        "export FI_EFA_TX_MIN_CREDITS=64": "fi-efa-tx-min-credits",
        "export FI_EFA_USE_DEVICE_RDMA=1": "fi-efa-use-device-rdma",
        "export LD_LIBRARY_PATH=$HOME/nccl/build/lib:/usr/local/cuda/lib64": "own-nccl",
        "python -m torch.distributed.launch --nnodes=2 train.py": "torch-distributed-launch",
        "XLA_USE_BF16=1 python train.py": "xla-bf16",
        "sudo sed -i 's/queue-.*//g' /etc/hosts": "etc-hosts",
        "pcluster createami -ai ami-1 -os alinux2": "pcluster-2",
        "pip install intel-extension-for-pytorch": "ipex",
    }
    for line, rule in old.items():
        assert [found.rule for found in lint(line, name="train.sh")] == [rule], line


def test_our_own_job_scripts_have_no_findings() -> None:
    assert {file.name for file in OURS} >= {"job.slurm", "launch.sh", "train.sh", "prepare.sh"}
    assert [found.text() for found in lint_files(OURS)] == []
