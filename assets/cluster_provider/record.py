"""The provider's notebook: one SSM parameter, and one log stream of its stages.

CloudFormation shows one line for half an hour; `make status` reads this instead. What must still be
known when CDK's framework calls again lies here too: an event is the same each time, and a second
request (a rollback) must know what the first one did to the fleet.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
from dataclasses import asdict, dataclass, field, fields

import boto3
import messages
from answers import TransientError
from botocore.exceptions import BotoCoreError, ClientError

_STREAM = "progress"
# A standard parameter holds 4 KB; stages and names take little of it.
_MAX_MESSAGES_BYTES = 1600
_MAX_STAGES = 24
_MAX_FORMER = 8
# CloudFormation waits for 60 minutes; a poll that finds the time up must still save and explain.
_TIME_LIMIT = datetime.timedelta(minutes=55)
_SETTLING_TIME = datetime.timedelta(minutes=2)


class RecordError(TransientError):
    """SSM did not answer as it should."""


class LostError(TransientError):
    """The notes are gone: a Delete has ended and removed them, or somebody did."""


class SupersededError(Exception):
    """Another request has begun since: what this one knows no longer holds."""


@dataclass
class Record:
    """What one request did so far. Saved by `save`; `enter` saves as well, where it can."""

    request_id: str
    request: str
    """Create, Update or Delete."""
    cluster_name: str
    began: str
    """UTC time (ISO 8601) at which on_event got the request."""
    stages: list[tuple[str, str]] = field(default_factory=list)
    """Name and UTC time (ISO 8601) of each stage, in order."""
    messages: str = ""
    """What the library's validators and the provider had to say."""
    adopts: bool = False
    """A Create that found a cluster of ours which stands: its config decides, as in an Update."""
    begun: bool = False
    """The library took the request: a stack is being made, changed or deleted."""
    checked: bool = False
    """A dry run of this request passed, or was refused for nothing but the fleet that runs."""
    unchanged: bool = False
    """There was nothing to update."""
    fleet_before: str | None = None
    """Status of the compute fleet before the provider stopped it; None when it did not, or has mended it."""
    replaces: str | None = None
    """Creation time of a cluster of ours that has to go before this one can be made."""
    removing: bool = False
    """Its deletion was asked for."""
    former: list[str] = field(default_factory=list)
    """Ids of the requests before this one, the last ones: Lambda may deliver an event again, hours late."""
    _is_fresh: bool = field(default=False, init=False)
    """Whether this very call of the function opened it."""

    def enter(self, stage: str, message: str = "") -> None:
        """Note that a stage begins; for people, so that a failure to write it down stops nothing.

        Raises:
            SupersededError: another request has begun since.
            LostError: the notes were removed since.
        """
        if message:
            self.messages = messages.fit(message, _MAX_MESSAGES_BYTES)
        if self.stages and self.stages[-1][0] == stage and not message:
            return
        if not self.stages or self.stages[-1][0] != stage:
            self.stages = [*self.stages, (stage, now())][-_MAX_STAGES:]
        line = f"{self.request} {self.cluster_name}: {stage}{': ' if message else ''}{message}"
        print(line)
        try:
            self.save()
            _log(line)
        except RecordError as error:
            print(f"{self.cluster_name}: the stage could not be published: {error}")

    @property
    def is_new(self) -> bool:
        """Whether this very call of the function opened it: else an earlier event's work goes on with it."""
        return self._is_fresh

    @property
    def is_settled(self) -> bool:
        """True once everybody can read what was written to SSM when the request began."""
        return self._age > _SETTLING_TIME

    @property
    def is_late(self) -> bool:
        """Whether the time is up that CloudFormation gives a custom resource, but for an explanation."""
        return self._age > _TIME_LIMIT

    @property
    def _age(self) -> datetime.timedelta:
        began, at = (datetime.datetime.fromisoformat(time) for time in (self.began, now()))
        return at - began

    def save(self) -> None:
        """Write it to SSM. Raises RecordError, LostError, SupersededError."""
        # Nothing comes after a Delete; and what was written a moment ago may not be read yet.
        if self.request != "Delete" and not self._is_fresh:
            found = load()
            if not found:
                raise LostError(f"{_parameter()} was removed")
            if found.began > self.began:
                raise SupersededError(self.cluster_name)
        self._write()

    def follow(self, earlier: Record | None) -> None:
        """Remember an earlier request of the same stack."""
        if earlier:
            self.former = [*earlier.former, earlier.request_id][-_MAX_FORMER:]

    def open(self) -> None:
        """Write it to SSM in the place of an earlier request's. Raises RecordError."""
        self._write()
        self._is_fresh = True

    def _write(self) -> None:
        value = json.dumps({name: value for name, value in asdict(self).items() if not name.startswith("_")})
        try:
            boto3.client("ssm").put_parameter(Name=_parameter(), Value=value, Type="String", Overwrite=True)
        except (ClientError, BotoCoreError) as error:
            raise RecordError(f"{_parameter()}: {error}") from error


def forget() -> None:
    """Remove it, at the end of a Delete. Raises RecordError."""
    ssm = boto3.client("ssm")
    try:
        ssm.delete_parameter(Name=_parameter())
    except ssm.exceptions.ParameterNotFound:
        return
    except (ClientError, BotoCoreError) as error:
        raise RecordError(f"{_parameter()} stays: {error}") from error


def load() -> Record | None:
    """Read it; None when there is none, or nothing that this version understands. Raises RecordError."""
    ssm = boto3.client("ssm")
    try:
        value = ssm.get_parameter(Name=_parameter())["Parameter"]["Value"]
    except ssm.exceptions.ParameterNotFound:
        return None
    except (ClientError, BotoCoreError) as error:
        raise RecordError(f"{_parameter()}: {error}") from error
    try:
        written = json.loads(value)
        known = [each.name for each in fields(Record) if each.init]
        return Record(**{name: written[name] for name in known if name in written})
    except (TypeError, ValueError):
        return None


def _parameter() -> str:
    return os.environ["PROGRESS_PARAMETER"]


def _log(line: str) -> None:
    group, logs = os.environ["PROGRESS_LOG_GROUP"], boto3.client("logs")
    events = [{"timestamp": int(datetime.datetime.now(datetime.UTC).timestamp() * 1000), "message": line}]
    try:
        with contextlib.suppress(logs.exceptions.ResourceAlreadyExistsException):
            logs.create_log_stream(logGroupName=group, logStreamName=_STREAM)
        logs.put_log_events(logGroupName=group, logStreamName=_STREAM, logEvents=events)
    except (ClientError, BotoCoreError) as error:
        raise RecordError(f"{group}: {error}") from error


def now(timespec: str = "seconds") -> str:
    """UTC time (ISO 8601)."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec=timespec)
