"""Keys and addresses of W&B and MLflow, before the ranks start."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.assets.training.workload_modules import workload_on_the_path


@pytest.fixture
def loggers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModuleType]:
    for name in ("WANDB_API_KEY", "WANDB_MODE", "WANDB_BASE_URL", "MLFLOW_TRACKING_URI", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with workload_on_the_path(monkeypatch, "titan") as load:
        yield load("trainkit.loggers")


def test_a_logger_without_its_key_or_address_is_refused(loggers: ModuleType) -> None:
    loggers.check_logger("")
    with pytest.raises(SystemExit, match="LOGGER=wandb needs a key: secret:NAME as WANDB_API_KEY"):
        loggers.check_logger("wandb")
    with pytest.raises(SystemExit, match="MLFLOW_TRACKING_URI=https"):
        loggers.check_logger("mlflow")


@pytest.mark.parametrize(
    ("name", "value"),
    [("WANDB_API_KEY", "k"), ("WANDB_MODE", "offline"), ("NETRC", "")],
)
def test_a_key_a_login_or_no_network_suffices(
    loggers: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, value: str
) -> None:
    if name == "NETRC":
        netrc = tmp_path / ".netrc"
        netrc.write_text("machine api.wandb.ai login user password k\n")
        netrc.chmod(0o600)
    monkeypatch.setenv(name, value)
    loggers.check_logger("wandb")


def test_a_restart_continues_the_run_of_wandb(
    loggers: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import os  # noqa: PLC0415

    from trainkit.run.run import Run  # noqa: PLC0415 (on the path by the fixture)

    folder = tmp_path / "runs" / "titan" / "mine"
    folder.mkdir(parents=True)
    run = Run(run_dir=folder, data_dir=folder, checkpoint_dir=folder, rank=0, local_rank=0, world_size=1)
    ids = []
    for _ in range(2):
        for name in ("WANDB_RUN_ID", "WANDB_PROJECT", "WANDB_RUN_NAME", "WANDB_RESUME"):
            monkeypatch.delenv(name, raising=False)
        loggers.name_wandb_run(run)
        ids.append(os.environ["WANDB_RUN_ID"])
        assert (os.environ["WANDB_PROJECT"], os.environ["WANDB_RUN_NAME"]) == ("titan", "mine")
    assert ids[0] == ids[1]
    assert len(ids[0]) == 16
