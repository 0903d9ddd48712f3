"""A head node for the commands about jobs: Slurm's programs are played, `dd`, `stat`, `ls`, `df` are real.

What is sent goes through the rehearsal's own stand-in for the head node's agent, so a command that it would
refuse fails here, too, and one that hangs hangs.
"""

import base64
import gzip
import importlib.util
import json
import os
import shlex
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ops.account.head_node import HeadNode, find_head_node
from rehearsal.local_aws.head_node.agent import Agent, Outcome
from rehearsal.local_aws.head_node.run_commands import SLURM, run
from tests.unit.ops.fake_account import Account, Refused
from training_cluster.stack_names import DEFAULT_CLUSTER

HEAD_NODE = "i-0aaaaaaaaaaaaaaaa"
Call = Callable[..., tuple[int, str, str]]
SINFO = "gpu*|up|idle~|4|gpu-dy-p4d-[1-4]|Unknown|none\n"
UNKNOWN_JOB = "slurm_load_jobs error: Invalid job id specified"
# What separates the fields is the caller's choice; lines of other formats remain.
SAY = """say() {
  local text="$1" end= word
  for word in "${arguments[@]}"; do
    case $word in --Format=*:/*) end="${word##*:}" ;; --delimiter=*) end="${word#*=}" ;; esac
  done
  if [[ $end ]]; then text="${text//|/$end}" text="${text//$'\\n'/$end$'\\n'}"; fi
  printf %s "$text"
}
arguments=("$@")
"""


def job_line(
    state: str = "RUNNING",
    reason: str = "None",
    code: str = "0:0",
    *,
    id_: str = "30",
    nodes: int = 2,
    restarts: int = 1,
    name: str = "train",
    command: str = "/fsx/training/job.slurm gpt2 --note JobState=FAILED",
    output: str = "/fsx/runs/job-30.log",
    user: str = "ubuntu",
    dependency: str = "(null)",
    submitted: int | str = 1_790_000_000,
    started: int | str = 1_790_000_060,
    uid: int = 1000,
    account: str = "(null)",
) -> str:
    """Return a job as the fake squeue lists it."""
    listed = ("gpu", user, state, reason, nodes, "1:00", "1-00:00:00", name, command, dependency)
    job_id = "".join(id_.partition("_")[::2]).partition("+")[0]
    more = (job_id, uid, account, submitted, started, code, restarts, 1, output)
    return "|".join(map(str, (id_, *listed, *more))) + "\n"


def slurm_module() -> Any:
    """Return the module that trainctl sends to the head node."""
    spec = importlib.util.spec_from_file_location("slurm_of_tests", SLURM)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def slurm_answer(program: str, lines: str) -> str:
    """Return what the module prints where a program of Slurm prints these lines."""
    module = slurm_module()
    shape, record = {
        "sinfo": (module._SINFO, module._node),
        "squeue": (module._SQUEUE, module._job),
        "sacct": (module._SACCT, module._job),
    }[program]
    names = [pair.partition("=")[0] for pair in shape.split()]
    rows = [record(dict(zip(names, line.split("|"), strict=True)))._asdict() for line in lines.splitlines()]
    fields = list(rows[0]) if rows else []
    said = json.dumps({"fields": fields, "rows": [list(row.values()) for row in rows], "is_cut": False})
    return base64.b64encode(gzip.compress(said.encode())).decode()


class PlayedCluster:
    """An account with one cluster, and what its head node answers."""

    def __init__(self, root: Path) -> None:
        self.shared, self._bin, self._calls = root / "fsx", root / "bin", root / "calls"
        for folder in (self.shared / "runs", self.shared / "training", root / "efs", self._bin):
            folder.mkdir(parents=True)
        self.environment = {
            "PATH": f"{self._bin}:{os.environ['PATH']}",
            "TRAINING_SHARED": str(self.shared),
            "TRAINING_EFS": str(root / "efs"),
            "TRAINING_ETC": str(root / "etc"),
            "TMPDIR": str(root),
        }
        self.sent: list[dict[str, Any]] = []
        """What Systems Manager was asked to run."""
        self.delivery_s: float | None = None
        """How long a command may wait for the agent, where a test does not wait for TimeoutSeconds."""
        self.taken: set[str] = set()
        """Ids of the commands that the agent has taken."""
        self._agent = Agent()
        self._began: set[str] = set()
        self._cancelled: dict[str, threading.Event] = {}
        self._ended: dict[str, Outcome] = {}
        self.has_nodes("p4d.24xlarge", recipe="gpu")
        self.says("sinfo", SINFO)
        self.says("squeue", "")
        self.answers = {
            "DescribeStacks": {"Stacks": [stack("TrainingClusterStack", HeadNodeInstanceId=HEAD_NODE)]},
            "SendCommand": self._send,
            "GetCommandInvocation": self._invocation,
            "CancelCommand": self._cancel,
        }
        self.account = Account(self.answers)
        self.client = self.account.client

    @property
    def head_node(self) -> HeadNode:
        return find_head_node(DEFAULT_CLUSTER, self.client)

    @property
    def calls(self) -> list[list[str]]:
        """Slurm's programs that were called, with their arguments."""
        lines = self._calls.read_text().splitlines() if self._calls.exists() else []
        return [shlex.split(line) for line in lines]

    def called(self, program: str) -> list[list[str]]:
        """Return the calls of one of Slurm's programs."""
        return [each for each in self.calls if each[0] == program]

    def says(self, program: str, output: str, *, error: str = "", code: int = 0) -> None:
        """Set the answer of one of Slurm's programs."""
        self.does(program, f"say {shlex.quote(output)}; printf %s {shlex.quote(error)} >&2; exit {code}")

    def does(self, program: str, script: str) -> None:
        """Let one of Slurm's programs run a script, whose `say` prints lines with the requested separator."""
        path = self._bin / program
        # One write a call: calls at the same time do not mix.
        note = f'printf "%s\\n" "$(printf "%q " {program} "$@")" >>{self._calls}'
        path.write_text(f"#!/bin/bash\n{note}\n{SAY}{script}\n")
        path.chmod(0o755)

    def has_nodes(self, instance_type: str, *, recipe: str, **others: str) -> None:
        """Set the facts about the nodes of SINFO's partition, as in job_environment.py."""
        file = self.shared.parent / "etc" / "partitions" / "gpu.env"
        file.parent.mkdir(parents=True, exist_ok=True)
        family = instance_type.partition(".")[0]
        facts = {"FAMILY": family, "INSTANCE_TYPE": instance_type, "IMAGE_RECIPE": recipe, **others}
        file.write_text("# Facts.\n" + "".join(f"export {name}='{facts[name]}'\n" for name in facts))

    def has_workload(self, name: str) -> None:
        (self.shared / "training" / name).mkdir()
        (self.shared / "training" / name / "train.sh").write_text("true\n")

    def has_log(self, job_id: str, text: str | bytes) -> Path:
        path = self.shared / "runs" / f"job-{job_id}.log"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def _send(self, asked: dict[str, Any]) -> Any:
        if HEAD_NODE not in asked["InstanceIds"]:
            return Refused("InvalidInstanceId")
        id_ = str(uuid.uuid4())
        self.sent.append(asked)
        self._cancelled[id_] = threading.Event()
        threading.Thread(target=self._run, args=(id_, asked), daemon=True).start()
        return {"Command": {"CommandId": id_}}

    def _run(self, id_: str, asked: dict[str, Any]) -> None:
        self._ended[id_] = run(
            asked["Parameters"]["commands"][0],
            self.environment,
            agent=self._agent,
            delivery_s=self.delivery_s or asked.get("TimeoutSeconds", 3600),
            execution_s=float(asked["Parameters"].get("executionTimeout", ["3600"])[0]),
            cancelled=self._cancelled[id_],
            take=lambda: self.taken.add(id_),
            start=lambda: self._began.add(id_),
        )

    def _cancel(self, asked: dict[str, Any]) -> Any:
        self._cancelled[asked["CommandId"]].set()
        return {}

    def _invocation(self, asked: dict[str, Any]) -> Any:
        id_ = asked["CommandId"]
        began = {"ExecutionStartDateTime": "2026-01-01T00:00:00Z" if id_ in self._began else ""}
        if (ended := self._ended.get(id_)) is None:
            return {"Status": "InProgress" if id_ in self.taken else "Pending", "ResponseCode": -1, **began}
        return {
            "Status": ended.status,
            "StatusDetails": ended.details,
            "ResponseCode": ended.code,
            "StandardOutputContent": ended.stdout,
            "StandardErrorContent": ended.stderr[:8_000],
            **began,
        }


def stack(name: str, *, status: str = "CREATE_COMPLETE", **outputs: str) -> dict[str, Any]:
    """Return a stack as CloudFormation describes it."""
    return {
        "StackName": name,
        "StackStatus": status,
        "CreationTime": "2026-01-01",
        "Outputs": [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()],
    }
