"""CDK's Provider framework, emulated around the real handler on a fake clock; runs in .venv-pcluster.

Between two polls the cluster's stack and fleet finish their changes, without waiting.
"""

import datetime
import importlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from injection import KilledError

_MAX_POLLS, _POLL_INTERVAL = 116, datetime.timedelta(seconds=30)
"""The framework's time from cluster.py, in longer steps, since here each poll finds the last step done."""
sleep = time.sleep
"""The real sleep; the provider's own pauses take no time."""
time.sleep = lambda _seconds: None

# The provider's own modules; its `library` sets HOME before it imports ParallelCluster.
handler: Any = importlib.import_module("handler")
parent_stack: Any = importlib.import_module("parent_stack")
record: Any = importlib.import_module("record")

Event = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of one request."""

    physical_id: str | None
    failure: str | None = None


class Framework:
    """The framework of one stack, which calls the handler.

    Args:
        parameter: name of the provider's SSM parameter, from the function's environment.
        watched: context manager around the provider's own calls.
        come_to_rest: waits until neither the cluster's stack nor its fleet is changing.
    """

    def __init__(
        self, *, parameter: str, watched: Callable[[], Any], come_to_rest: Callable[[], None]
    ) -> None:
        self._parameter, self._watched, self._come_to_rest = parameter, watched, come_to_rest
        self._happens_at: int | None = None
        self._happens: Callable[[], None] = lambda: None
        self._repeats = False
        self.clock_is_off = datetime.timedelta()
        """Seconds by which the clock of the polled function is ahead of on_event's."""

    def run(self, event: Event, *, stack_status: str) -> Outcome:
        """Call on_event and poll until the request ends.

        Args:
            stack_status: CloudFormation's status of the stack meanwhile.
        """
        answer = Event()
        with _stack_is(stack_status):
            try:
                for _ in range(2 if self._repeats else 1):
                    answer = self._call("on_event", event)
            except (
                Exception,
                KilledError,
            ) as error:  # CloudFormation counts every error of a Lambda as a failure
                physical_id = answer.get("PhysicalResourceId")
                return Outcome(physical_id=physical_id, failure=f"{event['RequestType']}: {error}")
            return self._poll(event | answer)

    def begin(self, event: Event, *, stack_status: str, polls: int) -> Event:
        """Call on_event and poll a number of times; return the event that is polled."""
        with _stack_is(stack_status):
            event = event | self._call("on_event", event)
            for poll in range(polls):
                if poll:
                    self._come_to_rest()
                self._call("is_complete", event)
        return event

    def go_on(self, event: Event, *, stack_status: str) -> Outcome:
        """Poll a request that `begin` started until it ends."""
        self._come_to_rest()
        with _stack_is(stack_status):
            return self._poll(event)

    @contextmanager
    def after_poll(self, number: int, happens: Callable[[], None]) -> Iterator[None]:
        """Call `happens` once, after the work of the nth poll; if it raises, the function dies."""
        self._happens_at, self._happens = number, happens
        try:
            yield
        finally:
            self._happens_at = None

    @contextmanager
    def repeating(self) -> Iterator[None]:
        """Deliver each event twice."""
        self._repeats = True
        try:
            yield
        finally:
            self._repeats = False

    def _poll(self, event: Event) -> Outcome:
        began, real_now = datetime.datetime.now(datetime.UTC), record.now
        ends = {"physical_id": event["PhysicalResourceId"]}
        try:
            for poll in range(1, _MAX_POLLS):
                passed = began + poll * _POLL_INTERVAL + self.clock_is_off
                record.now = lambda timespec="seconds", at=passed: at.isoformat(timespec=timespec)
                done = self._call("is_complete", event)["IsComplete"]
                if poll == self._happens_at:
                    self._happens_at = None
                    self._happens()
                if self._repeats:
                    done = self._call("is_complete", event)["IsComplete"] and done
                if done:
                    return Outcome(**ends)
                self._come_to_rest()
        except (Exception, KilledError) as error:  # as in `run`
            return Outcome(**ends, failure=f"{event['RequestType']}: {error}")
        finally:
            record.now = real_now
        return Outcome(**ends, failure=f"{event['RequestType']}: it did not end in time")

    def _call(self, function: str, event: Event) -> Event:
        os.environ["PROGRESS_PARAMETER"] = self._parameter
        with self._watched():
            answer: Event = getattr(handler, function)(event, None)
        return answer


@contextmanager
def _stack_is(status: str) -> Iterator[None]:
    """Give our stack this status; the real call is still made, so that it can fail."""
    ask = parent_stack._status
    parent_stack._status = lambda stack_id: (ask(stack_id), status)[1]
    try:
        yield
    finally:
        parent_stack._status = ask
