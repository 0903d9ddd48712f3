"""Checkpoints of gpt2: the first rank copies its state to the host, and a thread writes the copy meanwhile.

All ranks have the same state, so nothing is sharded. torch.distributed.checkpoint makes the copy. The files
are safetensors, since its own format has pickles, which can run code, and since transformers and INIT_FROM
read a checkpoint as a folder of weights.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import torch
from behind import Mark
from rank import Rank
from safetensors.torch import load_file, save_file
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
from trainkit.local_checkpoints import LocalCheckpoints
from trainkit.resuming import own_options
from trainkit.run import checkpoints, process_group
from trainkit.run.run import die

WEIGHTS, OPTIMIZER, PROGRESS = "model.safetensors", "optimizer.safetensors", "progress.json"
BY_ACCELERATE = "optimizer.bin"
"""File of a checkpoint that an older version wrote, with accelerate."""


class Saving:
    """Saves during the steps, one at a time; ranks other than the first do nothing."""

    def __init__(self, rank: Rank, model: Any, optimizer: Any, local: LocalCheckpoints) -> None:
        self._rank, self._model, self._optimizer = rank, rank.accelerator.unwrap_model(model), optimizer
        self._on_gpu = gpu = rank.accelerator.device.type == "cuda"
        # On a GPU machine a copy in a thread would also occupy a GPU with DEVICE=cpu.
        options = StagingOptions(
            use_pinned_memory=gpu,
            use_shared_memory=False,
            use_async_staging=gpu,
            use_non_blocking_copy=gpu,
        )
        self._stager = DefaultStager(options)
        self._local = local
        # A copy of its own, since a save to the shared file system may take minutes.
        self._local_stager = DefaultStager(options)
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        self._copied: Future[Any] = self._thread.submit(dict)
        self._written: Future[Any] = self._copied
        self._local_copied: Future[Any] = self._copied
        optimizer.optimizer.register_step_pre_hook(self._before_update)

    def save(self, *, step: int, tokens: int) -> None:
        """Begin to save the state behind a step, when the save before is done; every rank calls it."""
        with process_group.patient(self._rank.run, "saving"):
            self._written.result()
            if self._rank.run.is_first:
                self._begin(step, tokens)

    def save_locally(self, *, step: int, tokens: int) -> None:
        """Begin to save the state to the nodes' own disks; every rank calls it."""
        if self._local.writes:
            self._local_copied = self._copy(self._local_stager)
        progress = self._progress(step, tokens)
        self._local.save(step, self._local_copied, lambda folder, state: write_state(folder, state, progress))

    def finish(self) -> None:
        """Wait until what was saved has its name, or die if that fails; every rank calls it."""
        with process_group.patient(self._rank.run, "saving"):
            self._written.result()
            self._local.finish()

    def _begin(self, step: int, tokens: int) -> None:
        progress = self._progress(step, tokens)
        self._copied = self._copy(self._stager)
        self._written = self._thread.submit(self._write, self._copied, progress)

    def _progress(self, step: int, tokens: int) -> dict[str, Any]:
        rank = self._rank
        scaler = rank.accelerator.scaler
        return {
            "step": step,
            "tokens": tokens,
            "shape": dataclasses.asdict(rank.shape),
            "data": rank.manifest.sum_of_tokens,
            "order": rank.order("train").note(),
            "scaler": scaler.state_dict() if scaler else None,
        }

    def _copy(self, stager: DefaultStager) -> Future[Any]:
        # The copy has a stream of its own, which does not wait for the step.
        Mark(self._rank.accelerator.device).wait()
        state, copied = state_of(self._model, self._optimizer), Future[Any]()
        if self._on_gpu:
            copied = stager.stage(state)
        else:  # at once, since the next step would only compete with the copy for the cores
            try:
                copied.set_result(stager.stage(state))
            except Exception as error:
                copied.set_exception(error)
        return copied

    def _before_update(self, *_: object) -> None:
        """Wait until the state is copied, which an update changes; dies if the save has failed."""
        self._copied.result()
        wait([self._local_copied])  # LocalCheckpoints reports its failure
        if self._written.done():
            self._written.result()

    def _write(self, copied: Future[Any], progress: dict[str, Any]) -> None:
        rank, step, settings = self._rank, progress["step"], self._rank.settings
        with checkpoints.saving(rank.run), checkpoints.writing(rank.run, step, settings=settings) as folder:
            self._model.config.save_pretrained(str(folder))
            shutil.copyfile(rank.prepared.shards / "tokenizer.json", folder / "tokenizer.json")
            write_state(folder, copied.result(), progress)


def write_state(folder: Path, state: dict[str, Any], progress: dict[str, Any]) -> None:
    """Write what a start continues from."""
    (folder / PROGRESS).write_text(json.dumps(progress) + "\n", encoding="utf-8")
    for name, tensors in state.items():
        save_file(tensors, folder / name, metadata={"format": "pt"})
        # safetensors lets the owner alone read it; a colleague may start from these weights.
        shutil.copymode(folder / PROGRESS, folder / name)


def state_of(model: Any, optimizer: Any) -> dict[str, dict[str, torch.Tensor]]:
    """Return the tensors of a checkpoint, which are no copies, by their file and their name in it."""
    own = dict(model.named_parameters())
    state = {f"{name}.{key}": x for name, each in own.items() for key, x in optimizer.state[each].items()}
    return {WEIGHTS: {name: each.detach() for name, each in own.items()}, OPTIMIZER: state}


def resume(rank: Rank, model: Any, optimizer: Any, local: LocalCheckpoints) -> tuple[int, int]:
    """Load the newest checkpoint; return its step and tokens, or (0, 0)."""
    shared = checkpoints.resume_from(rank.run)
    found = local.restore(shared) or shared
    if found is None:
        return 0, 0
    with local.loading(found):
        progress = json.loads((found / PROGRESS).read_text(encoding="utf-8"))
        step, tokens = int(progress["step"]), int(progress["tokens"])
        if progress["shape"] != dataclasses.asdict(rank.shape):
            die(f"{found} holds another model ({progress['shape']}): give its settings, or another RUN_NAME.")
        if progress["data"] != rank.manifest.sum_of_tokens:
            die(
                f"{found} was trained on other data than {rank.prepared.shards}: give its CORPUS and text, "
                f"or begin another RUN_NAME with its weights (INIT_FROM={found})."
            )
        rank.order("train").check(found, progress.get("order"))
        if (found / BY_ACCELERATE).is_file():
            with own_options(optimizer):
                rank.accelerator.load_state(str(found))
        else:
            _load(found, rank, model, optimizer)
            if (scaler := rank.accelerator.scaler) and progress["scaler"]:
                scaler.load_state_dict(progress["scaler"])
    rank.run.say(f"resuming from {found}")
    return step, tokens


def _load(checkpoint: Path, rank: Rank, model: Any, optimizer: Any) -> None:
    weights, state = (load_file(checkpoint / name) for name in (WEIGHTS, OPTIMIZER))
    parameters = dict(rank.accelerator.unwrap_model(model).named_parameters())
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])
    for name, each in state.items():
        owner, _, key = name.rpartition(".")
        # A copy, since what was loaded is the mapped file.
        optimizer.state[parameters[owner]][key] = each.to(rank.accelerator.device, copy=True)
