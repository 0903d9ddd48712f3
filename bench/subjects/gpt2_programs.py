"""GPT-2 in two programs, with the same sizes, on the same tokens: ours and nanoGPT."""

import pickle
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.measuring.environments import Baseline
from bench.measuring.programs import Command, watch
from bench.subjects.workloads import Workload

_NANOGPT_FILES = ("train.py", "model.py", "configurator.py")


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Sizes of the model and of its measured training."""

    layers: int
    heads: int
    width: int
    context: int
    vocab_size: int
    """A multiple of 64, so that no program pads it."""
    batch: int
    steps: int
    after: int
    """Number of warm-up steps, which are not counted."""

    @property
    def tokens_a_step(self) -> int:
        """Tokens of one update."""
        return self.batch * self.context

    @property
    def parameters(self) -> int:
        """Parameters without the table of positions, as in 6N of MFU; first and last matrix are the same."""
        return self.layers * (12 * self.width**2 + 13 * self.width) + (self.vocab_size + 2) * self.width


class Programs:
    """Runs of both programs; each returns tokens/s from the median of its seconds per step."""

    def __init__(
        self, workload: Workload, sizes: Sizes, *, threads: int, device: str, precision: str
    ) -> None:
        self._workload, self._sizes, self._threads = workload, sizes, threads
        self._device, self._precision = device, precision
        self._runs = 0
        workload.prepare("data", self._settings())
        self._tokens = _join(workload)

    def ours(self, *, compiled: bool | None = None) -> float:
        """Run the workload gpt2 on one rank.

        Args:
            compiled: COMPILE=yes or no; None for the workload's default, which is yes on GPUs only.
        """
        settings = self._settings() | {
            "compile": {None: "", True: "yes", False: "no"}[compiled],
            "batch_size": self._sizes.batch,
            "max_steps": self._sizes.steps,
            "warmup_steps": self._sizes.steps,
            "checkpoint_every": 10 * self._sizes.steps,
            "eval_sequences": 0,
            "log_every": 1,
            "omp_num_threads": self._threads,
        }
        self._runs += 1
        watched = self._workload.train_on_data(f"ours-{self._runs}", settings)
        return self._speed(watched.step_s(r"^step (\d+): loss", after=self._sizes.after))

    def nanogpt(self, nanogpt: Baseline, *, compiled: bool) -> Callable[[], float]:
        """Copy karpathy/nanoGPT and return a work that runs its train.py on our tokens."""
        folder = self._workload.shared / "nanoGPT"
        data = folder / "data" / "ours"
        data.mkdir(parents=True, exist_ok=True)
        for name in _NANOGPT_FILES:
            shutil.copyfile(nanogpt.folder / name, folder / name)
        shutil.copyfile(self._tokens["train"], data / "train.bin")
        shutil.copyfile(self._tokens["val"], data / "val.bin")
        with (data / "meta.pkl").open("wb") as meta:
            pickle.dump({"vocab_size": self._sizes.vocab_size}, meta)
        command: Command = [self._workload.python, "train.py", *self._nanogpt_arguments(compiled=compiled)]

        def work() -> float:
            watched = watch(command, cwd=folder, environment=self._environment("nanogpt"))
            return self._speed(watched.step_s(r"^iter (\d+): loss", after=self._sizes.after))

        return work

    def _speed(self, step_s: float) -> float:
        return self._sizes.tokens_a_step / step_s

    def _environment(self, run: str) -> dict[str, str]:
        return self._workload.environment(run, {"omp_num_threads": self._threads})

    def _settings(self) -> dict[str, object]:
        sizes = self._sizes
        return {
            "device": self._device,
            "mixed_precision": self._precision,
            "init_from": "scratch",
            "corpus": "machine",
            "vocab_size": sizes.vocab_size,
            "gpt2_layers": sizes.layers,
            "gpt2_heads": sizes.heads,
            "gpt2_width": sizes.width,
            "gpt2_context": sizes.context,
        }

    def _nanogpt_arguments(self, *, compiled: bool) -> list[str]:
        sizes = self._sizes
        options: dict[str, object] = {
            "dataset": "ours",
            "device": self._device,
            "dtype": {"no": "float32", "bf16": "bfloat16"}[self._precision],
            "compile": compiled,
            # GPT-2 has biases, and so has ours.
            "bias": True,
            "n_layer": sizes.layers,
            "n_head": sizes.heads,
            "n_embd": sizes.width,
            "block_size": sizes.context,
            "batch_size": sizes.batch,
            "gradient_accumulation_steps": 1,
            "max_iters": sizes.steps,
            "warmup_iters": sizes.steps,
            "eval_iters": 1,
            "eval_interval": 10 * sizes.steps,
        }
        return [f"--{name}={value}" for name, value in options.items()]


def _join(workload: Workload) -> dict[str, Path]:
    """Join our shards into one file per split: uint16 ids, which is nanoGPT's format as well."""
    joined = {split: workload.shared / f"{split}.bin" for split in ("train", "val")}
    for split, file in joined.items():
        with file.open("wb") as out:
            for shard in sorted(workload.data.glob(f"machine-vocab-*/{split}-*.bin")):
                out.write(shard.read_bytes())
    return joined
