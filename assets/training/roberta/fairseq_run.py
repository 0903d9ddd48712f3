"""fairseq-train as one rank of this cluster: its configuration, our task in it, and resuming."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils, options
from fairseq.data import iterators
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.distributed import utils as distributed
from fairseq_cli import train as program
from gradient_norms import finite_norms
from recorded_task import CHECKPOINT, PROGRESS, RecordedMaskedLM, Recorder
from settings import DICTIONARY, Settings, check_checkpoint, fairseq_arguments
from trainkit import network
from trainkit.data.indexed import Indexed
from trainkit.run import checkpoints, outcome, process_group, stacks
from trainkit.run.finite import end_diverged
from trainkit.run.run import Run, die
from trainkit.run.world import check_world


def train(settings: Settings, run: Run, *, device: torch.device, data: Indexed) -> None:
    """Train one rank, from the newest checkpoint to the last step, or to the step when SIGTERM arrives."""
    dictionary = data.files[DICTIONARY][1]
    newest = checkpoints.resume_from(run)
    progress: dict[str, Any] = {}
    if newest:
        with checkpoints.loading(newest):
            progress = json.loads((newest / PROGRESS).read_text(encoding="utf-8"))
            check_checkpoint(newest, progress, dictionary_sha256=dictionary)
    recorder = Recorder(
        run=run,
        settings=settings,
        symbols=data.noted["symbols"],
        progress=progress,
        dictionary_sha256=dictionary,
    )
    if recorder.step < settings.max_steps:
        recorder.cfg = configuration(settings, run, data=data.folder, newest=newest)
        call_fairseq(recorder, run, device=device, newest=newest)
    elif run.is_first:  # fairseq would make one more update before it checks
        print(f"finished: {newest} is at MAX_STEPS ({settings.max_steps})")
    if recorder.stopped:
        outcome.stopped(run, recorder.step)
    else:
        outcome.finished(run)
    process_group.leave()


def configuration(settings: Settings, run: Run, *, data: Path, newest: Path | None) -> Any:
    """Return the configuration that fairseq-train makes of its command line."""
    arguments = fairseq_arguments(
        settings,
        data=data,
        # Recorder.save uses the folder of checkpoints; what fairseq saves at a failed step is none.
        save_dir=run.run_dir,
        restore_file=newest / CHECKPOINT if newest else None,
        rank=run.rank,
        local_rank=run.local_rank,
        world_size=run.world_size,
    )
    parsed = options.parse_args_and_arch(options.get_training_parser(), arguments)
    # fairseq interprets --bf16 as training on a TPU.
    parsed.tpu = False
    return convert_namespace_to_omegaconf(parsed)


def patient(run: Run, work: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of fairseq that all ranks call between steps, with the timeouts of such work."""

    def called(*arguments: Any, **named: Any) -> Any:
        with process_group.patient(run, work):
            return function(*arguments, **named)

    return called


def load_position(iterator: Any, state: Mapping[str, Any]) -> None:
    """Load the position in the data, which fairseq counts in batches of one rank."""
    own = iterator.num_shards * RecordedMaskedLM.recorder.settings.batch_size
    consumed = state.get("iterations_in_epoch", 0) * state.get("micro_step", own)
    load_own_position(iterator, {**state, "iterations_in_epoch": consumed // own})


load_own_position = iterators.EpochBatchIterator.load_state_dict


def call_fairseq(recorder: Recorder, run: Run, *, device: torch.device, newest: Path | None) -> None:
    """Run fairseq-train's own main with our task and our saving, once all ranks have arrived."""
    RecordedMaskedLM.recorder = recorder
    iterators.EpochBatchIterator.load_state_dict = load_position
    if newest:
        checkpoint_utils.load_checkpoint = checkpoints.loading(newest)(checkpoint_utils.load_checkpoint)
    checkpoint_utils.save_checkpoint = patient(run, "saving", recorder.save)
    program.validate = patient(run, "validating", program.validate)

    stacks.register(run)
    if device.type == "cuda":
        network.record(run)

    def checked_world(cfg: Any) -> Any:
        process_group.lengthen()
        check_world(device)
        if run.is_first:
            print(f"world size {run.world_size}" + (f", resuming from {newest}" if newest else ""))
        return cfg

    try:
        distributed.call_main(recorder.cfg, program.main, after_distributed_init_fn=checked_world)
    except Exception as error:
        # fairseq checks the gradients on all ranks after their exchange. It then looks for the module that
        # they come from, which may fail by itself.
        reason = error if isinstance(error, FloatingPointError) else error.__context__
        if not isinstance(reason, FloatingPointError):
            raise
        step = recorder.step + 1
        if norms := finite_norms(str(reason)):
            # The settings are not the cause, and another start may get other nodes.
            die(
                f"step {step}: the ranks' gradients differ after their exchange: norms from {min(norms)} "
                f"to {max(norms)}: a GPU may be at fault. Look at the health of the nodes: sinfo -R"
            )
        words = " ".join(str(reason).split("\n")[0].split())
        end_diverged(run, step=step, found=f"the gradients are not finite; fairseq ended with: {words}")
