"""Fields of the settings of a run of titan, which its other modules check and read. Needs no package."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from texts import STREAM
from trainkit.data.mixture import Part, parse_mixture
from trainkit.run.settings import LocalSettings, TrainSettings
from trainkit.sizes import Choice
from trainkit.source import ExportSettings

FILE = "titan.json"
"""File of a run's folder with the settings of its newest start, as they were chosen."""


@dataclass(frozen=True)
class Settings(TrainSettings, LocalSettings, ExportSettings):
    """Settings that may differ between runs. Degrees of parallelism are numbers of ranks."""

    model: str = "llama3"
    """Model of torchtitan."""
    size: str = ""
    """Size of the model, as torchtitan names it; empty for the smallest published one."""
    config: str = ""
    """PACKAGE:FUNCTION that returns a torchtitan Trainer.Config; replaces MODEL and SIZE."""
    task: Literal["pretrain", "sft"] = "pretrain"
    """pretrain, or sft for chats."""
    data: str = "raw"
    """raw, machine, a folder of /fsx/datasets, ORGANISATION/NAME[/CONFIGURATION][@REVISION] of the hub, or
    hf:ORGANISATION/NAME[/CONFIGURATION] to stream it; with weights A:0.7,B:0.3."""
    tokenizer: str = ""
    """A tokenizer.json, or a folder with one; empty for the weights' own, or one trained on the text."""
    vocab_size: int = 32_000
    """Tokens of a tokenizer that is trained on the text."""
    init_from: str = ""
    """Weights to start from: a repository of the Hugging Face hub, or a folder; empty for random weights."""
    lora_rank: int = 0
    """Rank of LoRA's matrices; 0 trains all weights."""
    seq_len: int = 4096
    """Tokens of a training sequence."""
    batch_size: int = 0
    """Sequences of a data-parallel rank and micro-step; 0 for what fits, 1 on CPUs."""
    global_batch: int = 0
    """Sequences of a step over all ranks; 0 for one micro-step a step."""
    pp: int = 0
    """Degree of pipeline parallelism; 0 for what fits, 1 on CPUs."""
    tp: int = 0
    """Degree of tensor parallelism; 0 for what fits, 1 on CPUs."""
    cp: int = 0
    """Degree of context parallelism; 0 for what fits, 1 on CPUs."""
    ep: int = 0
    """Degree of expert parallelism; 0 for what fits, 1 on CPUs."""
    shard: Literal["", "all", "node"] = ""
    """all: each rank has 1/ranks of the state (FSDP); node: 1/ranks of a node (HSDP); empty for what fits."""
    activation_checkpointing: Literal["", "none", "selective", "full"] = ""
    """none, selective or full: how many activations are computed again; empty for what fits."""
    compile: Literal["", "yes", "no"] = ""
    """yes or no; empty for yes on GPUs."""
    float8: Literal["yes", "mx", "no"] = "no"
    """Matrix products in float8: yes for Hopper GPUs and newer, mx (MXFP8) for Blackwell."""
    learning_rate: float = 0.0
    """Highest learning rate; the last one is a tenth of it. 0: 3e-4 from random weights, 2e-5 from others,
    2e-4 for LoRA, and with CONFIG that of the recipe."""
    device: Literal["", "cpu", "cuda"] = ""
    mixed_precision: Literal["bf16", "no"] = "no"
    checkpoint_every: int = 500
    eval_every: int = 500
    profile_steps: str = ""
    """FIRST-LAST: steps that PyTorch's profiler records, on GPUs their memory, too; empty for none."""
    logger: Literal["", "wandb", "mlflow"] = ""
    """wandb or mlflow: log there as well; TensorBoard's files are always written."""
    export: Literal["yes", "no"] = "yes"
    """yes: write the weights in Hugging Face's format after the last step."""

    @property
    def kept(self) -> tuple[str, ...]:
        """Names of the settings of the model."""
        return ("model", "size", "config", "lora_rank")

    @property
    def is_cpu(self) -> bool:
        """True for ranks on CPUs."""
        return self.device == "cpu"

    @property
    def parts(self) -> tuple[Part, ...]:
        """The texts of DATA with their weights; read_settings has checked them."""
        return parse_mixture(self.data)

    @property
    def trains_tokenizer(self) -> bool:
        """True if a tokenizer of VOCAB_SIZE tokens is trained on the text."""
        return not (self.tokenizer or self.init_from or self.data.startswith(STREAM))

    @property
    def of_memory(self) -> dict[str, int | str]:
        """The settings that decide on memory and that the user gave."""
        return {name: value for name in vars(Choice()) if (value := getattr(self, name))}

    def as_run_began(self, run_dir: Path) -> Settings:
        """Return the settings with GLOBAL_BATCH and LEARNING_RATE of the run's newest start, unless given.

        The defaults depend on the nodes and on the version of this program, and a run would train differently
        with others from there on.
        """
        if not (run_dir / FILE).is_file():
            return self
        noted = settings_of(run_dir)
        rate = 0.0 if self.config else noted.learning_rate
        return dataclasses.replace(
            self,
            global_batch=self.global_batch or noted.global_batch,
            learning_rate=self.learning_rate or rate,
        )


def settings_of(run_dir: Path) -> Settings:
    """Read the settings of a run's newest start."""
    noted = json.loads((run_dir / FILE).read_text(encoding="utf-8"))
    names = {field.name for field in dataclasses.fields(Settings)}
    return Settings(**{name: value for name, value in noted.items() if name in names})
