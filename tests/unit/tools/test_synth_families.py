"""All apps that cdk-nag judges: each family and the samples of other flags."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.nag import main
from tools.synth_families import OTHERS, synth


@pytest.mark.slow
def test_no_app_has_a_finding_without_a_reason_and_no_reason_is_without_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`make check` does so for every family."""
    apps = {"p4d": {"family": "p4d"}, **OTHERS}
    for name, flags in apps.items():
        synth(tmp_path, name, flags)
    assert main([tmp_path / name for name in apps]) == 0, capsys.readouterr().err
