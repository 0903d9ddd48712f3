"""Each workload's preparation of a text, and the other programs' preparations; all with one vocabulary."""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.measuring.environments import Baseline, baseline_python, workload_python
from bench.measuring.programs import Command, Watched, run, watch
from bench.subjects import corpus
from bench.subjects.workloads import Settings, Workload
from training_cluster.paths import ROOT, TRAINING

VOCAB_SIZE = 4096
FILES = 4
"""Files of each corpus, so that two processes have work."""
_BASELINES = ROOT / "bench" / "baselines"
_ENCODER = "fairseq.examples.roberta.multiprocessing_bpe_encoder"
_MEGATRON = ("six==1.17.0", "regex==2026.11.15", "triton==3.9.0", "pydantic==2.14.3", "pydantic-core==2.50.4")
_MEGATRON_MORE = ("typing-inspection==0.4.5", "annotated-types==0.8.0", "typing-extensions==4.16.0")
# Packages in addition to those that transformers requires.
_NANOGPT = (
    "tiktoken==0.14.0",
    "datasets==5.2.0",
    "dill==0.4.1",
    "multiprocess==0.70.19",
    "pandas==3.1.1",
    "python-dateutil==4.0.0",
    "requests==2.34.2",
    "certifi==2026.10.18",
    "charset-normalizer==3.5.2",
    "urllib3==2.8.0",
    "xxhash==4.1.0",
)
SUFFIX = {"gpt2": "jsonl", "roberta": "txt", "titan": "jsonl", "gpt2-megatron": "jsonl"}
"""Suffix of the files that each workload reads."""


@dataclass(frozen=True, kw_only=True)
class Text:
    """A corpus of one size."""

    folder: Path
    size_bytes: int

    def files(self, suffix: str) -> list[Path]:
        """Return its files of one format, sorted."""
        return sorted(self.folder.glob(f"*.{suffix}"))


def make_text(folder: Path, size_bytes: int) -> Text:
    """Generate a corpus of a size."""
    return Text(folder=folder, size_bytes=corpus.write(folder, size_bytes=size_bytes, files=FILES))


def make_vocabulary(folder: Path, text: Text) -> Path:
    """Train the vocabulary that all preparations use; this is not timed."""
    command: Command = [workload_python("gpt2"), _BASELINES / "vocabulary.py", folder, str(VOCAB_SIZE)]
    run([*command, *text.files("txt")], cwd=ROOT, environment=os.environ)
    return folder


class Preparations:
    """Runs of preparations, each in a folder of its own that is removed afterwards."""

    def __init__(self, folder: Path, vocabulary: Path) -> None:
        self._folder, self._vocabulary, self._runs = folder, vocabulary, 0

    def ours(self, name: str, text: Text, *, workers: int) -> Watched:
        """Run a workload's prepare.sh, on a new DATA_DIR."""
        with_folder = self._new_folder()
        workload = Workload(name=name, shared=with_folder)
        raw = workload.data / "raw"
        raw.mkdir(parents=True)
        for file in text.files(SUFFIX[name]):
            (raw / file.name).symlink_to(file)
        source = "data" if name == "titan" else "corpus"
        settings: Settings = {source: "raw", "prepare_workers": workers, "vocab_size": VOCAB_SIZE}
        settings = {**settings, **self._give_vocabulary(workload, settings)}
        return self._end(with_folder, workload.prepare("run", settings, memory=True))

    def fairseq(self, text: Text, *, workers: int) -> Watched:
        """Run fairseq's encoder, then fairseq-preprocess, on the text as one file."""
        folder, python = self._new_folder(), workload_python("roberta")
        joined = _join(text.files("txt"), folder / "text")
        vocabulary = self._vocabulary
        encode: Command = [python, "-m", _ENCODER, "--keep-empty", "--workers", str(workers)]
        encode += ["--encoder-json", vocabulary / "encoder.json", "--vocab-bpe", vocabulary / "vocab.bpe"]
        encode += ["--inputs", joined, "--outputs", folder / "text.bpe"]
        binarise: Command = [
            python.with_name("fairseq-preprocess"),
            "--only-source",
            "--workers",
            str(workers),
        ]
        binarise += ["--srcdict", vocabulary / "dict.txt", "--trainpref", folder / "text.bpe"]
        binarise += ["--destdir", folder / "binary"]
        first = watch(encode, cwd=folder, environment=os.environ, memory=True)
        second = watch(binarise, cwd=folder, environment=os.environ, memory=True)
        both = Watched(
            seconds=first.seconds + second.seconds,
            lines=[*first.lines, *second.lines],
            peak_bytes=max(first.peak_bytes, second.peak_bytes),
        )
        return self._end(folder, both)

    def nanogpt(self, nanogpt: Baseline) -> Callable[[Text, int], Watched]:
        """Return a work that runs nanoGPT's preparation of OpenWebText on our text."""
        python = baseline_python("nanogpt", _NANOGPT, beside=workload_python("gpt2"))

        def work(text: Text, workers: int) -> Watched:
            folder = self._new_folder()
            script = folder / "prepare.py"
            shutil.copyfile(nanogpt.folder / "data" / "openwebtext" / "prepare.py", script)
            command: Command = [
                python,
                _BASELINES / "nanogpt_prepare.py",
                script,
                str(workers),
                self._vocabulary,
            ]
            environment = {**os.environ, "HF_HOME": str(folder / "hub"), "HF_DATASETS_OFFLINE": "1"}
            watched = watch(
                [*command, *text.files("jsonl")], cwd=folder, environment=environment, memory=True
            )
            return self._end(folder, watched)

        return work

    def megatron(self, megatron: Baseline) -> Callable[[Text, int], Watched]:
        """Return a work that runs Megatron-LM's tools/preprocess_data.py, which takes one file."""
        python = baseline_python(
            "megatron", [*_MEGATRON, *_MEGATRON_MORE], beside=workload_python("gpt2-megatron")
        )

        def work(text: Text, workers: int) -> Watched:
            folder = self._new_folder()
            joined = _join(text.files("jsonl"), folder / "text.jsonl")
            command: Command = [python, "-W", "ignore", megatron.folder / "tools" / "preprocess_data.py"]
            command += ["--input", joined, "--output-prefix", folder / "out", "--workers", str(workers)]
            command += ["--legacy-tokenizer", "--tokenizer-type", "GPT2BPETokenizer", "--append-eod"]
            command += ["--vocab-file", self._vocabulary / "gpt2-vocab.json"]
            command += ["--merge-file", self._vocabulary / "gpt2-merges.txt"]
            return self._end(folder, watch(command, cwd=folder, environment=os.environ, memory=True))

        return work

    def _give_vocabulary(self, workload: Workload, settings: Settings) -> Settings:
        """Provide the vocabulary as published weights would, or as one that the workload trained before."""
        if workload.name == "gpt2":
            weights = workload.shared / "weights"
            weights.mkdir()
            shutil.copyfile(self._vocabulary / "tokenizer.json", weights / "tokenizer.json")
            (weights / "config.json").write_text(json.dumps({"model_type": "gpt2"}), encoding="utf-8")
            (weights / "model.safetensors").touch()
            return {"init_from": weights}
        if workload.name == "titan":
            return {"tokenizer": self._vocabulary / "tokenizer.json"}
        environment = workload.environment("run", settings)
        environment["PYTHONPATH"] = f"{TRAINING / workload.name}:{TRAINING}"
        script = _BASELINES / "made_of.py"
        command: Command = [workload.python, "-B", script, self._vocabulary]
        run(command, cwd=workload.shared, environment=environment)
        return {}

    def _new_folder(self) -> Path:
        self._runs += 1
        folder = self._folder / str(self._runs)
        folder.mkdir(parents=True)
        return folder

    @staticmethod
    def _end(folder: Path, watched: Watched) -> Watched:
        shutil.rmtree(folder)
        return watched


def _join(files: Sequence[Path], to: Path) -> Path:
    with to.open("wb") as out:
        for file in files:
            out.write(file.read_bytes())
    return to
