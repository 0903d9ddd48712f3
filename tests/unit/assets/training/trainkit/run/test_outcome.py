"""The end of a training, for job.slurm and for people."""

from pathlib import Path

import pytest

from tests.unit.assets.training.trainkit.run.runs import a_run, outcome


@pytest.mark.parametrize(
    ("stopped_at", "written", "said"),
    [
        (None, "finished", "finished: no step was left to do"),
        (7, "stopped 7", "stopped on request, saved at step 7: submit with the same RUN_NAME to continue"),
    ],
)
def test_an_end_is_recorded_and_printed_by_the_first_rank(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    stopped_at: int | None,
    written: str,
    said: str,
) -> None:
    outcome.ended(a_run(tmp_path, rank=1), stopped_at)
    file = a_run(tmp_path).run_dir / outcome.FILE
    assert (capsys.readouterr().out, file.exists()) == ("", False)
    outcome.ended(a_run(tmp_path), stopped_at)
    assert (capsys.readouterr().out, file.read_text()) == (f"{said}\n", f"{written}\n")
