"""Checkpoints on the disks of three nodes, of which some are lost, and the next start of the ranks."""

import json
from typing import Any

import pytest

from tests.slow.assets.training.training import in_environment

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def scenes() -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as given:
        given.setenv("GLOO_SOCKET_IFNAME", "lo")
        found: dict[str, Any] = json.loads(in_environment("gpt2", "local_scenes.py"))
    return found


def states(ranks: list[dict[str, Any]]) -> list[Any]:
    """Return from which state each rank continues: its step, and its rank as a decimal."""
    return [rank["state"] and rank["state"][1] for rank in ranks]


def test_two_steps_and_a_neighbours_part_are_kept(scenes: dict[str, Any]) -> None:
    for node, (_, own, before) in enumerate(((0, 0, 2), (1, 1, 0), (2, 2, 1))):
        names = sorted(f"rank-{rank:05d}-of-00003" for rank in (own, before))
        kept = [f"step-{step:06d}.0/{name}" for step in (4, 6) for name in names]
        assert scenes["saved"][node]["parts"] == kept


@pytest.mark.parametrize(
    ("scene", "expected", "sent"),
    [
        ("same", [6.0, 6.1, 6.2], ""),
        ("lost", [6.0, 6.1, 6.2], "; d got rank-00002-of-00003 from a"),
        ("renumbered", [6.0, 6.1, 6.2], "; d got rank-00002-of-00003 from c"),
        ("flipped", [6.0, 6.1, 6.2], "; b got rank-00001-of-00003 from c"),
        ("torn", [4.0, 4.1, 4.2], ""),
        ("unloadable", [4.0, 4.1, 4.2], ""),
        ("alike", [4.0, 4.0, 4.0], "; d got all from a; e got all from a"),
    ],
)
def test_a_start_continues_from_the_disks(
    scenes: dict[str, Any], scene: str, expected: list[float], sent: str
) -> None:
    assert states(scenes[scene]) == expected
    said = f"all parts of step {int(expected[0])} are on the nodes' own disks{sent}\n"
    assert said in scenes[scene][0]["said"]


def test_restarts_learn_the_local_step(scenes: dict[str, Any]) -> None:
    assert scenes["local_step"] == "4\n"


@pytest.mark.parametrize("scene", ["two lost", "fewer"])
def test_lacking_parts_leave_the_shared_checkpoint(scenes: dict[str, Any], scene: str) -> None:
    assert {(rank["state"], *rank["parts"]) for rank in scenes[scene]} == {(None,)}


def test_a_full_disk_ends_the_local_ones_alone(scenes: dict[str, Any]) -> None:
    first, *_, last = scenes["full"]
    assert first["saved"] == last["saved"] == [2, 4]
    assert "c cannot save to its own disks ([Errno 28] No space left on device)\n" in last["said"]
    assert "none on the nodes' own disks from step 6 on\n" in first["said"]
    whole = {part for rank in scenes["full"] for part in rank["parts"] if "/." not in part}
    assert {f"step-000002.8/rank-{rank:05d}-of-00003" for rank in range(3)} <= whole
