"""`trainctl verify` takes back what it writes on Lustre and in the bucket."""

import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from ops.verify.links import CHECKS
from tests.unit.ops.fake_account import Refused
from tests.unit.ops.verify.deployed import Deployed

Make = Callable[..., Deployed]


@pytest.mark.parametrize("copies", [("in", "out"), ()])
def test_nothing_remains_in_the_bucket_or_on_lustre(deployed: Make, copies: tuple[str, ...]) -> None:
    one = deployed(copies=copies)
    one.results()
    assert "PutObject" in one.account.asked
    assert (one.bucket, one.lustre) == ([], {})


@pytest.mark.parametrize("check", ["bucket-to-lustre", "lustre-to-bucket"])
def test_ctrl_c_during_wait_removes_both(deployed: Make, check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_seconds: float) -> None:
        assert one.bucket or one.lustre
        raise KeyboardInterrupt

    one = deployed(copies=())
    (asked,) = (each for each in CHECKS if each.id == check)
    monkeypatch.setattr("ops.verify.links.MOST_WAIT_S", 60)  # a slow machine waits, too
    monkeypatch.setattr("ops.verify.links.time", SimpleNamespace(sleep=interrupt, monotonic=time.monotonic))
    with pytest.raises(KeyboardInterrupt):
        asked.run(one.scene)
    assert (one.bucket, one.lustre) == ([], {})


def test_remaining_files_are_named_with_their_path(deployed: Make) -> None:
    one = deployed(ListObjectVersions=Refused("AccessDenied", "no"))
    found = one.results()
    assert found["bucket-to-lustre"].verdict == "could not look"
    assert any("not removed: /fsx/datasets/trainctl-verify-" in line for line in one.said)
