"""What preparations share: their end, and space."""

from pathlib import Path

import pytest
from trainkit.data import lifecycle, shards


def test_an_expected_error_ends_in_one_sentence() -> None:
    def run() -> None:
        raise OSError("the disk is gone")

    with pytest.raises(SystemExit, match=r"^prepare\.py: the disk is gone$"):
        lifecycle.main(run, OSError)
    with pytest.raises(OSError, match="the disk is gone"):
        lifecycle.main(run)


def test_too_little_space_is_refused(tmp_path: Path) -> None:
    lifecycle.check_space(tmp_path, 1.0)
    with pytest.raises(shards.ShardError, match=r"the data needs about 1000000000\.0 GB and .* GB free"):
        lifecycle.check_space(tmp_path, 1e18)
