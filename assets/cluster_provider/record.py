"""The provider's record of a request: one SSM parameter, and one log stream of its stages.

CloudFormation shows one line for half an hour; `trainctl status` reads the record instead. The record also
carries the provider's state from one call of CDK's framework to the next, since each call gets the same
event, and from a request to its rollback, which restores the fleet's former status.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
from dataclasses import asdict, dataclass, field, fields

import boto3
import messages
from botocore.exceptions import BotoCoreError, ClientError
from errors import TransientError

_STREAM = "progress"
_STORED_KEYS = {"kind": "request", "received": "began", "accepted": "begun"}
"""Keys of the stored value that differ from the fields; `trainctl status` and earlier deploys have these."""
# A standard parameter holds 4 KB; stages and names need little of them.
_MAX_MESSAGES_BYTES = 1600
_MAX_STAGES = 24
_MAX_FORMER = 8
# CloudFormation waits for 60 minutes; the last poll needs time to save the logs and to explain the failure.
_TIME_LIMIT = datetime.timedelta(minutes=55)
_SETTLING_TIME = datetime.timedelta(minutes=2)


class RecordError(TransientError):
    """SSM gave no answer, or an error."""


class LostError(TransientError):
    """The record no longer exists: a Delete has ended and removed it, or a person did."""


class SupersededError(Exception):
    """Another request has begun since: this one's record is out of date."""


@dataclass
class Record:
    """State of one request. `save` stores it in SSM; `enter` too, unless SSM fails."""

    request_id: str
    kind: str
    """Create, Update or Delete."""
    cluster_name: str
    received: str
    """UTC time (ISO 8601) at which on_event got the request."""
    stages: list[tuple[str, str]] = field(default_factory=list)
    """Name and UTC time (ISO 8601) of each stage, in order."""
    messages: str = ""
    """Messages of the library's validators and of the provider."""
    adopts: bool = False
    """A Create that found a working cluster of this stack, which it updates to its config."""
    accepted: bool = False
    """The library accepted the request: a stack is being created, updated or deleted."""
    checked: bool = False
    """A dry run of this request passed, or was refused only because the fleet runs."""
    unchanged: bool = False
    """The cluster already had the requested config."""
    fleet_before: str | None = None
    """Fleet's status before the provider stopped it; None if it did not, or has restored the fleet."""
    replaces: str | None = None
    """Creation time of a failed cluster of this stack that must be deleted before this one is created."""
    removing: bool = False
    """The deletion of that failed cluster was requested."""
    former: list[str] = field(default_factory=list)
    """Ids of the last requests before this one: Lambda may deliver an event again, hours late."""
    _is_fresh: bool = field(default=False, init=False)
    """True if this call of the function opened the record."""

    @classmethod
    def load(cls) -> Record | None:
        """Read the record from SSM; None if it is absent, or in an unknown format. Raises RecordError."""
        ssm = boto3.client("ssm")
        try:
            value = ssm.get_parameter(Name=_parameter())["Parameter"]["Value"]
        except ssm.exceptions.ParameterNotFound:
            return None
        except (ClientError, BotoCoreError) as error:
            raise RecordError(f"{_parameter()}: {error}") from error
        try:
            written = json.loads(value)
            keys = {each.name: _STORED_KEYS.get(each.name, each.name) for each in fields(cls) if each.init}
            return cls(**{name: written[key] for name, key in keys.items() if key in written})
        except (TypeError, ValueError):
            return None

    def follow(self, earlier: Record | None) -> None:
        """Add an earlier request of the same stack, and the ones before it, to `former`."""
        if earlier:
            self.former = [*earlier.former, earlier.request_id][-_MAX_FORMER:]

    def open(self) -> None:
        """Write the record to SSM over the record of an earlier request. Raises RecordError."""
        self._write()
        self._is_fresh = True

    def enter(self, stage: str, message: str = "") -> None:
        """Publish the beginning of a stage; a failure to write it is only logged, since only people read it.

        Raises:
            SupersededError: another request has begun since.
            LostError: the record was removed since.
        """
        if message:
            self.messages = messages.fit(message, _MAX_MESSAGES_BYTES)
        if self.stages and self.stages[-1][0] == stage and not message:
            return
        if not self.stages or self.stages[-1][0] != stage:
            self.stages = [*self.stages, (stage, now())][-_MAX_STAGES:]
        line = f"{self.kind} {self.cluster_name}: {stage}{': ' if message else ''}{message}"
        print(line)
        try:
            self.save()
            _log(line)
        except RecordError as error:
            print(f"{self.cluster_name}: the stage could not be published: {error}")

    @property
    def is_new(self) -> bool:
        """True if this call of the function opened the record, rather than an earlier event."""
        return self._is_fresh

    @property
    def is_settled(self) -> bool:
        """True once every reader of SSM sees the value that was written when the request began."""
        return self._age > _SETTLING_TIME

    @property
    def is_late(self) -> bool:
        """True once the time that CloudFormation gives a custom resource is up, but for an explanation."""
        return self._age > _TIME_LIMIT

    @property
    def _age(self) -> datetime.timedelta:
        received, at = (datetime.datetime.fromisoformat(time) for time in (self.received, now()))
        return at - received

    def save(self) -> None:
        """Write the record to SSM. Raises RecordError, LostError, SupersededError."""
        # No request follows a Delete; and SSM may not yet return a value that was written a moment ago.
        if self.kind != "Delete" and not self._is_fresh:
            found = Record.load()
            if not found:
                raise LostError(f"{_parameter()} was removed")
            if found.received > self.received:
                raise SupersededError(self.cluster_name)
        self._write()

    def delete(self) -> None:
        """Delete the record from SSM, at the end of a Delete. Raises RecordError."""
        ssm = boto3.client("ssm")
        try:
            ssm.delete_parameter(Name=_parameter())
        except ssm.exceptions.ParameterNotFound:
            return
        except (ClientError, BotoCoreError) as error:
            raise RecordError(f"{_parameter()} stays: {error}") from error

    def _write(self) -> None:
        values = {name: value for name, value in asdict(self).items() if not name.startswith("_")}
        value = json.dumps({_STORED_KEYS.get(name, name): value for name, value in values.items()})
        try:
            boto3.client("ssm").put_parameter(Name=_parameter(), Value=value, Type="String", Overwrite=True)
        except (ClientError, BotoCoreError) as error:
            raise RecordError(f"{_parameter()}: {error}") from error


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
    """Return the UTC time (ISO 8601)."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec=timespec)
