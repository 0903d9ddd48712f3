"""LOGGER: what Weights & Biases and MLflow need before a run, and a logger of MLflow."""

from __future__ import annotations

import json
import netrc
import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlparse

from trainkit.run.run import Run, die, reason

WANDB_RUN, MLFLOW_RUN = "wandb_run", "mlflow_run"
"""Files of a run's folder with the id of its run at W&B and MLflow, which a restart continues."""


def check_logger(logger: str) -> None:
    """Die if a logger lacks its key or address; for prepare.py, since ranks and their nodes cost more."""
    if logger == "wandb" and os.environ.get("WANDB_MODE") not in {"offline", "disabled"}:
        host = urlparse(os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai")).hostname or ""
        if not os.environ.get("WANDB_API_KEY") and not _has_login(host):
            die(
                "LOGGER=wandb needs a key: `trainctl secret set WANDB_API_KEY` and "
                "WANDB_API_KEY=file:.training-cluster/WANDB_API_KEY, or `wandb login` on the head node keeps "
                "it in ~/.netrc. WANDB_MODE=offline writes files alone."
            )
    if logger == "mlflow" and not os.environ.get("MLFLOW_TRACKING_URI"):
        die("LOGGER=mlflow needs the address of its server: MLFLOW_TRACKING_URI=https://...")


def _has_login(host: str) -> bool:
    try:
        return netrc.netrc().authenticators(host) is not None
    except (OSError, netrc.NetrcParseError):
        return False


def name_wandb_run(run: Run) -> None:
    """Name the run for W&B's own client, so that a restart continues it; variables that are set win."""
    file = run.run_dir / WANDB_RUN
    if not file.is_file():
        file.write_text(os.urandom(8).hex() + "\n", encoding="utf-8")
    os.environ.setdefault("WANDB_PROJECT", run.run_dir.parent.name)
    os.environ.setdefault("WANDB_RUN_NAME", run.run_dir.name)
    os.environ.setdefault("WANDB_RUN_ID", file.read_text(encoding="utf-8").strip())
    os.environ.setdefault("WANDB_RESUME", "allow")


class MlflowLogger:
    """Logger of MLflow, with the two methods of torchtitan's loggers, which have no such one in 0.3.0."""

    def __init__(self, run: Run, *, config: Mapping[str, Any]) -> None:
        """Begin the run at MLFLOW_TRACKING_URI, or continue it; die if the server refuses it.

        Args:
            config: settings that are kept with the run.
        """
        import mlflow  # noqa: PLC0415 (seconds)

        self._mlflow, file = mlflow, run.run_dir / MLFLOW_RUN
        known = file.read_text(encoding="utf-8").strip() if file.is_file() else None
        try:
            mlflow.set_experiment(os.environ.get("MLFLOW_EXPERIMENT_NAME", run.run_dir.parent.name))
            started = mlflow.start_run(run_id=known, run_name=None if known else run.run_dir.name)
            file.write_text(started.info.run_id + "\n", encoding="utf-8")
            mlflow.log_text(json.dumps(config, indent=1, default=str), "config.json")
        except Exception as error:  # of the network, the server or the key
            said = reason(error, line=0)
            die(f"MLflow at MLFLOW_TRACKING_URI refuses the run ({said}): give LOGGER= for none.")

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Send the numbers of a step in the background."""
        # MLflow's names have letters, digits and some signs.
        named = {re.sub(r"[^\w./ -]", "_", name): value for name, value in metrics.items()}
        self._mlflow.log_metrics(named, step=step, synchronous=False)

    def close(self) -> None:
        """Send what is left, and end the run."""
        self._mlflow.end_run()
