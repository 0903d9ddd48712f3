"""The image's custom resource alone, with fakes of AWS."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.unit.assets.cluster_image.image_fakes import (
    NEW,
    OLD,
    OWN,
    STACK,
    STACK_NAME,
    FakeRegion,
    image,
    official,
    tagged,
)
from tests.unit.assets.function_fakes import load, refusal
from training_cluster.flags.cluster import PCLUSTER_VERSION

KEPT_FOR_GOOD = "a recipe's parent cannot change"

Ask = Callable[..., dict[str, Any]]
Refuse = Callable[..., str]


@pytest.fixture(scope="module")
def handler() -> Any:
    return load("cluster_image")["handler"]


@pytest.fixture
def region(monkeypatch: pytest.MonkeyPatch) -> FakeRegion:
    played = FakeRegion()
    played.play(monkeypatch)
    return played


@pytest.fixture
def ask(handler: Any, region: FakeRegion) -> Ask:
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


def test_official_is_the_newest_fitting_image(ask: Ask, region: FakeRegion) -> None:
    region.images = {
        NEW: official(created="2026-11-02", root_gib=45),
        "ami-01": official(created="2026-11-03", version="3.16.0"),
        "ami-02": official(created="2026-11-03", os_part="ubuntu-2204-lts-hvm"),
        "ami-03": official(created="2026-11-03") | {"ImageOwnerAlias": "aws-marketplace"},
        "ami-04": official(created="2026-11-03", State="pending"),
        OLD: official(),
    }
    name = f"aws-parallelcluster-{PCLUSTER_VERSION}-ubuntu-2404-lts-hvm-x86_64-202611020000"
    assert ask() == {
        "PhysicalResourceId": NEW,
        "Data": {"ImageId": NEW, "Name": name, "RootGib": "45", "Note": ""},
    }


def test_a_deprecated_image_comes_last(ask: Ask, region: FakeRegion) -> None:
    # The library chooses the head node's image so.
    region.images[NEW] = official(created="2026-11-02", DeprecationTime="2026-11-03T00:00:00.000Z")
    assert ask()["PhysicalResourceId"] == OLD
    region.images[OLD] |= {"DeprecationTime": "2026-10-02T00:00:00.000Z"}
    assert ask()["PhysicalResourceId"] == NEW


def test_no_official_image_is_refused(refuse: Refuse, region: FakeRegion) -> None:
    said = refuse(Os="ubuntu2204")
    assert (
        f"us-east-1 has no official image of ParallelCluster {PCLUSTER_VERSION} for ubuntu2204, x86_64"
        in said
    )
    assert f"aws-parallelcluster-{PCLUSTER_VERSION}-ubuntu-2204-lts-hvm-x86_64*" in said
    assert "another os (alinux2023, ubuntu2404), or use your own image: -c image=ami-" in said
    region.images = {}
    assert "Deploy in a region that ParallelCluster supports" in refuse()


def test_a_too_small_root_volume_is_refused(refuse: Refuse) -> None:
    said = refuse(RootGib="34")
    assert "has a root volume of 35 GiB, and 34 GiB are requested" in said


def test_an_update_keeps_the_parent_and_reports_newer(ask: Ask, region: FakeRegion) -> None:
    region.images[NEW] = official(created="2026-11-02")
    kept = ask(kept=OLD, was={"RootGib": "50"})
    assert (kept["PhysicalResourceId"], kept["Data"]["ImageId"]) == (OLD, OLD)
    assert OLD in kept["Data"]["Note"]
    assert f"though {NEW}" in kept["Data"]["Note"]
    assert KEPT_FOR_GOOD in kept["Data"]["Note"]


def test_an_update_replaces_a_missing_parent(ask: Ask, region: FakeRegion) -> None:
    region.images = {NEW: official(created="2026-11-02")}
    moved = ask(kept=OLD)
    assert moved["Data"]["ImageId"] == NEW
    assert ask(kept=moved["PhysicalResourceId"]) == moved


def test_another_version_and_its_rollback_change_the_parent(ask: Ask, region: FakeRegion) -> None:
    region.images["ami-01"] = official(version="3.17.0")
    moved = ask(kept=OLD, PclusterVersion="3.17.0", was={"PclusterVersion": PCLUSTER_VERSION})
    assert moved["Data"]["ImageId"] == "ami-01"
    region.images[NEW] = official(created="2026-11-02")
    region.stack_answers = ["UPDATE_ROLLBACK_IN_PROGRESS"]
    back = ask(kept=moved["PhysicalResourceId"], was={"PclusterVersion": "3.17.0"})
    assert (back["PhysicalResourceId"], back["Data"]["ImageId"]) == (OLD, OLD)


def test_an_own_image_that_fits_is_taken(ask: Ask) -> None:
    assert ask(OWN, RootGib="35") == {
        "PhysicalResourceId": OWN,
        "Data": {"ImageId": OWN, "Name": "training", "RootGib": "35", "Note": ""},
    }


@pytest.mark.parametrize("described", [None, image(State="disabled")])
def test_a_missing_image_is_refused_with_the_region(
    refuse: Refuse, region: FakeRegion, described: dict[str, Any] | None
) -> None:
    region.images = {OWN: described} if described else {}
    said = refuse(OWN)
    assert f"image={OWN}: us-east-1 has no such image for this account. AMI ids are regional" in said
    assert "aws ec2 copy-image --region us-east-1" in said


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"Tags": tagged(version="3.15.0")},
            "for ParallelCluster 3.15.0 (by its tag parallelcluster:version), "
            f"and this app uses {PCLUSTER_VERSION}",
        ),
        (
            {"Tags": tagged(build_status=None)},
            f"create-tags --resources {OWN} --tags Key=parallelcluster:build_status,Value=available",
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
        (
            {"root_gib": 101},
            "its root volume has 101 GiB, and the queue's 100: build it",
        ),
        ({"BlockDeviceMappings": []}, "its root volume is not on EBS"),
    ],
)
def test_an_unfit_image_is_refused_with_the_reason(
    refuse: Refuse, region: FakeRegion, change: dict[str, Any], words: str
) -> None:
    region.images[OWN] = image(**{"Tags": tagged(), **change})
    said = refuse(OWN)
    assert said.startswith(f"image={OWN} (training) cannot be used: ")
    assert words in said
    assert ";" not in said


def test_all_that_is_wrong_is_said_at_once(refuse: Refuse, region: FakeRegion) -> None:
    region.images[OWN] = image(Tags=tagged(version="3.15.0", os="ubuntu2204"), root_gib=500)
    said = refuse(OWN)
    assert all(words in said for words in ("3.15.0", "ubuntu2204", "500 GiB"))


@pytest.mark.parametrize(
    ("described", "words"),
    [
        (official(version="3.15.0"), "for ParallelCluster 3.15.0 (by its name)"),
        (official(os_part="amzn2023-hvm"), "it has alinux2023 (by its name)"),
        (official(os_part="rhel9-hvm"), "it has rhel9-hvm (by its name)"),
    ],
)
def test_the_name_describes_an_untagged_image(
    ask: Ask, refuse: Refuse, region: FakeRegion, described: dict[str, Any], words: str
) -> None:
    region.images[OWN] = described
    assert words in refuse(OWN)
    region.images[OWN] = official()
    assert ask(OWN)["Data"]["Note"] == ""


def test_an_unknown_image_passes_with_a_note(
    ask: Ask, region: FakeRegion, capsys: pytest.CaptureFixture[str]
) -> None:
    region.images[OWN] = image()
    answer = ask(OWN)
    note = answer["Data"]["Note"]
    assert answer["Data"]["ImageId"] == OWN
    assert "has no tag parallelcluster:version and no tag parallelcluster:os" in note
    assert note in capsys.readouterr().out


def test_an_update_checks_another_image(ask: Ask, refuse: Refuse, region: FakeRegion) -> None:
    assert "no such image" in refuse(NEW, kept=OWN, was={"Wanted": OWN})
    region.images[NEW] = image(Tags=tagged())
    moved = ask(NEW, kept=OWN, was={"Wanted": OWN})
    assert moved["Data"]["ImageId"] == NEW
    back = ask(OWN, kept=moved["PhysicalResourceId"], was={"Wanted": NEW})
    assert (back["PhysicalResourceId"], back["Data"]["ImageId"]) == (OWN, OWN)


@pytest.mark.parametrize(
    ("wanted", "kept", "was", "expected"),
    [
        ("official", OLD, {"RootGib": "50"}, OLD),
        ("official", f"{NEW} after {OLD}", {"PclusterVersion": "3.17.0"}, OLD),
        ("official", f"{NEW} after {OLD}", {"RootGib": "50"}, NEW),
        (OWN, f"{NEW} after {OWN}", {"Wanted": NEW}, OWN),
    ],
)
def test_the_way_back_is_always_open(
    ask: Ask, region: FakeRegion, *, wanted: str, kept: str, was: dict[str, str], expected: str
) -> None:
    region.stack_answers, region.images = ["UPDATE_ROLLBACK_IN_PROGRESS"], {}
    for region.throttled in (set(), {"DescribeImages"}):
        back = ask(wanted, kept=kept, was=was)
        assert back["PhysicalResourceId"] == back["Data"]["ImageId"] == expected
        assert back["Data"]["RootGib"] == "100"
        assert back["Data"]["Name"]


def test_an_update_is_refused_like_a_create(refuse: Refuse, region: FakeRegion) -> None:
    region.images, region.stack_answers = {}, ["UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"]
    assert "no official image" in refuse(kept=OLD)


def test_a_delete_asks_nothing(ask: Ask, region: FakeRegion) -> None:
    assert ask(kind="Delete", kept=f"{NEW} after {OLD}") == {"PhysicalResourceId": f"{NEW} after {OLD}"}
    assert not region.options


def test_throttled_calls_are_repeated_and_then_reported(refuse: Refuse, region: FakeRegion) -> None:
    region.throttled = {"DescribeImages"}
    said = refuse()
    assert "RequestLimitExceeded" in said
    assert "Nothing was changed; type the deploy again" in said
    assert f"--stack-name {STACK_NAME}" in said
    for config in region.options:
        assert config.retries == {"mode": "standard", "max_attempts": 10}
