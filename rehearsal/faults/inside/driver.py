"""Driver of the cases, with the real handler and the real library; runs in .venv-pcluster.

Called by: rehearsal/faults/worker.py, with the environment of a client of the local AWS. The first line of
standard input describes the site (`bystander`, `bucket`, `config`), each further one is a case. For each case
it prints one JSON object.
"""

import copy
import json
import sys
import time
from typing import Any

from cloudformation import Stack
from injection import Fault, Wire
from inventory import Inventory
from named import CASES
from scene import Named, Scene
from shared_clients import share_clients

_UP = {"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"}


class Driver:
    """One cluster at a time, and the results of each case."""

    def __init__(self, *, bystander: str, bucket: str, config: dict[str, Any]) -> None:
        self._config, self._count = config, 0
        self._wire = Wire()
        self._inventory = Inventory(bystander=bystander, bucket=bucket)
        self._stack = self._new_stack()
        self._before, self._data = self._inventory.resources(), self._inventory.data()

    def _new_stack(self) -> Stack:
        self._count += 1
        return Stack(f"case-{self._count}", self._wire.watched)

    def try_out(self, case: dict[str, Any]) -> dict[str, Any]:
        """Prepare the state that the case needs, run it, and report the state afterwards."""
        started = time.monotonic()
        request = CASES[case["named"]].request if "named" in case else case["request"]
        wrong = list[str]()
        self._prepare(request, wrong)
        fault = case.get("fault")
        self._stack.reasons.clear()
        self._wire.arm(Fault(**fault) if fault else None)
        try:
            if "named" in case:
                self._act(CASES[case["named"]])
            else:
                self._do(request)
        except AssertionError as error:
            wrong.append(str(error))
        except Exception as error:  # a failed case, and not the end of the run
            wrong.append(f"{type(error).__name__}: {error}")
        calls, fired, ended = self._wire.calls, self._wire.fired or "named" in case, self._stack.status
        reasons = list(self._stack.reasons)
        self._wire.arm(None)
        orphans = self._left_behind() if ended in ("ROLLBACK_COMPLETE", "DELETE_COMPLETE") else []
        try:
            self._again(request)
        except RuntimeError as error:
            wrong.append(str(error))
        return {
            "id": case["id"],
            "request": request,
            "fired": fired,
            "ended": ended,
            "next": self._stack.status,
            "reasons": reasons,
            "stuck": wrong + self._stuck(request),
            "orphans": orphans + (self._left_behind() if request == "Delete" else []),
            "lost": sorted(self._data - self._inventory.data()),
            "calls": [] if fault else calls,
            "seconds": round(time.monotonic() - started, 1),
        }

    def look(self) -> dict[str, Any]:
        """Report the existing resources and data, for cases that run elsewhere."""
        return {"resources": sorted(self._inventory.resources()), "data": sorted(self._inventory.data())}

    def _prepare(self, request: str, wrong: list[str]) -> None:
        if self._stack.status in _UP and request == "Create":
            self._stack.destroy()
            left = self._left_behind()
            if self._stack.status != "DELETE_COMPLETE" or left:
                wrong.append(f"the stack before: {self._stack.status}, left behind: {left}")
        if self._stack.status not in _UP:
            self._stack = self._new_stack()
            self._before = self._inventory.resources()
        if request != "Create" and self._stack.status not in _UP:
            self._stack.deploy(self._config)

    def _do(self, request: str) -> None:
        if request == "Delete":
            self._stack.destroy()
            return
        if request == "Update":
            self._config = _with_other_capacity(self._config)
        self._stack.deploy(self._config)

    def _act(self, named: Named) -> None:
        scene = Scene(
            stack=self._stack, wire=self._wire, config=self._config, wanted=_with_other_capacity(self._config)
        )
        named.act(scene)
        if named.changes:
            self._config = scene.wanted

    def _again(self, request: str) -> None:
        """Run the next deploy or destroy, without a fault."""
        if request == "Delete":
            if self._stack.status != "DELETE_COMPLETE":
                self._stack.destroy()
        elif self._stack.status != f"{request.upper()}_COMPLETE":
            self._stack.deploy(self._config)

    def _stuck(self, request: str) -> list[str]:
        if request == "Delete":
            gone = self._stack.status == "DELETE_COMPLETE"
            return [] if gone else [self._stack.status, *self._stack.reasons]
        wrong = []
        if self._stack.status not in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
            wrong += [self._stack.status, *self._stack.reasons]
        if self._stack.fleet() != "RUNNING":
            wrong.append(f"fleet {self._stack.fleet()}")
        elif self._stack.capacity() != _capacity(self._config):
            wrong.append(f"the cluster has {self._stack.capacity()}, {_capacity(self._config)} was asked for")
        return wrong

    def _left_behind(self) -> list[str]:
        return sorted(self._inventory.resources() - self._before)


def _capacity(config: dict[str, Any]) -> str:
    return str(config["Scheduling"]["SlurmQueues"][0]["CapacityType"])


def _with_other_capacity(config: dict[str, Any]) -> dict[str, Any]:
    """Return a config with a change that requires a stopped fleet: the longest path of an update."""
    changed = copy.deepcopy(config)
    queue = changed["Scheduling"]["SlurmQueues"][0]
    queue["CapacityType"] = {"ONDEMAND": "SPOT", "SPOT": "ONDEMAND"}[queue["CapacityType"]]
    return changed


def main() -> None:
    """Run cases until standard input ends."""
    # As in Lambda, a character that UTF-8 lacks is an error.
    results, sys.stdout = sys.stdout, sys.stderr
    sys.stdout.reconfigure(encoding="utf-8", errors="strict")  # type: ignore[union-attr]  # as in Lambda
    share_clients()
    driver = Driver(**json.loads(sys.stdin.readline()))
    for line in sys.stdin:
        print(f"=== {line.strip()}", flush=True)
        case = json.loads(line)
        questions = {"names": lambda: {"named": list(CASES)}, "look": driver.look}
        answer = questions[case["id"]]() if case["id"] in questions else driver.try_out(case)
        print(json.dumps(answer), file=results, flush=True)


if __name__ == "__main__":
    main()
