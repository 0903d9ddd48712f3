"""What is known of a run: the line that trainkit.run.report --record prints, as typed values."""

from __future__ import annotations

import base64
import binascii
import datetime
import zlib
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from ops.usage import OpsError

_LARGEST = 50_000_000


class _Told(BaseModel):
    # A newer cluster may tell more.
    model_config = ConfigDict(extra="ignore", frozen=True)


class Start(_Told):
    """One start of the training."""

    restart: int
    step: int
    time: datetime.datetime
    nodes: str
    node_count: int
    job: str
    seconds: float
    """Until the ranks ended, or the last row that is there."""
    instance_type: str | None


class Use(_Told):
    """How long nodes of one kind trained."""

    instance_type: str | None
    capacity: str | None
    rehearsal: bool
    node_s: float


class Checkpoint(_Told):
    """A whole checkpoint that was there when the run was read."""

    step: int
    time: datetime.datetime
    bytes: int


class NotFinite(_Told):
    """Values that were no numbers."""

    count: int
    first_step: int


class Figure(_Told):
    """A published figure of this family: an entry of a workload's figures.json."""

    what: str
    family: str
    nodes: int | None = None
    metric: str
    value: float
    unit: str
    source: str
    reproduced: bool
    message_gib: float | None = None
    """Of an all-reduce: the message's size."""


class Series(_Told):
    """One measure over buckets of rows; low and high are empty where every bucket is one row."""

    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]

    @property
    def values(self) -> list[float]:
        """The means that are there."""
        return [value for value in self.mean if value is not None]


class Summary(_Told):
    """The run's measures; all None without metrics. Rates are medians."""

    steps: int | None = None
    tokens: int | None = None
    world_size: int | None = None
    first_loss: float | None = None
    last_loss: float | None = None
    tokens_per_s: float | None = None
    seq_per_s: float | None = None
    mfu: float | None = None
    data_share: float | None = None
    memory_bytes: int | None = None
    busbw_gb_per_s: float | None = None
    message_bytes: int | None = None
    restarts: int | None = None


class Run(_Told):
    """A run, as it was when it was read."""

    version: Literal[1]
    workload: str
    run: str
    rows: int
    begin: datetime.datetime | None
    last_time: datetime.datetime | None
    starts: list[Start]
    """The newest; start_count says how many there were."""
    start_count: int
    use: list[Use]
    checkpoints: list[Checkpoint]
    checkpoint_count: int
    outcome: str | None
    failed: str | None
    exit_code: int | None
    """Of the last start; None while it runs, and where its node was lost."""
    settings: dict[str, str]
    """Of the last start; empty for a run of older scripts."""
    summary: Summary
    not_finite: dict[str, NotFinite]
    figures: list[Figure]
    axes: dict[str, list[float | None]]
    series: dict[str, Series]

    @property
    def name(self) -> str:
        """WORKLOAD/RUN."""
        return f"{self.workload}/{self.run}"

    @property
    def is_rehearsal(self) -> bool:
        """Whether it ran with a rehearsal's sizes."""
        return self.settings.get("TRAINING_REHEARSAL") == "1"

    @property
    def state(self) -> str:
        """How it ended, or that it did not."""
        if self.failed:
            return f"failed: {self.failed}"
        if self.outcome:
            return self.outcome
        if self.exit_code is not None:
            return "finished" if self.exit_code == 0 else f"ended with exit code {self.exit_code}"
        return "runs, or was killed" if self.starts else "not started"


def unpack(line: str) -> Run:
    """A record from its line. Raises OpsError where it is none."""
    try:
        packed = base64.b64decode(line.strip(), validate=True)
        # Not more than a record can be: the line is another machine's.
        content = zlib.decompressobj(wbits=31).decompress(packed, _LARGEST)
        return Run.model_validate_json(content)
    except (binascii.Error, zlib.error, ValidationError) as error:
        raise OpsError(
            f"What was read is no record of a run: {str(error).splitlines()[0]}\n"
            "  type:   npx cdk deploy TrainingClusterStack, if the cluster's scripts are of another version"
        ) from None
