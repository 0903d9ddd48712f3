"""`trainctl users` and `usage`: what they make of a file, which deploy they run, and what they sum up."""

from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner, Result

from ops.cli import app
from ops.usage import OpsError
from ops.users.edit import NewUser, add_user, lock_user
from ops.users.list import render_list
from ops.users.usage import Usage, read_usage, render_usage, sum_usage
from tests.unit.ops.conftest import ActsOn
from tests.unit.ops.fake_account import Account
from tests.unit.ops.jobs_head_node import PlayedCluster
from tests.unit.training_cluster.users.keys import public_key
from training_cluster.paths import ROOT
from training_cluster.problems import ConfigurationError
from training_cluster.stack_names import DEFAULT_CLUSTER as CLUSTER
from training_cluster.users.file import read_users


@pytest.fixture
def account(acts_on: ActsOn) -> Account:
    return acts_on(family="p5", nodes="16")


def users(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["users", *arguments])


def typed(file: Path) -> Path:
    """Return the path as flags take it: in the folder of the app where it is there."""
    return file.relative_to(ROOT) if file.is_relative_to(ROOT) else file


def test_the_deploy_of_the_file_is_printed(tmp_path: Path) -> None:
    file = tmp_path / "users.yaml"
    done = users("add", "carol", "--file", str(file), "-c", "nodes=4", "-c", "users=other.yaml")
    assert done.output.splitlines() == [
        f"carol has the uid 5001 in {file}.",
        f"  type:   trainctl deploy -c nodes=4 -c users={typed(file)}",
    ]


def test_apply_repeats_flags_that_no_file_gives(tmp_path: Path, account: Account, runs: list[str]) -> None:
    file, flags = tmp_path / "users.yaml", tmp_path / "prod.yaml"
    flags.write_text("nodes: 8\n")
    assert users("add", "carol", "--file", str(file), "--apply").exit_code == 7
    users("lock", "carol", "--file", str(file), "--apply", "-c", f"flags={flags}")
    family, ask = "npx cdk deploy TrainingClusterStack -c family=p5", "--require-approval never"
    assert runs == [
        f"{family} -c nodes=16 -c users={typed(file)} {ask}",
        f"{family} -c flags={flags} -c users={typed(file)} {ask}",
    ]


def test_unknown_flags_refuse_apply_before_edit(tmp_path: Path, account: Account, runs: list[str]) -> None:
    file = tmp_path / "users.yaml"
    account.answers["GetTemplate"] = {"TemplateBody": "{}"}
    done = users("add", "carol", "--file", str(file), "--apply")
    assert isinstance(done.exception, OpsError)
    assert "recorded no flags" in str(done.exception)
    assert (runs, file.exists()) == ([], False)


def test_an_interrupted_plan_leaves_the_file(tmp_path: Path, account: Account, runs: list[str]) -> None:
    file = tmp_path / "users.yaml"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ops.plan.plan.read_plan", Mock(side_effect=KeyboardInterrupt))
        users("add", "carol", "--file", str(file), "--apply")
        assert (runs, [*tmp_path.iterdir()]) == ([], [])
        file.write_text(text := "users:\r\n  carol: {uid: 5001}\r\n", newline="")
        users("lock", "carol", "--file", str(file), "--apply")
    assert (runs, file.read_bytes()) == ([], text.encode())


def test_users_file_is_the_deployed_one(account: Account) -> None:
    account.answers["GetTemplate"] = {
        "TemplateBody": '{"Metadata": {"training-cluster:flags": {"users": "team.yaml"}}}'
    }
    done = users("add", "carol")
    assert isinstance(done.exception, OpsError)
    assert f"was deployed with users=team.yaml, and there is no {ROOT}/team.yaml" in str(done.exception)


FILE = f"""# The team.
users:
  alice: # first
    uid: 5001
    keys:
    - {public_key("alice")}
  bob: {{uid: 5002, admin: true}}   # of the operators

# Projects.
accounts:
  nlp: {{gid: 5003}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "users.yaml"
    file.write_text(FILE)
    return file


def test_new_users_are_appended_with_the_next_id(file: Path) -> None:
    key = public_key("carol")
    add_user(file, NewUser(name="carol", account="nlp", keys=(key,), iam=("carol@example.com",)))
    added = f"""\
  carol:
    uid: 5004
    account: nlp
    keys:
      - {key}
    iam:
      - carol@example.com
"""
    assert file.read_text() == FILE.replace("# of the operators\n", f"# of the operators\n{added}")


@pytest.mark.parametrize("text", [None, "", "users: {}\n", "accounts: {a: {gid: 6000}}\n", "users: {}"])
def test_the_first_user_gets_the_first_id(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "users.yaml"
    if text is not None:
        file.write_text(text)
    assert add_user(file, NewUser(name="alice")).users["alice"].uid == 5001
    assert "  alice:\n    uid: 5001\n" in file.read_text()


def test_a_lock_adds_one_word_and_is_reversible(file: Path) -> None:
    lock_user(file, "alice", locked=True)
    lock_user(file, "bob", locked=True)
    assert file.read_text() == FILE.replace("    uid: 5001", "    locked: true\n    uid: 5001").replace(
        "{uid: 5002", "{locked: true, uid: 5002"
    )
    lock_user(file, "bob", locked=False)
    assert not read_users(str(file)).users["bob"].locked
    with pytest.raises(OpsError, match="no user bobb"):
        lock_user(file, "bobb", locked=True)


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (NewUser(name="alice"), "alice is in"),
        (NewUser(name="Carol"), "not allowed as a name"),
        (NewUser(name="carol", account="cv"), "there is no account cv"),
        (NewUser(name="carol", uid=5001), "5001 belongs to"),
        (NewUser(name="carol", keys=(public_key("alice"),)), "is given to alice already"),
        (NewUser(name="carol", keys=("/home/carol/.ssh/id.pub",)), "is not a line of a public key"),
    ],
)
def test_a_wrong_user_changes_nothing(file: Path, new: NewUser, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        add_user(file, new)
    assert file.read_text() == FILE
    assert [path.name for path in file.parent.iterdir()] == ["users.yaml"]


def test_the_list_shows_people_and_accounts(file: Path) -> None:
    assert render_list(read_users(str(file))).splitlines() == [
        "USER   UID   STATE  ACCOUNTS  KEYS  QUOTA_GIB  IAM",
        "alice  5001  user             1",
        "bob    5002  admin            0",
        "account nlp: gid 5003, share 1; members: none",
    ]


P4D = {"INSTANCE_TYPE": "p4d.24xlarge", "ACCELERATORS_PER_NODE": "8"}
CPU = {"INSTANCE_TYPE": "m6i.32xlarge", "ACCELERATORS_PER_NODE": "0"}
Read = Callable[..., tuple[Usage, ...]]
WHEN = {"since": "2026-11-01", "until": "2026-11-24"}


@pytest.fixture
def read(cluster: PlayedCluster) -> Read:
    """Return a function that reads the use by users from lines of sacct."""

    def usage(*lines: str) -> tuple[Usage, ...]:
        cluster.says("sacct", "".join(f"{line}\n" for line in lines))
        return read_usage(cluster.head_node, by="user", **WHEN)

    cluster.has_nodes("p4d.24xlarge", recipe="gpu", ACCELERATORS_PER_NODE="8")
    return usage


def test_usage_is_summed_and_priced(read: Read) -> None:
    rows = [
        ["bob", "gpu", "1", "3600", "28800"],
        ["alice", "gpu", "2", "7200", "0"],
        ["alice", "cpu", "3", "1800", "0"],
    ]
    alice, bob = sum_usage(rows, {"gpu": P4D, "cpu": CPU})
    assert (alice.group, alice.jobs, alice.node_hours, alice.gpu_hours) == ("alice", 5, 2.5, 16)
    assert (bob.node_hours, bob.gpu_hours) == (1, 8)
    assert alice.usd and bob.usd and 2 * bob.usd < alice.usd < 2 * bob.usd + 10
    (found,) = read("alice|gone|3600|1|gres/gpu=8")
    assert (found.node_hours, found.usd) == (1, None)
    text = render_usage((found,), by="user", cluster_name="training", **WHEN)
    assert text.splitlines()[1].split() == ["alice", "1", "1.00", "8.00", "unknown"]
    both = read("alice|gpu|3600|1|gres/gpu=8", "bob|gpu|3600|2|node=2,gres/gpu=16", "bob|gpu|0|1|")
    lines = render_usage(both, by="user", cluster_name="training", **WHEN).splitlines()
    assert lines[0].split() == ["USER", "JOBS", "NODE", "HOURS", "GPU", "HOURS", "USD"]
    assert [line.split()[:4] for line in lines[1:4]] == [
        ["bob", "1", "2.00", "16.00"],
        ["alice", "1", "1.00", "8.00"],
        ["all", "2", "3.00", "24.00"],
    ]


@pytest.mark.parametrize(
    "said",
    ["Slurm accounting storage is disabled", "You are not running a supported accounting_storage plugin"],
)
def test_without_accounting_it_says_what_to_type(said: str, cluster: PlayedCluster) -> None:
    cluster.says("sacct", "", error=said, code=1)
    with pytest.raises(OpsError, match=f"type:   trainctl deploy --cluster {CLUSTER} -c accounting=new"):
        read_usage(cluster.head_node, by="user", **WHEN)
