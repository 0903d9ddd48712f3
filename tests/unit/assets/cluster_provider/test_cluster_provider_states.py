"""The provider's state machine as a table (states.txt): state and events to calls, stages, answer.

A line is a name, what happens, and after `//` parts of the last message; one with `!` is not in it. What
happens is a list of words:

    create update rollback delete   on_event takes the request; create! if it refuses
    wait done fail                  a poll says not yet, success, or fails
    CREATE_COMPLETE, gone           the cluster gets a status, or no longer exists
    throttle:find refuse:find       the library's next such call gets no answer, or a refusal
    lost:create                     the call is done, and its answer lost
    of:1                            what follows is of the first request that on_event took
    =create,delete                  all changes so far; a lone = for none

{a,b} is two lines. `Story` has a method for every other word.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.assets.cluster_provider.fakes.aws import PARAMETER
from tests.unit.assets.cluster_provider.fakes.library import (
    ANOTHER_STACK,
    LOGIN_NODES,
    NEVER,
    OR_DRAIN,
    OWNER_TAG,
    STACK,
    STOP,
    config,
    refused_change,
)
from tests.unit.assets.cluster_provider.fakes.provider import Asked, Provider

JOBS = {"Status": "Success", "StandardOutputContent": "7 gpt2 (ann, 1:02)/0/\n8 bert (bob, 0:10)/0/\n"}
SPOT = {"ClusterConfiguration": json.dumps(config("SPOT"))}
REQUESTS: dict[tuple[str, str], Callable[[Provider], Asked]] = {
    ("create", ""): Provider.create,
    ("create", "spot"): lambda provider: provider.create(**SPOT),
    ("create", "drain"): lambda provider: provider.create(OnBusy="drain"),
    ("update", ""): Provider.update,
    ("update", "same"): lambda provider: provider.ask(provider.event("Update", request="Update-2")),
    ("update", "again"): lambda provider: provider.update(request="Update-2"),
    ("update", "renamed"): lambda provider: provider.ask(provider.event("Update", ClusterName="other")),
    ("update", "default"): lambda provider: provider.ask(provider.event("Update", OnBusy=None, **SPOT)),
    ("rollback", ""): Provider.roll_back,
    ("delete", ""): Provider.delete,
    ("delete", "empty"): lambda provider: provider.delete(ClusterConfiguration=""),
    ("delete", "open"): lambda provider: provider.delete(ClusterConfiguration="{"),
    ("delete", "null"): lambda provider: provider.delete(ClusterConfiguration="null"),
    ("delete", "generated-id"): lambda provider: provider.ask(
        provider.event("Delete") | {"PhysicalResourceId": "stack-1ABC"}
    ),
}
"""By word and argument; another argument of update is its on_busy."""
FORMER = {"fields": '{"request_id": "1", "request": "Create", "former_field": 1}', "broken": "broken"}
CHANGES = {"stop": STOP, "never": NEVER, "drain": OR_DRAIN, "login": LOGIN_NODES}


class Story:
    """One line of the table, as it happens to a provider."""

    def __init__(self, provider: Provider) -> None:
        self.provider, self.library, self.aws = provider, provider.library, provider.aws
        self.requests: list[Asked] = []
        self.asked: Asked
        self.message = ""

    def word(self, word: str) -> None:
        """Do what a word says, or check it."""
        name, _, argument = word.partition(":")
        if word.startswith("="):
            assert self.library.changes == [each for each in word[1:].split(",") if each]
        elif word.isupper():
            self._becomes(word)
        elif word.endswith("!"):
            self.message = self.provider.refuses(
                lambda: self._request(name.rstrip("!"), argument.rstrip("!"))
            )
        elif name in ("create", "update", "rollback", "delete"):
            self.asked = self._request(name, argument)
            self.requests.append(self.asked)
        else:
            method = getattr(self, name.replace("-", "_"))
            method(*([argument] if argument else []))

    def _becomes(self, status: str) -> None:
        if self.library.cluster is None:
            self.library.exists(status)
        else:
            more = {"stack_status": "UPDATE_ROLLBACK_FAILED"} if status == "STUCK" else {}
            self.library.becomes("UPDATE_FAILED" if more else status, **more)

    def _request(self, kind: str, argument: str = "") -> Asked:
        ask = REQUESTS.get((kind, argument)) or (lambda provider: provider.update(on_busy=argument))
        return ask(self.provider)

    def of(self, number: str) -> None:
        self.asked = self.requests[int(number) - 1]

    def poll(self) -> None:
        self.asked.poll()

    def wait(self) -> None:
        assert self.asked.answer() == {"IsComplete": False}

    def done(self) -> None:
        node = (self.library.cluster and self.library.cluster.head_node_instance_id) or "none"
        data = {} if self.asked.event["RequestType"] == "Delete" else {"Data": {"HeadNodeInstanceId": node}}
        assert self.asked.answer() == {"IsComplete": True, **data}

    def fail(self) -> None:
        self.message = self.asked.fails()

    def ends(self) -> None:
        """Let a deletion end."""
        for word in ("wait", "now:DELETE_IN_PROGRESS", "wait", "gone"):
            self.word(word)
        assert self.asked.answer() == {"IsComplete": True}

    def gone(self) -> None:
        self.library.is_gone()

    def other(self, status: str) -> None:
        self.library.exists(status, owner=ANOTHER_STACK)

    def unmarked(self, status: str) -> None:
        self.library.exists(status, tags={})

    def throttle(self, call: str) -> None:
        self.library.fail(call, self.provider.throttled())

    def throttle_second(self, call: str) -> None:
        self.library.fail(call, self.provider.throttled(), after=1)

    def refuse(self, call: str) -> None:
        self.library.fail(call, self.provider.refused("no right"))

    def terminated(self) -> None:
        """Have no head node, as the library answers an update."""
        refused = self.provider.refused("Unable to retrieve head node information.")
        self.library.fail("check_update", refused)

    def warns(self) -> None:
        self.library.validation = ("WARNING B: maybe",)

    def failed(self, resource: str) -> None:
        values = {"resourceStatus": "UPDATE_FAILED", "resourceStatusReason": "quota"}
        self.library.events = [{"logicalResourceId": resource, **values}]

    def lost(self, call: str) -> None:
        self.library.fail(call, self.provider.throttled(), late=True)

    def lost_refused(self, call: str) -> None:
        self.library.fail(call, self.provider.refused(), late=True)

    def vanish(self, call: str) -> None:
        self.library.fail(call, self.provider.errors.ClusterNotFoundError("gone"))

    def wants(self, changes: str) -> None:
        """Refuse updates while the fleet runs."""
        self.library.wants = [refused_change(CHANGES[each]) for each in changes.split("+") if each != "none"]

    def impossible(self, changes: str) -> None:
        self.library.impossible = [refused_change(CHANGES[each]) for each in changes.split("+")]

    def busy(self, nodes: str) -> None:
        self.library.running, self.aws.invocations = int(nodes), [JOBS]

    def nojobs(self) -> None:
        self.aws.invocations = [JOBS | {"StandardOutputContent": ""}]

    def fleet(self, status: str) -> None:
        self.library.fleet = status

    def meanwhile(self, event: str) -> None:
        """Let something happen in the middle of the next change."""
        happens: dict[str, Callable[[], object]] = {
            "other": lambda: self.other("CREATE_COMPLETE"),
            "poll": self.requests[-1].poll,
            "deletion": lambda: self._request("delete").poll(),
        }
        self.library.meanwhile = happens.get(event, lambda: self.requests.append(self._request(event, "")))

    def away(self, service: str) -> None:
        self.aws.unreachable.add(service)

    def deny(self, call: str) -> None:
        self.aws.denied[call] = "ThrottlingException" if call.startswith("ssm") else "AccessDenied"

    def back(self) -> None:
        self.aws.unreachable.clear()
        self.aws.denied.clear()

    def parent(self, status: str) -> None:
        self.aws.parent_status = status

    def minutes(self, number: str) -> None:
        self.provider.clock.goes_on(minutes=int(number))

    def forget(self) -> None:
        """Lose the record."""
        self.aws.parameters.clear()

    def another(self, hour: str) -> None:
        """Give another request the record; ours came at 12."""
        self.own = self.aws.parameters[PARAMETER]
        began = f"2026-01-01T{hour}:00:00.000000+00:00"
        self.provider.record.Record(
            request_id="Another-1", kind="Update", cluster_name="training", received=began
        ).open()

    def regained(self) -> None:
        self.aws.parameters[PARAMETER] = self.own

    def former(self, text: str) -> None:
        """Have a record of another version."""
        self.aws.parameters[PARAMETER] = FORMER[text]

    def clear(self) -> None:
        self.library.asked.clear()

    def nohead(self) -> None:
        self.library.becomes(self.library.cluster.status, head_node_instance_id=None)

    def nofiles(self) -> None:
        self.library.files = False

    def now(self, status: str) -> None:
        assert (self.library.cluster.status if self.library.cluster else "none") == status

    def count(self, call: str) -> None:
        name, _, number = call.partition("*")
        assert [each.split()[0] for each in self.library.asked].count(name) == int(number)

    def last(self, calls: str) -> None:
        assert self.library.asked[-2:] == calls.split(",")

    def stages(self, names: str) -> None:
        listed = names.replace("_", " ").split(",")
        assert self.provider.stages[-len(listed) :] == listed

    def record(self, value: str) -> None:
        key, _, wanted = value.partition("=")
        assert str(self.provider.record_value[key]) == wanted

    def norecord(self) -> None:
        assert PARAMETER not in self.aws.parameters

    def saved(self, number: str) -> None:
        """Check how often a failure was saved; after 0, that nothing was."""
        failures = [key for key in self.aws.objects if key.endswith("/failures.json")]
        assert len(failures) == int(number)
        assert failures or not self.aws.objects

    def capacity(self, wanted: str) -> None:
        assert self.library.config["Scheduling"]["SlurmQueues"] == [{"CapacityType": wanted}]

    def strategy(self, wanted: str) -> None:
        settings = self.library.config["Scheduling"]["SlurmSettings"]
        assert settings == ({} if wanted == "none" else {"QueueUpdateStrategy": wanted})

    def messages(self) -> None:
        self.message = self.provider.record_value["messages"]


def _expanded(line: str) -> list[str]:
    choice = re.search(r"\{([^}]*)\}", line)
    if not choice:
        return [line]
    return [each for word in choice[1].split(",") for each in _expanded(line.replace(choice[0], word, 1))]


def _lines() -> list[str]:
    text = (Path(__file__).parent / "states.txt").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [each for line in lines for each in _expanded(line)]


@pytest.mark.parametrize("line", _lines(), ids=lambda line: line.partition(":")[0])
def test_a_line_of_the_table_holds(provider: Provider, line: str) -> None:
    happens, *parts = line.partition(": ")[2].split(" // ")
    story = Story(provider)
    for word in happens.split():
        story.word(word)
    wrong = [part for part in parts if (part.lstrip("!") in story.message) == part.startswith("!")]
    assert wrong == [], story.message


def test_the_checked_config_is_created_with_the_mark(provider: Provider) -> None:
    own, mark = {"Key": "team", "Value": "language"}, {"Key": OWNER_TAG, "Value": STACK}
    provider.create(ClusterConfiguration=json.dumps(config() | {"Tags": [own]})).poll()
    assert provider.library.config == provider.library.checked == config() | {"Tags": [own, mark]}
    provider.library.becomes("CREATE_COMPLETE")
    provider.update().poll()
    assert provider.library.config == config("SPOT") | {"Tags": [mark]}
