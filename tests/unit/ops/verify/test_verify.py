"""The command `trainctl verify`: options, exit codes, JSON and page."""

import json

import pytest
from botocore.exceptions import NoCredentialsError

from ops.verify.check import Result, Verdict
from ops.verify.hiding import hide_ids
from ops.verify.report import Report, render_page
from tests.unit.ops.fake_account import Refused
from tests.unit.ops.jobs_head_node import Call, PlayedCluster


def result(id_: str, verdict: Verdict) -> Result:
    texts = {"claim": "A <claim>.", "seen": f"{id_} seen", "expected": "9", "not_in_rehearsal": "B."}
    return Result(id=id_, verdict=verdict, **texts)


@pytest.fixture
def results(cluster: PlayedCluster, monkeypatch: pytest.MonkeyPatch) -> list[Result]:
    found = [result("one", "held"), result("two", "could not look")]
    monkeypatch.setattr("ops.verify.checks.run_checks", lambda _scene: found)
    monkeypatch.setattr(
        "ops.verify.nodes.run_node_checks", lambda scene: [result(f"nodes{scene.nodes}", "held")]
    )
    return found


def test_nothing_that_differs_is_success(results: list[Result], call: Call) -> None:
    code, said, _ = call("verify")
    assert code == 0
    assert "could not look two: two seen; expected: 9" in said
    assert "1 held, 0 differ, 1 could not be looked at" in said


def test_a_difference_gives_exit_code_1_and_json(results: list[Result], call: Call) -> None:
    results.append(result("three", "differs"))
    code, said, _ = call("verify", "--json", "--quick")
    found = json.loads(said)
    assert (code, found["counts"]) == (1, {"held": 1, "differs": 1, "could not look": 1})
    assert [each["id"] for each in found["checks"]] == ["one", "two", "three"]
    assert (found["nodes"], found["rehearsal"]) == (0, False)


def test_nodes_are_checked_only_on_request(results: list[Result], call: Call) -> None:
    assert "nodes2 seen" in call("verify", "--nodes", "2")[1]
    assert "nodes" not in call("verify")[1]


def test_missing_credentials_give_exit_code_2(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise NoCredentialsError

    monkeypatch.setattr("ops.account.session.account_clients", refuse)
    code, said, complained = call("verify")
    assert (code, said) == (2, "")
    assert complained.startswith("verify: there are no AWS credentials here\n  type:")


@pytest.mark.parametrize(
    ("name", "said"), [("other", "There is no cluster other"), ("no_such", "cluster_name")]
)
def test_nonexistent_cluster_is_wrong_input(name: str, said: str, cluster: PlayedCluster, call: Call) -> None:
    stacks = cluster.account.answers["DescribeStacks"]
    missing = Refused("ValidationError", "Stack x does not exist")
    cluster.account.answers["DescribeStacks"] = lambda asked: missing if "StackName" in asked else stacks
    code, shown, complained = call("verify", "--cluster", name)
    assert (code, shown) == (2, "")
    assert said in complained


def test_the_page_groups_verdicts_and_loads_nothing() -> None:
    all_ = [result("one", "held"), result("two", "differs"), result("three", "could not look")]
    report = Report(cluster_name="a", region="us-east-1", is_rehearsal=True, nodes=2, results=all_)
    page = render_page(report)
    order = [page.index(words) for words in ("two seen", "three seen", "one seen")]
    assert order == sorted(order)
    assert "A &lt;claim&gt;." in page
    assert "This was a rehearsal" in page
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")


def test_ids_are_hidden_and_other_words_are_not() -> None:
    for text, shown in (
        ("account 111122223333 asks", "account (account) asks"),
        ("arn:aws-us-gov:iam::111122223333:role/x denied", "(ARN) denied"),
        ("i-0123456789abcdef0 of vpc-0a1b2c3d", "(id) of (id)"),
        ("node ip-10-0-1-23.ec2.internal at 10.0.1.23:22", "node (address) at (address):22"),
        ("2001:db8:0:1:2:3:4:5 in s3://bucket-name/datasets", "(address) in (bucket)"),
        (
            "from 2600:1f18:abcd:1200::5: fe80::1, ::1 and 2001:db8::/32",
            "from (address): (address), (address) and (address)/32",
        ),
        ("fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com@tcp:/abcd", "(address)@tcp:/abcd"),
        ("mine.s3.cn-north-1.amazonaws.com.cn timed out", "(address) timed out"),
        ("trainingcluster-storage-bucket83908e77-1a2b3c4d5e6f7 is full", "(bucket) is full"),
        ("key-0123456789abcdef0, tgw-0123456789abcdef0", "(id), (id)"),
        ("torch::jit at 01:19:36, std::move, rate 3:2", "torch::jit at 01:19:36, std::move, rate 3:2"),
        ("ask someone@example.com at https://a.b/c?d", "ask (mail) at (URL)"),
        ("AKIAIOSFODNN7EXAMPLE", "(masked)"),
        ("3.0.1 at 01:19:36: job 12 of p4d.24xlarge", "3.0.1 at 01:19:36: job 12 of p4d.24xlarge"),
    ):
        assert hide_ids(text) == shown
