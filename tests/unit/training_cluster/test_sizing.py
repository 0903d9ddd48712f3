"""Checkpoints, images and NFS against the storage of the flags, and the flags that suffice."""

import re
from dataclasses import replace

import pytest

from training_cluster.flags.settings import Settings
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.rules.context import read_settings
from training_cluster.sizing import (
    GIB,
    SCRATCH,
    Saves,
    about_head_node,
    about_saves,
    about_storage,
    duration,
    efa_step_gib,
    expected_saves,
    grown_gib,
    lustre,
    lustre_of,
    sufficient_flags,
)

# Llama 3 70B, 12 bytes a parameter, saved each 36 minutes.
SAVES = Saves(bytes=846_000_000_000, most=3, every_s=2160)
LEAST_WITH_EFA = {"fsx_efa": "on", "fsx_gib": "4800", "fsx_mbps_per_tib": "1000"}


def flags(**given: str) -> Settings:
    return read_settings({"family": "p5"} | given)


def test_lustre_holds_and_writes_by_its_size() -> None:
    for given, fits, save_s in (
        ({}, 1, 2888),  # 292.97 MB/s
        ({"fsx_type": "scratch2"}, 1, 7219),  # 100 MB/s a TiB are written, 200 read
        ({"fsx_gib": "9600", "fsx_mbps_per_tib": "1000"}, 12, 90),
    ):
        storage = lustre_of(flags(**given))
        assert storage
        assert (storage.fits(SAVES), round(storage.save_s(SAVES))) == (fits, save_s)
        assert storage.suffices(SAVES) == (fits >= 3 and save_s <= 108)
    assert lustre_of(flags(fsx_id="fs-0123456789abcdef0")) is None
    storage = lustre_of(flags())
    assert storage
    saves = [Saves(bytes=400 * GIB, most=most, every_s=0) for most in (3, 4)]
    assert [storage.suffices(each) for each in saves] == [True, False], "1200 GiB hold three of 400"


@pytest.mark.parametrize("typed", [{}, LEAST_WITH_EFA, {"fsx_type": "scratch2"}])
@pytest.mark.parametrize("size", [1e9, 1e11, 846e9, 4.9e12])
@pytest.mark.parametrize("every_s", [0, 60, 1800])
def test_recommended_flags_suffice_and_are_accepted(
    size: float, every_s: float, typed: dict[str, str]
) -> None:
    saves = Saves(bytes=round(size), most=3, every_s=every_s)
    given = dict(re.findall(r"-c (\w+)=(\w+)", sufficient_flags(saves, flags(**typed))))
    storage = lustre_of(flags(**typed | given))
    assert storage
    assert storage.suffices(saves)


def test_a_longer_interval_costs_nothing() -> None:
    """It is no way out for checkpoints without room."""
    saves = SAVES.model_copy(update={"every_steps": 500})
    (found,) = (each for each in about_saves(saves, lustre(9600, "250"), "") if each.startswith("or, "))
    # 846 GB at 2,344 MB/s: 361 s, 5 % of 7,220 s. 500 steps take 2,160 s.
    assert found.startswith("or, at no cost, CHECKPOINT_EVERY=1672: a save each 2.0 h")
    for storage in (lustre(1200, "250"), lustre(16800, "500")):
        assert not [each for each in about_saves(saves, storage, "") if each.startswith("or, ")]


def test_the_cheapest_flags_are_recommended() -> None:
    # 7.8 GB/s: 9600 GiB at 1000 MB/s a TiB cost 5,760 USD, 16,800 at 500 some less.
    assert sufficient_flags(SAVES, flags()).startswith(
        "-c fsx_gib=16800 -c fsx_mbps_per_tib=500 (5,712 USD a month"
    )
    assert sufficient_flags(Saves(bytes=10**9, most=3, every_s=0), flags()).startswith(
        "-c fsx_gib=1200 -c fsx_mbps_per_tib=125 (174 USD a month)"
    )


def test_a_deployed_file_system_keeps_its_speed() -> None:
    """The cheapest new one would be smaller and faster: the guard refuses less, and two changes at once."""
    for gib, speed, grown in ((9600, "500", 16800), (24000, "125", 64800), (1200, SCRATCH, 81600)):
        given = lustre(gib, speed)
        # df counts some less, and the partition's environment has whole MB/s.
        seen = replace(given, bytes=given.bytes * 0.97, write_mbps=int(given.write_mbps))
        assert grown_gib(SAVES, seen) == grown
        assert lustre(grown, speed).suffices(SAVES)
    assert grown_gib(SAVES, lustre(9600, "unknown")) == 9600
    assert grown_gib(Saves(bytes=10**9, most=3, every_s=0), lustre(1200, "125")) == 1200
    step = efa_step_gib("on", "500")
    assert grown_gib(SAVES, lustre(9600, "500"), step) == 19200, "FSx refuses 16,800 with EFA"


def test_the_expected_model_grows_with_the_nodes() -> None:
    small, large = (expected_saves(flags(nodes=nodes)) for nodes in ("64", "1024"))
    assert small
    assert large
    # sqrt(512 x 989e12 x 0.4 x 30 days / 120): 66 billion parameters.
    assert small.bytes / 12e9 == pytest.approx(66.1, abs=0.1)
    assert large.bytes == pytest.approx(4 * small.bytes)
    assert expected_saves(read_settings({"family": "m6i"})) is None


def test_many_nodes_leave_the_head_nodes_nfs() -> None:
    def said(**given: str) -> str:
        settings = flags(**given)
        return about_head_node(settings, config_before_deploy(settings))

    assert said(nodes="100") == ""
    assert "101 nodes mount /home and /opt/slurm from the head node" in said(nodes="101")
    assert said(nodes="101").count("-c home=efs") == 1
    efs = "rehearsal/validation/overrides/head-storage.yaml"
    assert "-c home=efs" not in said(nodes="101", home="efs")
    assert "SharedStorageType" not in said(nodes="101", overrides=efs)
    assert said(nodes="101", overrides=efs, home="efs") == ""


def test_storage_is_described_without_a_job() -> None:
    def said(**given: str) -> list[str]:
        settings = flags(**given)
        return [each.split(":")[0] for each in about_storage(settings, config_before_deploy(settings))]

    model, room, save, aim, free, image = said()
    assert (model, room) == ("no model is given", "a checkpoint has 140.3 GB")
    assert save.startswith("a save takes 8 min at 293 MB/s, 27% of the 30 min")
    assert aim == "for saves in 5% of the time"
    assert free == "or, at no cost, CHECKPOINT_EVERY=..."
    assert image.startswith("one node reads an image or environment of 20 GB (assumed) in 27 s")
    assert said(fsx_id="fs-0123456789abcdef0") == ["fsx_id=fs-0123456789abcdef0"]
    assert [duration(each) for each in (119, 121, 7199, 7201)] == ["119 s", "2 min", "120 min", "2.0 h"]
