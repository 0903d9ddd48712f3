"""The image's custom resource alone, in the local AWS, which has the official images."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tests.unit.assets.cluster_image.image_fakes import GONE, NAME, OLD, PREFIX, VERSION, register, tagged
from tests.unit.assets.functions import FunctionAccount, load, refusal
from tests.unit.ops.fake_account import Account
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.stack_names import IMAGE_STACKS

STACK_NAME = f"{IMAGE_STACKS}gpu-ubuntu2404-{VERSION}"
STACK = f"arn:aws:cloudformation:us-east-1:123456789012:stack/{STACK_NAME}/1"
NEW = "ami-0bbbbbbbbbbbbbbbb"
LATER = "2999-01-01T00:00:00.000Z"

Ask = Callable[..., dict[str, Any]]
Refuse = Callable[..., str]


@pytest.fixture(scope="module")
def own() -> Iterator[list[str]]:
    """Yield the ids of two images of one's own; a third one has an official name and a later date."""
    ec2 = Account(real=True).client("ec2")
    ids = [register(ec2, name) for name in ("training", "training", f"{NAME}-299901010000")]
    yield ids[:2]
    for each in ids:
        ec2.deregister_image(ImageId=each)


@pytest.fixture(scope="module")
def handler() -> Any:
    return load("cluster_image")["handler"]


@pytest.fixture
def region(own: list[str], monkeypatch: pytest.MonkeyPatch) -> FunctionAccount:
    return FunctionAccount(STACK, monkeypatch)


def change(region: FunctionAccount, **members: Any) -> None:
    """Describe images with other members, None for one that they lack."""

    def amend(said: dict[str, Any]) -> None:
        said["Images"] = [
            {key: value for key, value in (each | members).items() if value is not None}
            for each in said["Images"]
        ]

    region.amended["DescribeImages"] = amend


def publish(region: FunctionAccount, name: str = NAME, **members: Any) -> None:
    """Have a newer official image."""
    disk = {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 45}}
    described: dict[str, Any] = {"ImageId": NEW, "Name": f"{name}-299901010000", "CreationDate": LATER}
    described |= {
        "State": "available",
        "RootDeviceName": "/dev/sda1",
        "BlockDeviceMappings": [disk],
        **members,
    }
    region.amended["DescribeImages"] = lambda said: said["Images"].append(described)


@pytest.fixture
def ask(handler: Any, region: FunctionAccount) -> Ask:
    """Send one event, as CDK's framework does; `kept` makes it an Update, from the properties of `was`."""

    def send(
        wanted: str = "official",
        *,
        kept: str = "",
        kind: str = "",
        was: dict[str, str] | None = None,
        **more: str,
    ) -> dict[str, Any]:
        properties = {
            "Wanted": wanted,
            "PclusterVersion": PCLUSTER_VERSION,
            "Os": "ubuntu2404",
            "Architecture": "x86_64",
            "RootGib": "100",
        } | more
        event = {
            "RequestType": kind or ("Update" if kept else "Create"),
            "StackId": STACK,
            "ResourceProperties": properties,
        }
        if kept:
            event |= {"PhysicalResourceId": kept, "OldResourceProperties": properties | (was or {})}
        answer: dict[str, Any] = handler.on_event(event, None)
        return answer

    return send


@pytest.fixture
def refuse(ask: Ask) -> Refuse:
    return partial(refusal, ask)


def test_official_is_the_newest_fitting_image(ask: Ask, region: FunctionAccount) -> None:
    assert ask()["PhysicalResourceId"] == OLD
    publish(region)
    assert ask() == {
        "PhysicalResourceId": NEW,
        "Data": {"ImageId": NEW, "Name": f"{NAME}-299901010000", "RootGib": "45", "Note": ""},
    }
    # The library chooses the head node's image so.
    publish(region, DeprecationTime="2026-11-03T00:00:00.000Z")
    assert ask()["PhysicalResourceId"] == OLD
    publish(region, DeprecationTime=LATER)
    assert ask()["PhysicalResourceId"] == NEW


def test_no_official_image_is_refused(refuse: Refuse, region: FunctionAccount) -> None:
    def withdraw(said: dict[str, Any]) -> None:
        said["Images"] = [each for each in said["Images"] if "2204" not in each["Name"]]

    region.amended["DescribeImages"] = withdraw
    said = refuse(Os="ubuntu2204")
    assert f"us-east-1 has no official image of ParallelCluster {PCLUSTER_VERSION} for ubuntu2204," in said
    assert f"{PREFIX}-ubuntu-2204-lts-hvm-x86_64*" in said
    assert "another os (alinux2023, ubuntu2404), or use your own image: -c image=ami-" in said
    assert "Deploy in a region that ParallelCluster supports" in refuse(PclusterVersion="3.17.0")


def test_a_too_small_root_volume_is_refused(refuse: Refuse) -> None:
    said = refuse(RootGib="34")
    assert "has a root volume of 35 GiB, and 34 GiB are requested" in said


def test_an_update_keeps_the_parent_and_reports_newer(ask: Ask, region: FunctionAccount) -> None:
    publish(region)
    kept = ask(kept=OLD, was={"RootGib": "50"})
    assert (kept["PhysicalResourceId"], kept["Data"]["ImageId"]) == (OLD, OLD)
    assert OLD in kept["Data"]["Note"]
    assert f"though {NEW}" in kept["Data"]["Note"]
    assert "a recipe's parent cannot change" in kept["Data"]["Note"]


def test_an_update_replaces_a_missing_parent(ask: Ask) -> None:
    moved = ask(kept=GONE)
    assert moved["Data"]["ImageId"] == OLD
    assert ask(kept=moved["PhysicalResourceId"]) == moved


def test_another_version_and_its_rollback_change_the_parent(ask: Ask, region: FunctionAccount) -> None:
    publish(region, NAME.replace(PCLUSTER_VERSION, "3.17.0"))
    moved = ask(kept=OLD, PclusterVersion="3.17.0", was={"PclusterVersion": PCLUSTER_VERSION})
    assert moved["Data"]["ImageId"] == NEW
    publish(region, ImageId="ami-0cccccccccccccccc")
    region.statuses = ["UPDATE_ROLLBACK_IN_PROGRESS"]
    back = ask(kept=moved["PhysicalResourceId"], was={"PclusterVersion": "3.17.0"})
    assert (back["PhysicalResourceId"], back["Data"]["ImageId"]) == (OLD, OLD)


def test_an_own_image_that_fits_is_taken(ask: Ask, own: list[str], region: FunctionAccount) -> None:
    assert ask(own[0], RootGib="35") == {
        "PhysicalResourceId": own[0],
        "Data": {"ImageId": own[0], "Name": "training", "RootGib": "35", "Note": ""},
    }
    change(region, Tags=[], Name=f"{NAME}-202610010000")
    assert ask(own[0])["Data"]["Note"] == ""


def test_a_missing_image_is_refused_with_the_region(refuse: Refuse, region: FunctionAccount) -> None:
    for _ in range(2):
        said = refuse(GONE)
        assert f"image={GONE}: us-east-1 has no such image for this account. AMI ids are regional" in said
        assert "aws ec2 copy-image --region us-east-1" in said
        region.answers["DescribeImages"] = {"Images": []}  # as of a disabled one


@pytest.mark.parametrize(
    ("members", "words"),
    [
        (
            {"Tags": tagged(version="3.15.0")},
            "for ParallelCluster 3.15.0 (by its tag parallelcluster:version), "
            f"and this app uses {PCLUSTER_VERSION}",
        ),
        (
            {"Tags": tagged(build_status=None)},
            "create-tags --resources {} --tags Key=parallelcluster:build_status,Value=available",
        ),
        (
            {"Tags": tagged(os="alinux2023")},
            "it has alinux2023 (by its tag parallelcluster:os), and the cluster's os is ubuntu2404",
        ),
        ({"PlatformDetails": "Red Hat Enterprise Linux"}, "its platform is Red Hat Enterprise Linux"),
        ({"PlatformDetails": None, "Platform": "windows"}, "its platform is windows, which"),
        ({"Architecture": "arm64"}, "it is for arm64, and the nodes are x86_64"),
        ({"VirtualizationType": "paravirtual"}, "its virtualization is paravirtual"),
        ({"EnaSupport": None}, "without ENA"),
        ({"State": "pending"}, "its state is pending: deploy again when it is available"),
        ({"BlockDeviceMappings": []}, "its root volume is not on EBS"),
        ({"Tags": [], "Name": f"{NAME.replace(PCLUSTER_VERSION, '3.15.0')}-1"}, "3.15.0 (by its name)"),
        ({"Tags": [], "Name": f"{PREFIX}-amzn2023-hvm-x86_64-1"}, "it has alinux2023 (by its name)"),
        ({"Tags": [], "Name": f"{PREFIX}-rhel9-hvm-x86_64-1"}, "it has rhel9-hvm (by its name)"),
    ],
)
def test_an_unfit_image_is_refused_with_the_reason(
    refuse: Refuse, region: FunctionAccount, own: list[str], members: dict[str, Any], words: str
) -> None:
    change(region, **members)
    said = refuse(own[0])
    assert said.startswith(f"image={own[0]} ({members.get('Name', 'training')}) cannot be used: ")
    assert words.format(own[0]) in said
    assert ";" not in said


def test_all_that_is_wrong_is_said_at_once(refuse: Refuse, region: FunctionAccount, own: list[str]) -> None:
    change(region, Tags=tagged(version="3.15.0", os="ubuntu2204"))
    said = refuse(own[0], RootGib="34")
    small = "its root volume has 35 GiB, and the queue's 34: build it"
    assert all(words in said for words in ("3.15.0", "ubuntu2204", small))


def test_an_unknown_image_passes_with_a_note(
    ask: Ask, region: FunctionAccount, own: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    change(region, Tags=[])
    answer = ask(own[0])
    note = answer["Data"]["Note"]
    assert answer["Data"]["ImageId"] == own[0]
    assert "has no tag parallelcluster:version and no tag parallelcluster:os" in note
    assert note in capsys.readouterr().out


def test_an_update_checks_another_image(ask: Ask, refuse: Refuse, own: list[str]) -> None:
    first, second = own
    assert "no such image" in refuse(GONE, kept=first, was={"Wanted": first})
    moved = ask(second, kept=first, was={"Wanted": first})
    assert moved["Data"]["ImageId"] == second
    back = ask(first, kept=moved["PhysicalResourceId"], was={"Wanted": second})
    assert (back["PhysicalResourceId"], back["Data"]["ImageId"]) == (first, first)


@pytest.mark.parametrize(
    ("wanted", "kept", "was", "expected"),
    [
        ("official", OLD, {"RootGib": "50"}, OLD),
        ("official", f"{NEW} after {OLD}", {"PclusterVersion": "3.17.0"}, OLD),
        ("official", f"{NEW} after {OLD}", {"RootGib": "50"}, NEW),
        (GONE, f"{NEW} after {GONE}", {"Wanted": NEW}, GONE),
    ],
)
def test_the_way_back_is_always_open(
    ask: Ask, region: FunctionAccount, *, wanted: str, kept: str, was: dict[str, str], expected: str
) -> None:
    region.statuses = ["UPDATE_ROLLBACK_IN_PROGRESS"]
    region.answers["DescribeImages"] = {"Images": []}
    for _ in range(2):
        back = ask(wanted, kept=kept, was=was)
        assert back["PhysicalResourceId"] == back["Data"]["ImageId"] == expected
        assert back["Data"]["RootGib"] == "100"
        assert back["Data"]["Name"]
        region.throttle("DescribeImages")


def test_an_update_is_refused_like_a_create(refuse: Refuse, region: FunctionAccount) -> None:
    region.statuses = ["UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"]
    region.answers["DescribeImages"] = {"Images": []}
    assert "no official image" in refuse(kept=OLD)


def test_a_delete_asks_nothing(ask: Ask, region: FunctionAccount) -> None:
    assert ask(kind="Delete", kept=f"{NEW} after {OLD}") == {"PhysicalResourceId": f"{NEW} after {OLD}"}
    assert not region.configs


def test_throttled_calls_are_repeated_and_then_reported(refuse: Refuse, region: FunctionAccount) -> None:
    region.throttle("DescribeImages")
    said = refuse()
    assert "RequestLimitExceeded" in said
    assert "Nothing was changed; type the deploy again" in said
    assert f"--stack-name {STACK_NAME}" in said
    for config in region.configs:
        assert config.retries == {"mode": "standard", "max_attempts": 10}
