"""Step 78 on nodes of folders: what sacctmgr gets of the file of users."""

# ruff: noqa: E501 - lines of sacctmgr

from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.start_step_node import Node
from training_cluster.users.file import read_users
from training_cluster.users.render import render_users

ACCOUNTS_FILE = """
accounts:
  nlp: {gid: 6001, share: 2, max_nodes: 8, max_gpu_hours: 500}
users:
  alice: {uid: 5001, account: nlp, max_nodes: 4, max_jobs: 3}
  bob: {uid: 5002, locked: true}
"""
ON = "AccountingStorageType   = accounting_storage/slurmdbd\\nClusterName = training"


@pytest.fixture
def head(tmp_path: Path) -> Node:
    node = Node(tmp_path)
    file = tmp_path / "users.yaml"
    file.write_text(ACCOUNTS_FILE)
    for name, content in render_users(read_users(str(file)), home="ebs").items():
        path = node.bundle / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    node.write("etc/parallelcluster/cfnconfig", "cfn_cluster_user=ubuntu\n")
    node.stub("scontrol", f"printf '{ON}\\n'")
    node.stub(
        "sacctmgr",
        f'case "$*" in *load*) cp "$3" {tmp_path}/loaded ;; *show*) printf "nlp|alice\\nold|alice\\n'
        f'old|carol\\n" ;; esac',
    )
    return node


def test_accounts_shares_and_limits_are_those_of_the_file(head: Node, tmp_path: Path) -> None:
    head.does("78", node_type="HeadNode")
    assert (
        (tmp_path / "loaded").read_text()
        == """\
Cluster - 'training':Fairshare=1
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
User - 'ubuntu':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'nlp':Description='nlp':Organization='training':Fairshare=2:GrpTRES=node=8:GrpTRESMins=gres/gpu=30000
Account - 'users':Description='users':Organization='training':Fairshare=1
Parent - 'nlp'
User - 'alice':DefaultAccount='nlp':Fairshare=1:GrpTRES=node=4:MaxJobs=3:MaxSubmitJobs=-1
Parent - 'users'
User - 'bob':DefaultAccount='users':Fairshare=1:GrpTRES=node=-1:MaxJobs=-1:MaxSubmitJobs=0
"""
    )


def test_a_user_loses_the_accounts_that_the_file_no_longer_gives(head: Node) -> None:
    head.does("78", node_type="HeadNode")
    removed = [call for call in head.calls() if "remove" in call]
    assert removed == [
        "sacctmgr --immediate --quiet remove user where name=alice account=old cluster=training"
    ]


def test_without_accounting_nothing_is_done(head: Node) -> None:
    head.stub(
        "scontrol", "printf 'AccountingStorageType   = accounting_storage/none\\nClusterName = training\\n'"
    )
    head.does("78", node_type="HeadNode")
    assert not [call for call in head.calls() if call.startswith("sacctmgr")]


def test_a_refusal_of_sacctmgr_is_reported(head: Node) -> None:
    head.stub("sacctmgr", "echo no database; exit 1")
    done = head.run("78", node_type="HeadNode")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "no database",
        "sacctmgr refused the accounts of the users file: see the lines above",
    ]
