"""Record of a run: parses the line that trainkit.run.report --record prints into typed values."""

import datetime
import re
from typing import Literal

from pydantic import BaseModel, ConfigDict

from ops.account.deploy_command import deploy_command
from ops.account.head_node import unpacked
from ops.usage import OpsError
from training_cluster.stack_names import DEFAULT_CLUSTER

# Control characters as JSON escapes them, behind whole pairs of backslashes: names and words are a user's.
_CONTROL = re.compile(rb"(?<!\\)((?:\\\\)*)\\(?:u00(?:[01][0-9a-f]|7f|[89][0-9a-f])|[bfnrt])")


class _Record(BaseModel):
    # A newer cluster may send more fields.
    model_config = ConfigDict(extra="ignore", frozen=True)


class Start(_Record):
    """A start of the training."""

    restart: int
    step: int
    time: datetime.datetime
    nodes: str
    node_count: int
    job: str
    seconds: float
    """Time until the ranks ended, or until the last row."""
    instance_type: str | None


class Use(_Record):
    """Time for which nodes of one kind were paid."""

    instance_type: str | None
    capacity: str | None
    rehearsal: bool
    node_s: float


class Goodput(_Record):
    """Paid time of all nodes by what they did."""

    node_s: dict[str, float]
    """Node-seconds of each part."""
    waiting_s: float
    """Seconds between two allocations of a job, without nodes."""
    save_s: float | None
    restart_s: float | None
    """Mean seconds of a save and of a restart, without those in the queue; None without any."""
    unseen_ends: int

    @property
    def paid_s(self) -> float:
        """Node-seconds of all parts."""
        return sum(self.node_s.values())


class Checkpoint(_Record):
    """A complete checkpoint that existed when the run was read."""

    step: int
    time: datetime.datetime
    bytes: int


class Profile(_Record):
    """Profile of some steps."""

    kind: Literal["trace", "memory"]
    step: int
    """Last step of the window."""
    folder: str
    files: int
    """Number of files, one a rank."""
    bytes: int


class Network(_Record):
    """Network that NCCL took between the nodes in the last start."""

    transports: list[str]
    """Libfabric (EFA), Socket (TCP) or IB."""
    hosts_on_tcp: list[str]
    providers: list[str]
    nics: list[int]
    complaint: str
    """Description of its problem; empty without one."""


class NotFinite(_Record):
    """Values of a measure that were not finite."""

    count: int
    first_step: int


class Figure(_Record):
    """A published figure: an entry of a workload's figures.json."""

    what: str
    family: str
    nodes: int | None = None
    metric: str
    value: float
    unit: str
    source: str
    reproduced: bool
    message_gib: float | None = None
    """Message size of an all-reduce."""
    settings: dict[str, str | int] = {}
    """Settings of a run, and what its preparation noted, with which the figure can be compared."""


class Series(_Record):
    """A measure in buckets of rows; low and high are empty if every bucket is one row."""

    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]

    @property
    def values(self) -> list[float]:
        """Means of the buckets that have one."""
        return [value for value in self.mean if value is not None]


class Summary(_Record):
    """Measures of a run; all None without metrics. Rates are medians."""

    steps: int | None = None
    tokens: int | None = None
    world_size: int | None = None
    first_loss: float | None = None
    last_loss: float | None = None
    first_val_loss: float | None = None
    last_val_loss: float | None = None
    tokens_per_s: float | None = None
    seq_per_s: float | None = None
    mfu: float | None = None
    data_share: float | None = None
    memory_bytes: int | None = None
    busbw_gb_per_s: float | None = None
    message_bytes: int | None = None
    restarts: int | None = None


class Data(_Record):
    """Prepared data of a run."""

    described: list[str]
    """A sentence for each text."""
    tokens: int
    """Tokens of an epoch; 0 if unknown."""


class Run(_Record):
    """State of a run when it was read."""

    version: Literal[1]
    workload: str
    run: str
    rows: int
    begin: datetime.datetime | None
    last_time: datetime.datetime | None
    starts: list[Start]
    """Newest starts; start_count is the number of all starts."""
    start_count: int
    use: list[Use]
    goodput: Goodput | None = None
    """None if no row has a time, or of older scripts."""
    checkpoints: list[Checkpoint]
    checkpoint_count: int
    profiles: list[Profile] = []
    """Profiles of its steps; none from older scripts."""
    outcome: str | None
    failed: str | None
    exit_code: int | None
    """Exit code of the last start; None while it runs, or if its node was lost."""
    settings: dict[str, str]
    """Settings of the last start; empty for a run of older scripts."""
    summary: Summary
    damaged_rows: int = 0
    """Damaged lines of metrics, starts and ends, which are left out; 0 from older scripts."""
    network: Network | None = None
    """None of a run on one node or on CPUs, or of older scripts."""
    data: Data | None = None
    """None before the preparation, or of older scripts."""
    not_finite: dict[str, NotFinite]
    figures: list[Figure]
    axes: dict[str, list[float | None]]
    series: dict[str, Series]

    @property
    def name(self) -> str:
        """Name in the form WORKLOAD/RUN."""
        return f"{self.workload}/{self.run}"

    @property
    def is_rehearsal(self) -> bool:
        """True if the run had the sizes of a rehearsal."""
        return self.settings.get("TRAINING_REHEARSAL") == "1"

    @property
    def state(self) -> str:
        """Sentence about the end of the run, if it ended."""
        if self.failed:
            return f"failed: {self.failed}"
        if self.outcome:
            return self.outcome
        if self.exit_code is not None:
            return "finished" if self.exit_code == 0 else f"ended with exit code {self.exit_code}"
        return "runs, or was killed" if self.starts else "not started"


def unpack(line: str, *, cluster: str = DEFAULT_CLUSTER) -> Run:
    """Parse the line of a record that a cluster's scripts wrote. Raises OpsError if it is not a record."""
    try:
        return Run.model_validate_json(_CONTROL.sub(rb"\1?", unpacked(line)))
    except ValueError as error:  # pydantic's, too
        raise OpsError(
            f"The answer is not a record of a run: {str(error).splitlines()[0]}\n"
            f"  type:   {deploy_command(cluster)}, if its scripts are of another version"
        ) from None
