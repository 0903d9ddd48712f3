"""Node-local checkpoints: a faster tier beneath the shared checkpoints of trainkit.run.checkpoints.

Each node keeps the newest state of its ranks on its own disks, and with a sharded state also that of the node
before it. When the ranks start again in the same allocation, they agree on the newest step of which all parts
are left, and a node that lacks a part, such as a spare, gets it from one that has it. Parts belong to numbers
of ranks and not to nodes, which a lost node renumbers. Otherwise, and on another number of ranks, the run
continues from the shared checkpoint, whose saves and retention this tier does not touch.

torch.distributed.checkpoint has the same idea in _ReplicationStager, private and experimental, with pickles
and for an even number of ranks.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from trainkit import label, node_disk, sums
from trainkit.node_disk import Key
from trainkit.run import checkpoints, metrics, outcome, process_group
from trainkit.run.files import sync
from trainkit.run.run import Run, die, reason
from trainkit.run.settings import ranks_of_node
from trainkit.sums import LABEL

State = TypeVar("State")
ALL = "all"
"""The part that each node has where all ranks have the same state."""
STEP = "local_step"
"""File of the run with the step of the local checkpoint from which a start continues, for restarts.sh."""
_IDLE, _BUSY, _FAILED = range(3)
_LAST_S = 60


class LocalCheckpoints:
    """This rank's side of the node-local checkpoints; every rank calls its methods in the same order.

    Args:
        every: steps between two; 0 for none, and every method then does nothing.
        is_sharded: True if each rank has a part of its own, False if all have the same state.
    """

    def __init__(self, run: Run, *, every: int, is_sharded: bool) -> None:
        self._run, self._every, self._ranks = run, every, ranks_of_node()
        self._start = int(os.environ.get("START_NUMBER") or 0)
        self._node = os.environ.get("SLURMD_NODENAME") or f"node {run.rank // self._ranks}"
        self._is_sharded = is_sharded
        self.writes = every > 0 and (is_sharded or run.local_rank == 0)
        """True if this rank writes a part."""
        self._copies = is_sharded and run.world_size > self._ranks
        self._kept: set[Key] = set()
        self._newest: Key | None = None
        self._is_told = self._is_late = False
        self._restored: Path | None = None
        self._saving: Future[None] = Future()
        self._saving.set_result(None)
        self._group: dist.ProcessGroup | None = None
        if not every:
            return
        try:
            self._folder = node_disk.job_folder()
        except OSError as error:
            outcome.refused(run, sentence := f"CHECKPOINT_LOCAL_EVERY needs nodes with local disks: {error}.")
            die(sentence)
        self._thread = ThreadPoolExecutor(1, "local checkpoint")
        if dist.is_initialized():
            # One for the thread, and one for the steps.
            self._group = process_group.background_group()
            self._agreement = dist.new_group(backend="gloo", timeout=process_group.START)

    def restore(self, shared: Path | None) -> Path | None:
        """Return the folder from which this rank continues; None for the shared checkpoint.

        The files have been compared with their sums.

        Args:
            shared: the newest shared checkpoint, if any; older steps are of no use.
        """
        if not self._every:
            return None
        run, wanted = self._run, self._gather(self._part(self._run.rank))
        first = checkpoints.step_of(shared) if shared else 1
        row = metrics.last_row(run.run_dir / metrics.FILE, of_step=True) if run.is_first else {}
        refused = {each.name for each in run.run_dir.glob(self._mark("*").name)} if run.is_first else set()
        last, refused = self._gather((row.get("step", 0), refused))[0]
        # The ranks of a node share the reading.
        parts = node_disk.parts_in(self._folder).items()
        own = {key: p[run.local_rank :: self._ranks] for key, p in parts}
        own = {key: p for key, p in own.items() if self._mark(key.name).name not in refused}
        while True:
            held = self._gather(own)
            found = node_disk.newest_of_all(held, wanted, first=first, last=last)
            if not found:
                break
            bad = {part for part in own.get(found, ()) if not node_disk.is_unchanged(self._path(found, part))}
            own[found] = [part for part in own.get(found, ()) if part not in bad]
            for part in bad:
                shutil.rmtree(self._path(found, part))
            if not any(self._gather(bool(bad))):
                break
        if found:
            nodes = range(0, run.world_size, self._ranks)
            by_node = [
                {part for rank in held[node : node + self._ranks] for part in rank.get(found, ())}
                for node in nodes
            ]
            found = self._distribute(found, node_disk.transfers(by_node, wanted, ranks=self._ranks))
        self._kept = {found} if found else set()
        if run.local_rank == 0:
            # Older ones, too, until the first save: the ranks have not loaded this one yet.
            kept = {key for key in own if found and key <= found} | self._kept
            node_disk.remove_others(self._folder, kept, start=self._start)
        if found:
            if run.is_first:
                with contextlib.suppress(OSError):  # a full disk
                    (run.run_dir / STEP).write_text(f"{found.step}\n", encoding="utf-8")
            self._restored = self._path(found, self._part(run.rank))
        return self._restored

    def _distribute(self, key: Key, plan: list[node_disk.Transfer]) -> Key | None:
        """Send parts to the nodes that lack them; return None if one could not be written."""
        names, is_well = self._gather(self._node), True
        for part, source, to in plan:
            path = self._path(key, part)
            if self._run.rank == source:
                _exchange(self._group, send=(path, to))
            elif self._run.rank == to:
                with contextlib.suppress(OSError):
                    self._receive(key, part, source)
                is_well = path.is_dir() and node_disk.is_unchanged(path)
        if not all(self._gather(is_well)):
            self._run.say("checkpoints: a node could not write its part of the node-local checkpoint")
            return None
        sent = "".join(f"; {names[to]} got {part} from {names[source]}" for part, source, to in plan[:8])
        self._run.say(f"checkpoints: all parts of step {key.step} are on the nodes' own disks{sent}")
        return key

    @contextlib.contextmanager
    def loading(self, checkpoint: Path) -> Iterator[None]:
        """Die as checkpoints.loading does; no start takes this local checkpoint again."""
        with checkpoints.loading(checkpoint):
            try:
                yield
            except Exception as error:
                self.forget(error)
                raise

    def forget(self, error: BaseException) -> None:
        """Mark the local checkpoint from which this rank could not continue, unless memory ran out.

        A neighbour may have another copy of the same bytes, so it is not enough to remove the part.
        """
        if self._restored and "out of memory" not in str(error):
            with contextlib.suppress(OSError):  # a full disk
                self._mark(self._restored.parent.name).touch()

    def due(self, step: int) -> bool:
        """Return True if a local checkpoint follows a step; every rank calls it once after each one.

        One that is not finished on all ranks is not waited for, and the next one is left out. All ranks end
        this tier when one of them cannot write, and go on training.
        """
        if not self._every or step % self._every:
            return False
        own = _BUSY if not self._saving.done() else _FAILED if self._saving.exception() else _IDLE
        state = torch.tensor(own)
        if dist.is_initialized():
            dist.all_reduce(state, op=dist.ReduceOp.MAX, group=self._agreement)
        if state == _FAILED:
            self._run.say(f"checkpoints: none on the nodes' own disks from step {step} on")
            self._every = 0
        elif state == _BUSY and not self._is_late:
            self._is_late = True
            self._run.say(f"checkpoints: no local one at step {step}, while the one before is being written")
        elif state == _IDLE and self._newest:
            self._kept = {self._newest}
        return int(state) == _IDLE

    def save(self, step: int, copied: Future[State], write: Callable[[Path, State], object]) -> None:
        """Begin to write this rank's part of the state behind a step.

        Args:
            copied: copy of the state, which the training does not change any more.
            write: writes the copy into a folder; a thread calls it.
        """
        self._newest = Key(step, self._start)
        if self.writes:
            self._saving = self._thread.submit(self._save, self._newest, copied, write, time.monotonic())

    def _save(
        self, key: Key, copied: Future[State], write: Callable[[Path, State], object], started: float
    ) -> None:
        failed: Exception | None = None
        path = self._path(key, self._part(self._run.rank))
        try:
            if self._run.local_rank == 0:
                node_disk.remove_others(self._folder, {*self._kept, key}, start=self._start)
            partial = _partial(path)
            partial.mkdir(parents=True)
            write(partial, copied.result())
            if self._run.is_first:  # the rows up to this step, which a restart does not write again
                sync(self._run.run_dir / metrics.FILE)
            node_disk.finish_part(partial, path)
        except Exception as error:
            failed, why = error, reason(error, line=-1)
            print(f"checkpoints: {self._node} cannot save to its own disks ({why})", flush=True)
        if self._copies:
            world = self._run.world_size
            before = (self._run.rank - self._ranks) % world
            to = (self._run.rank + self._ranks) % world
            self._receive(key, self._part(before), before, send=(None if failed else path, to))
        if failed:
            raise failed
        if not self._is_told:
            self._is_told = True
            copy = ", and of the node before it" if self._copies else ""
            self._run.say(
                f"step {key.step}: local checkpoint {path}{copy} after {time.monotonic() - started:.2f} s"
            )

    def _receive(self, key: Key, part: str, source: int, send: tuple[Path | None, int] | None = None) -> None:
        path = self._path(key, part)
        partial = _partial(path)
        shutil.rmtree(partial, ignore_errors=True)
        if _exchange(self._group, send=send, receive=(partial, source)):
            partial.rename(path)

    def finish(self) -> None:
        """Wait until the last part is written, but not long for a neighbour."""
        wait([self._saving], timeout=_LAST_S)

    def close(self) -> None:
        """Remove this job's parts from the node, when the run has finished."""
        if self._every and self._run.local_rank == 0:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _part(self, rank: int) -> str:
        return f"rank-{rank:05d}-of-{self._run.world_size:05d}" if self._is_sharded else ALL

    def _mark(self, name: str) -> Path:
        return self._run.run_dir / f"unloadable-{os.environ.get('SLURM_JOB_ID', '0')}-{name}"

    def _path(self, key: Key, part: str) -> Path:
        return self._folder / key.name / part

    def _gather(self, own: Any) -> list[Any]:
        found = [own] * self._run.world_size
        if dist.is_initialized():
            dist.all_gather_object(found, own, group=self._agreement)
        return found


def _partial(path: Path) -> Path:
    return path.with_name(f".{path.name}.partial")


def _exchange(
    group: dist.ProcessGroup | None,
    *,
    send: tuple[Path | None, int] | None = None,
    receive: tuple[Path, int] | None = None,
) -> bool:
    """Send the files of a part to a rank, and at the same time receive those of another part from a rank.

    Args:
        send: the part, None if there is none, and the rank that waits for it.
        receive: the folder for the other part, and the rank that sends it.

    Returns:
        True if a part was received. Raises OSError at the end if it could not be written.
    """
    own = _blocks(send[0]) if send and send[0] else iter(())
    to, source = send[1] if send else None, receive[1] if receive else None
    folder, names, failed = receive[0] if receive else Path(), [LABEL], None
    while to is not None or source is not None:
        # The number of a file in the label, and the bytes that follow; none at the end.
        number, block = next(own, (0, torch.empty(0, dtype=torch.uint8)))
        head = torch.zeros(2, dtype=torch.int64)
        _swap(group, torch.tensor([number, len(block)]), to, head, source)
        content = torch.empty(int(head[1]), dtype=torch.uint8)
        _swap(group, block, to if len(block) else None, content, source if len(content) else None)
        to, source = to if len(block) else None, source if len(content) else None
        if source is None or failed:
            continue
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / names[int(head[0])]).open("ab") as file:
                file.write(memoryview(content.numpy()))
            if not head[0]:
                names += json.loads(bytes(content.numpy()))["files"]
                for name in names:  # an empty one has no block
                    (folder / name).touch()
        except OSError as error:  # the others still send
            failed = error
    if failed:
        raise failed
    return len(names) > 1


def _blocks(part: Path) -> Iterator[tuple[int, torch.Tensor]]:
    """Yield the files of a part in blocks of bytes, each with the file's number; its label is number 0."""
    block = torch.empty(sums.PART, dtype=torch.uint8)
    for number, name in enumerate([LABEL, *label.noted(part)["files"]]):
        with (part / name).open("rb", buffering=0) as stream:
            while count := stream.readinto(memoryview(block.numpy())):
                yield number, block[:count]


def _swap(
    group: dist.ProcessGroup | None,
    own: torch.Tensor,
    to: int | None,
    other: torch.Tensor,
    source: int | None,
) -> None:
    """Send a tensor to a rank, and meanwhile receive one, each unless the rank is None."""
    sent = None if to is None else dist.isend(own, to, group=group)
    if source is not None:
        dist.recv(other, source, group=group)
    if sent:
        sent.wait()
