"""Steps 77, 78 and 89: job ids, accounts, and the wait for a fabric."""

# ruff: noqa: E501 - lines of sacctmgr

import os
import pwd
import shutil
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.step_machine import Machine, fails
from training_cluster.paths import ASSETS
from training_cluster.users.file import read_users
from training_cluster.users.render import render_users

# slurmctld takes the setting of slurm.conf when it is told to.
SCONTROL = """
case "$*" in
  'show config') echo "FirstJobId             = $(cat {conf}.taken 2>/dev/null || echo 1) "; echo "x = 1" ;;
  reconfigure) sed -n 's/^FirstJobId=//p' {conf} >{conf}.taken ;;
esac
"""


class Head(Machine):
    """The head node of one of the clusters that share a file system."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.conf = self.write(
            "opt/slurm/etc/slurm.conf", "ClusterName=x\ninclude slurm_parallelcluster.conf\n"
        )
        self.program("scontrol", SCONTROL.format(conf=self.conf))
        self.program("sleep")
        self.environment |= {"NODE_TYPE": "HeadNode", "TRAINING_SHARED": str(folder.parent / "fsx")}

    @property
    def first_id(self) -> int:
        lines = [line for line in self.conf.read_text().splitlines() if line.startswith("FirstJobId")]
        return int(lines[0].removeprefix("FirstJobId=")) if lines else 1


@pytest.fixture
def heads(tmp_path: Path) -> list[Head]:
    (tmp_path / "fsx").mkdir()
    return [Head(tmp_path / name) for name in "abc"]


def test_each_cluster_has_its_own_job_ids(heads: list[Head]) -> None:
    for head in heads:
        head.does("77")
    assert [head.first_id for head in heads] == [1, 100_001, 200_001]
    assert "include slurm_parallelcluster.conf\n" in heads[1].conf.read_text()
    assert heads[0].calls() == [], "the first one needs no setting"
    head = heads[1]
    head.calls()
    head.does("77")
    assert (head.first_id, head.calls()) == (100_001, ["scontrol show config"])
    head.conf.write_text("ClusterName=x\n")  # an update of ParallelCluster writes it anew
    Path(f"{head.conf}.taken").unlink()
    head.does("77")
    assert head.first_id == 100_001
    assert "scontrol reconfigure" in head.calls()


def test_ids_that_name_something_stay_free(tmp_path: Path) -> None:
    """Lustre was made anew: it has the bucket's checkpoints and no registry."""
    for name, first in {
        "checkpoints/gpt2/job-17": 100_001,
        "runs/gpt2/job-312345": 400_001,
        "runs/job-99.log": 100_001,
        "runs/gpt2/my-run": 1,
        "runs/gpt2/job-of-mine": 1,
        "runs/gpt2/job-99999999": 1,
    }.items():
        folder = tmp_path / name.replace("/", "-")
        (folder / "fsx" / name).mkdir(parents=True)
        head = Head(folder / "head")
        head.does("77")
        assert head.first_id == first, name


def test_a_slurmctld_that_ignores_it_fails_the_step(heads: list[Head]) -> None:
    heads[0].does("77")
    head = heads[1]
    head.program("scontrol", "exit 1")
    fails(head.run("77"), "slurmctld did not apply FirstJobId=100001")
    head.program("scontrol", SCONTROL.format(conf=head.conf))
    head.does("77")
    assert head.first_id == 100_001
    assert Path(f"{head.conf}.taken").read_text() == "100001\n"


def test_a_users_registry_fails_the_step(heads: list[Head], tmp_path: Path) -> None:
    registry = tmp_path / "fsx" / ".job-ids"
    registry.symlink_to(tmp_path)
    owner = pwd.getpwuid(os.geteuid()).pw_name
    fails(heads[0].run("77"), f"{registry} is a symbolic link of {owner}: move it away")


ACCOUNTS_FILE = """
accounts:
  nlp: {gid: 6001, share: 2, max_nodes: 8, max_gpu_hours: 500}
users:
  alice: {uid: 5001, account: nlp, max_nodes: 4, max_jobs: 3}
  bob: {uid: 5002, locked: true}
"""
LOADED = """\
Cluster - 'training':Fairshare=1
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
User - 'ubuntu':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'nlp':Description='nlp':Organization='training':Fairshare=2:GrpTRES=node=8:DefaultQOS='budget-nlp':QOS='budget-nlp'
Account - 'users':Description='users':Organization='training':Fairshare=1
Parent - 'nlp'
User - 'alice':DefaultAccount='nlp':Fairshare=1:GrpTRES=node=4:MaxJobs=3:MaxSubmitJobs=-1
Parent - 'users'
User - 'bob':DefaultAccount='users':Fairshare=1:GrpTRES=node=-1:MaxJobs=-1:MaxSubmitJobs=0
"""


def test_accounts_and_limits_are_the_files(node: Machine, tmp_path: Path) -> None:
    node.environment["NODE_TYPE"] = "HeadNode"
    file = tmp_path / "users.yaml"
    file.write_text(ACCOUNTS_FILE)
    for name, content in render_users(read_users(str(file)), home="ebs").items():
        path = node.bundle / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    node.write("etc/parallelcluster/cfnconfig", "cfn_cluster_user=ubuntu\n")
    node.program(
        "scontrol",
        "printf 'AccountingStorageType   = accounting_storage/slurmdbd\\nClusterName = training\\nTRESBillingWeights=Node=8\\n'",
    )
    associations = "nlp|alice\\nold|alice\\nold|carol\\n"
    budget = "*show*qos*) echo 'NoDecay|billing=30000' ;;"
    loads = f'case "$*" in {budget} *load*) cp "$3" {tmp_path}/loaded ;; *show*) printf "{associations}" ;; *add*) exit 1 ;; esac'
    node.program("sacctmgr", loads)
    node.does("78")
    assert (tmp_path / "loaded").read_text() == LOADED
    calls = node.calls()
    limits = "Flags=NoDecay GrpTRESMins=billing=30000"
    assert f"sacctmgr --immediate --quiet modify qos where name=budget-nlp set {limits}" in calls
    assert [call for call in calls if "remove" in call] == [
        "sacctmgr --immediate --quiet remove user where name=alice account=old cluster=training"
    ]
    assert (node.etc / "budgets").read_text() == "nlp 500 alice\n"
    node.program("sacctmgr", "exit 1")
    fails(node.run("78"), "the budget of nlp was not set: see the lines above")
    node.program("sacctmgr", f'case "$*" in {budget} *) echo no database; exit 1 ;; esac')
    done = node.run("78")
    fails(done, "sacctmgr refused the accounts of the users file: see the lines above")
    assert "no database" in done.stderr
    node.calls()
    node.program("scontrol", "echo 'AccountingStorageType   = accounting_storage/none'")
    node.does("78")
    assert node.calls() == ["scontrol show config"]


def test_a_start_waits_for_the_fabric(node: Machine) -> None:
    """On a running node a job waits for nothing, and other faults are left to the first job's checks."""
    (node.etc / "partitions" / "gpu.env").touch()
    (node.bundle / "bootstrap").unlink()
    shutil.copytree(ASSETS / "bootstrap" / "steps", node.bundle / "bootstrap" / "steps")
    checks = node.bundle / "bootstrap" / "health" / "checks"
    node.program("sleep", "echo >>$ROOT/slept")
    node.environment |= {"RECIPE": "gpu", "PARTITION": "gpu"}
    not_ready = "echo 'the fabric is not ready (In Progress)'; exit 9"
    soon = f"echo >>$ROOT/asked; [[ $(wc -l <$ROOT/asked) -gt 3 ]] || {{ {not_ready}; }}"
    for fabric, cuda, waits in (
        ("", "", 0),
        (soon, "", 3),
        ("", f"[[ -e $ROOT/slept ]] || {{ {not_ready}; }}", 1),
        ("", "echo 'CUDA sees 7 of 8 GPUs'; exit 9", 0),
    ):
        for name, script in (("12-gpu-fabric", fabric), ("14-gpu-cuda", cuda)):
            checks.mkdir(parents=True, exist_ok=True)
            (checks / f"{name}.sh").write_text(script)
        (node.root / "slept").unlink(missing_ok=True)
        node.does("89", BOOTSTRAP_MOMENT="refresh")
        assert node.calls() == []
        assert "the fabric is ready, after " in node.does("89")
        assert node.calls() == ["sleep 5"] * waits
    (checks / "12-gpu-fabric.sh").write_text(not_ready)
    fails(node.run("89", FABRIC_WAIT_S="0"), "the fabric is not ready (In Progress)")
