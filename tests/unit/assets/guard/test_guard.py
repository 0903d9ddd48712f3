"""The guard's function: its refusals, their messages, and the updates that it allows."""

import json
import time
from typing import Any

import pytest

from ops.account.stacks import LIFT_PROTECTION
from tests.unit.assets.functions import MOST_CHARACTERS, FunctionAccount, load, refusal
from tests.unit.ops.fake_account import FakeStack, Refused, stack_answers
from training_cluster.flags.given import GIVEN_FLAGS

STACK = "arn:aws:cloudformation:us-east-1:123456789012:stack/TrainingCluster-Storage/0a1b"
DENIED, THROTTLED = Refused("AccessDenied", "not allowed"), Refused("Throttling", "Rate exceeded")


class Guard:
    """The deployed function, as CDK's framework calls it."""

    def __init__(self, modules: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
        self.account, self.slept = FunctionAccount(STACK, monkeypatch), list[float]()
        self.stacks = dict[str, FakeStack]()
        self.most_bytes: int = modules["transitions"].MAX_REASON_BYTES
        self._on_event = modules["handler"].on_event
        monkeypatch.setattr(time, "sleep", self.slept.append)

    def ask(self, kind: str, **more: Any) -> dict[str, Any]:
        """Send an event; raises RuntimeError when it is refused."""
        event = {"RequestType": kind, "StackId": STACK, "ResourceProperties": {"Values": {}}, **more}
        answer: dict[str, Any] = self._on_event(event, None)
        return answer

    def update(self, old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
        """Send an Update from these values to those."""
        return self.ask("Update", OldResourceProperties={"Values": old}, ResourceProperties={"Values": new})


@pytest.fixture(scope="module")
def modules() -> dict[str, Any]:
    return load("guard")


@pytest.fixture
def guard(modules: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Guard:
    return Guard(modules, monkeypatch)


def _kept(value: str, may: str = "never", safe_way: str = "Keep {old}, and not {new}.") -> dict[str, str]:
    return {"value": value, "may": may, "safe_way": safe_way}


def test_what_replaces_nothing_passes(guard: Guard) -> None:
    """The own file system's type goes when fsx_id is given; it comes with a release that knows it."""
    for may, old, new in (
        ("never", "persistent2", "persistent2"),
        ("grows", "1200", "2400"),
        ("grows", "9600", "12000"),
        ("adopts", "", "fs-1"),
        ("adopts", "fs-1", "fs-1"),
        ("changes", "250", "125"),
        ("alone", "", "100"),
    ):
        assert guard.update({"x": _kept(old, may)}, {"x": _kept(new, may)}) == {"PhysicalResourceId": "guard"}
        assert guard.account.asked == []
    guard.update({"fsx_id": _kept("", "adopts"), "fsx_type": _kept("a")}, {"fsx_id": _kept("fs-1", "adopts")})
    guard.update({}, {"fsx_type": _kept("a")})
    guard.update({"bucket_name": _kept("")}, {"bucket_name": _kept("mine", "adopts")})


def test_what_would_replace_data_is_refused(guard: Guard) -> None:
    for may, old, new, why in (
        ("never", "persistent2", "scratch2", "with an empty one"),
        ("never", "", "mine", r"x: \(own\) -> mine .* Keep \(own\), and not mine\."),
        ("grows", "2400", "1200", "it can only grow"),
        ("grows", "12000", "9600", "it can only grow"),
        ("grows", "1200", "many", "it can only grow"),
        ("adopts", "fs-1", "", "would replace it with a new, empty one"),
        ("adopts", "fs-1", "fs-2", "would replace it with another one"),
        ("of a later release", "1", "2", "with an empty one"),
    ):
        with pytest.raises(RuntimeError, match=why):
            guard.update({"x": _kept(old, may)}, {"x": _kept(new, may)})
    before = {"a": _kept("1"), "b": _kept("fs-1", "adopts"), "c": _kept("1200", "grows")}
    after = {"a": _kept("2"), "b": _kept("", "adopts"), "c": _kept("2400", "grows")}
    with pytest.raises(RuntimeError, match=r"a: 1 -> 2 .* \| b: fs-1 -> \(own\)") as refusal:
        guard.update(before, after)
    assert "c: " not in str(refusal.value), "which is allowed"


@pytest.mark.parametrize(("may", "old", "new"), [("changes", "100", "50"), ("adopts", "", "fs-1")])
def test_what_cannot_be_taken_back_comes_alone(guard: Guard, may: str, old: str, new: str) -> None:
    """Were the other change to fail, the rollback would have to make smaller what has grown."""
    before = {"gib": _kept("1200", "grows"), "x": _kept(old, may), "y": _kept("same")}
    after = {"gib": _kept("2400", "grows"), "x": _kept(new, may), "y": _kept("same")}
    with pytest.raises(RuntimeError, match=r"change of x failed. Deploy -c gib=2400 first, with x as before"):
        guard.update(before, after)
    guard.update(before, {**before, "gib": after["gib"]})
    guard.update({**before, "gib": after["gib"]}, after)


def test_a_change_that_comes_alone_is_refused_otherwise(guard: Guard) -> None:
    before = {"mibps": _kept("100", "alone"), "x": _kept("1", "changes")}
    after = {"mibps": _kept("", "alone"), "x": _kept("2", "changes")}
    with pytest.raises(RuntimeError, match=r"mibps: 100 -> \(own\) .* Deploy without -c mibps=... first"):
        guard.update(before, after)
    guard.update(before, {**before, "mibps": after["mibps"]})


def test_a_refusal_of_everything_fits_into_an_answer(guard: Guard) -> None:
    long = "What to type, in many words. " * 20
    names = [f"flag{i}" for i in range(20)]
    with pytest.raises(RuntimeError) as refusal:
        guard.update({n: _kept("1") for n in names}, {n: _kept("2", safe_way=long) for n in names})
    assert len(json.dumps(str(refusal.value))) <= guard.most_bytes
    assert str(refusal.value).endswith("(cut)")


@pytest.mark.parametrize(
    ("status", "last", "left_out", "lost"),
    [
        ("UPDATE_COMPLETE", {"nodes": 4, "os": "x y"}, {"nodes": "2", "os": ""}, "-c nodes=4 -c 'os=x y'"),
        ("CREATE_COMPLETE", {"nodes": 16}, {"nodes": "2", "tags": ""}, "-c nodes=16"),
        ("UPDATE_COMPLETE", {"family": "p4d", "nodes": 16}, {"family": "p4d", "tags": ""}, ""),
        ("UPDATE_COMPLETE", {"nodes": 16, "gone": 1}, {"tags": ""}, ""),
        ("UPDATE_COMPLETE", None, {"nodes": "2"}, ""),
        ("ROLLBACK_COMPLETE", {"nodes": 16}, {"nodes": "2"}, ""),
        ("", None, {"nodes": "2"}, ""),
    ],
)  # fmt: skip
def test_flags_of_the_last_deploy_are_remembered(
    named: Guard, status: str, last: Any, left_out: dict[str, str], lost: str
) -> None:
    """None: an older release recorded no flags; no status: no stack."""
    template = {"Metadata": {GIVEN_FLAGS: last}} if last else {}
    own = FakeStack(template=template, members={"StackStatus": status, "StackId": "arn/1"})
    named.stacks |= {"TrainingClusterStack": own}
    if not status:
        del named.stacks["TrainingClusterStack"]
    last_time: dict[str, Any] = {"Values": {}, "Cluster": TRAINING}
    asked = {"OldResourceProperties": last_time, "ResourceProperties": {**last_time, "LeftOut": left_out}}
    if not lost:
        named.ask("Update", **asked)
        return
    assert refusal(named.ask, "Update", **asked).startswith(
        f"Nothing was changed. | The last deploy of TrainingClusterStack had {lost}, and "
    )
    named.stacks[STACK] = FakeStack(members={"StackStatus": "UPDATE_ROLLBACK_IN_PROGRESS"})
    named.ask("Update", **asked)


@pytest.mark.parametrize(
    ("imports", "refused"),
    [
        ({"Imports": ["TrainingCluster-Storage", "TrainingClusterStack-b"]}, True),
        ({"Imports": ["TrainingCluster-Storage"]}, False),
        (Refused("ValidationError", "Export 'x' is not imported by any stack."), False),
        (DENIED, True),
    ],
)
def test_a_boundary_changes_without_clusters_alone(guard: Guard, imports: Any, refused: bool) -> None:
    guard.account.answers["ListImports"] = imports
    old, new = ({"boundary": _kept(value, "without clusters"), "x": _kept("same")} for value in ("a", ""))
    if refused:
        with pytest.raises(
            RuntimeError, match=r"boundary: a -> \(own\) is not possible while a cluster exists"
        ):
            guard.update(old, new)
    else:
        guard.update(old, new)
    assert guard.account.asked[0] == "ListImports"


def test_a_delete_does_nothing_and_asks_nobody(guard: Guard) -> None:
    assert (guard.ask("Delete"), guard.account.asked) == ({"PhysicalResourceId": "guard"}, [])


@pytest.mark.parametrize("status", ["CREATE_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS"])
def test_a_create_in_a_new_stack_passes(guard: Guard, status: str) -> None:
    guard.account.statuses = [status]
    assert guard.ask("Create") == {"PhysicalResourceId": "guard"}


def test_a_create_in_another_stack_is_refused(guard: Guard) -> None:
    """Another app's stack of this name: what the new template lacks would be deleted at the end."""
    guard.account.statuses = ["UPDATE_IN_PROGRESS"]
    with pytest.raises(RuntimeError) as refusal:
        guard.ask("Create")
    said = str(refusal.value)
    assert "Nothing was deleted" in said
    assert "TrainingCluster-Storage" in said
    assert "export AWS_REGION=" in said
    assert f"{LIFT_PROTECTION} TrainingCluster-Storage, then: aws cloudformation delete-stack" in said
    assert "aws cloudformation delete-stack --stack-name TrainingCluster-Storage" in said
    assert len(said) < MOST_CHARACTERS
    guard.account.statuses = [DENIED]
    with pytest.raises(RuntimeError, match=r"not allowed.*cloudformation:DescribeStacks"):
        guard.ask("Create")


@pytest.mark.parametrize(
    ("status", "passes"),
    [
        ("UPDATE_ROLLBACK_IN_PROGRESS", True),
        ("UPDATE_ROLLBACK_COMPLETE", False),
        ("UPDATE_IN_PROGRESS", False),
        ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", False),
    ],
)
def test_a_rollback_always_passes(guard: Guard, status: str, passes: bool) -> None:
    """It comes as an Update with old and new swapped; refused, it would leave the stack stuck."""
    guard.account.statuses = [status]
    old, new = {"fsx_gib": _kept("2400", "grows")}, {"fsx_gib": _kept("1200", "grows")}
    if passes:
        guard.update(old, new)
    else:
        with pytest.raises(RuntimeError, match="fsx_gib: 2400 -> 1200"):
            guard.update(old, new)
    assert guard.account.asked == ["DescribeStacks"]


def test_an_unknown_rollback_is_asked_and_refused(guard: Guard, modules: dict[str, Any]) -> None:
    guard.account.statuses = [THROTTLED, THROTTLED, "UPDATE_ROLLBACK_IN_PROGRESS"]
    guard.update({"a": _kept("1")}, {"a": _kept("2")})
    assert guard.slept == [1, 2]
    guard.account.statuses = [DENIED]
    with pytest.raises(RuntimeError) as refusal:
        guard.update({"a": _kept("1")}, {"a": _kept("2")})
    assert "a: 1 -> 2" in str(refusal.value)
    assert "not allowed" in str(refusal.value)
    assert "aws cloudformation continue-update-rollback --stack-name TrainingCluster-Storage" in str(
        refusal.value
    )
    assert sum(guard.slept) < 5 * 60, "the function's life"


TRAINING = {"Name": "training", "Stack": "TrainingClusterStack", "KeyPair": "training-key"}
DEFAULT = {**TRAINING, "Name": "traincluster", "KeyPair": ""}
SECOND = {"Name": "second", "Stack": "TrainingClusterStack-second", "KeyPair": ""}


def _tagged(key: str, value: str) -> dict[str, Any]:
    return {"Tags": [{"Key": key, "Value": value}]}


@pytest.fixture
def named(guard: Guard) -> Guard:
    """Return the guard of the first stack, in an account with a cluster and its key pair."""
    made = FakeStack(members=_tagged("training-cluster:stack-id", "arn/1"))
    own = FakeStack(members={"StackId": "arn/1"})
    parent = FakeStack(members={"StackStatus": "UPDATE_IN_PROGRESS"})
    guard.stacks = {"training": made, "TrainingClusterStack": own, STACK: parent}
    guard.account.answers |= stack_answers(guard.stacks)
    guard.account.answers["DescribeKeyPairs"] = {
        "KeyPairs": [_tagged("training-cluster:cluster", "training")]
    }
    return guard


def _deploy(guard: Guard, cluster: dict[str, str], last: dict[str, str] | None = None) -> None:
    old, new = ({"Values": {}, "Cluster": each} for each in (last, cluster))
    guard.ask("Update", OldResourceProperties=old, ResourceProperties=new)


def test_a_clusters_own_names_are_free(named: Guard) -> None:
    _deploy(named, TRAINING)
    _deploy(named, SECOND)
    named.account.asked.clear()
    _deploy(named, TRAINING, TRAINING)
    assert named.account.asked == []


@pytest.mark.parametrize("own", [{}, {"TrainingClusterStack": FakeStack(members={"StackId": "arn/2"})}])
@pytest.mark.parametrize("tags", [[], [{"Key": "training-cluster:stack-id", "Value": "arn/1"}]])
def test_another_stack_of_the_name_is_refused(named: Guard, own: dict[str, Any], tags: list[Any]) -> None:
    """A cluster of a deleted stack is another's, too: the provider changes none that it did not make."""
    del named.stacks["TrainingClusterStack"]
    named.stacks |= {**own, "training": FakeStack(members={"Tags": tags})}
    said = refusal(_deploy, named, TRAINING, SECOND)
    assert said == (
        "Nothing was changed. | A stack named training exists already and was not made by "
        "TrainingClusterStack, whose cluster needs this name. Type: -c cluster_name=training-2"
    )
    _deploy(named, SECOND, TRAINING)


@pytest.mark.parametrize(
    ("asks", "name", "cluster"), [("-Storage", "training", SECOND), ("Stack", "traincluster", TRAINING)]
)
def test_a_stacks_cluster_keeps_its_name(named: Guard, asks: str, name: str, cluster: dict[str, str]) -> None:
    """The default and the former one are of the same stack. Which flags are missing comes later."""
    described = {"Description": f"Training Cluster: the cluster {name}, family p5"}
    named.stacks["TrainingClusterStack"] = FakeStack(members={"StackId": "arn/1", **described})
    asked: dict[str, Any] = {
        "StackId": STACK.replace("-Storage", asks),
        "OldResourceProperties": {"Values": {}, "Cluster": cluster, "Flags": {"nodes": "4"}},
        "ResourceProperties": {"Values": {}, "Cluster": DEFAULT, "LeftOut": {"nodes": "2"}},
    }
    named.stacks[asked["StackId"]] = named.stacks[STACK]
    said = refusal(named.ask, "Update", **asked)
    assert said == (
        "Nothing was changed. | TrainingClusterStack has the cluster training, which keeps its name. "
        "Type: -c cluster_name=training, or, for a second cluster, -c cluster_name=training-2"
    )


@pytest.mark.parametrize("status", ["", "ROLLBACK_COMPLETE"])
def test_a_cluster_that_is_gone_keeps_no_name(named: Guard, status: str) -> None:
    """The guard of the first stack remembers it. The CDK deletes a stack whose first deploy failed."""
    del named.stacks["TrainingClusterStack"]
    described = {"StackStatus": status, "Description": "Training Cluster: the cluster training, family p5"}
    if status:
        named.stacks["TrainingClusterStack"] = FakeStack(members={"StackId": "arn/1", **described})
    _deploy(named, DEFAULT, TRAINING)


def test_another_key_pair_of_the_name_is_refused(named: Guard) -> None:
    named.account.answers["DescribeKeyPairs"] = {"KeyPairs": [{"KeyName": "training-key"}]}
    said = refusal(_deploy, named, TRAINING)
    assert "A key pair named training-key exists already" in said
    assert (
        "-c cluster_name=training-2, or, to use it, if it is an ED25519 key: -c key_name=training-key" in said
    )
    named.stacks[STACK] = FakeStack(members={"StackStatus": "UPDATE_ROLLBACK_IN_PROGRESS"})
    _deploy(named, TRAINING)


def test_unknown_names_and_flags_are_refused(named: Guard) -> None:
    named.account.answers["DescribeKeyPairs"] = DENIED
    assert "Whether the names of training are free could not be read" in refusal(_deploy, named, TRAINING)
    named.stacks[STACK] = FakeStack(members={"StackStatus": "UPDATE_ROLLBACK_IN_PROGRESS"})
    _deploy(named, TRAINING)
    named.account.answers["DescribeStacks"] = DENIED
    last: dict[str, Any] = {"Values": {}, "Cluster": TRAINING}
    new = {**last, "LeftOut": {"nodes": "2"}}
    with pytest.raises(RuntimeError, match="last deploy of TrainingClusterStack could not be read"):
        named.ask("Update", OldResourceProperties=last, ResourceProperties=new)


def test_a_clusters_own_stack_asks_again(named: Guard) -> None:
    """A repeated deploy changes nothing in the first stack. An older release has no such guard."""
    own = {"StackId": STACK.replace("TrainingCluster-Storage", "TrainingClusterStack")}
    asked = {"ResourceProperties": {"Values": {}, "Cluster": TRAINING}}
    named.ask("Create", **own, **asked)
    named.account.answers["DescribeKeyPairs"] = {"KeyPairs": [{"KeyName": "training-key"}]}
    assert "A key pair named training-key exists already" in refusal(named.ask, "Create", **own, **asked)
    last, new = (
        {"Values": {}, "Cluster": TRAINING, **more}
        for more in ({"Flags": {"nodes": "4"}}, {"LeftOut": {"nodes": "2"}})
    )
    said = refusal(named.ask, "Update", **own, OldResourceProperties=last, ResourceProperties=new)
    assert "The last deploy of TrainingClusterStack had -c nodes=4, and this one leaves that out" in said
