"""The parts of titan that need no package: its settings. torch is not in this environment."""

import ast
import dataclasses
import json
import re
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.assets.training.workload_modules import Import
from training_cluster.paths import TRAINING

OF_DATA = ("hf_datasets", "components.data", "components.tokenizer", "components.validate")
"""Beginnings of torchtitan's modules that read data, of which a newer version has others."""


@pytest.fixture(autouse=True)
def node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVICE", "cpu")
    monkeypatch.setenv("NPROC_PER_NODE", "8")


def test_options_of_torchtitan_that_no_setting_decides_pass(load: Import) -> None:
    split, read = load("settings").split_arguments, load("settings").read_settings
    assert split(["--size", "8B", "--", "--training.x", "1"]) == (["--size", "8B"], ["--training.x", "1"])
    assert split(["--size", "8B"]) == (["--size", "8B"], [])
    read(["--", "--training.max-norm", "0.5", "--checkpoint.async-mode", "async"])
    read(["--", "--profiler.enable-profiling", "--debug.save-config-file", "seed"])
    # A recipe decides these itself.
    read(["--config", "a:b", "--", "--compile.enable", "--lr-scheduler.warmup-steps", "5"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--model", "llama"], "Did you mean llama3?"),
        (["--size", "9B"], "torchtitan has llama3 in 1B, 3B, 8B, 70B, 405B, debugmodel"),
        (["--config", "a:b", "--lora-rank", "4"], "in which LORA_RANK would change nothing"),
        (
            ["--config", "a:b", "--model", "qwen3", "--size", "8B"],
            "in which MODEL, SIZE would change nothing",
        ),
        (["--config", "a:b", "--learning-rate", "1e-5"], "in which LEARNING_RATE would change nothing"),
        (["--model", "flux"], "allowed: deepseek_v3, gpt_oss, llama3, qwen3, or another by CONFIG"),
        (["--config", "qwen3_14b"], "give PACKAGE:FUNCTION"),
        (["--data", "a:0.7,b"], "with and without a weight (b): give all of them one, such as :0.7"),
        (["--data", "../secret"], "the name of a folder of datasets/"),
        (["--data", "hf:c4"], "with @REVISION behind it, or with hf: before it as a stream"),
        (
            ["--data", "hf:a/b:0.5,c:0.5"],
            "cannot mix with c: give a/b, which is downloaded and prepared once",
        ),
        (["--task", "sft", "--data", "hf:a/b"], "cannot mix with TASK=sft"),
        (["--data", "hf:a/b"], "DATA streams hf:a/b, which torchtitan tokenizes: give INIT_FROM, or"),
        (["--task", "sft"], "TASK=sft needs weights: give INIT_FROM"),
        (["--task", "sft", "--init-from", "a/b", "--data", "machine"], "TASK=sft needs chats"),
        (["--lora-rank", "8"], "LORA_RANK=8 needs weights: give INIT_FROM"),
        (["--init-from", "Qwen3-8B"], 'INIT_FROM is "Qwen3-8B"; allowed: ORGANISATION/NAME'),
        (["--init-from", "s3://"], "s3://BUCKET/FOLDER, or nothing"),
        (["--vocab-size", "10"], "VOCAB_SIZE is '10': give a whole number from 300 to 262144"),
        (["--export-step", "500"], "EXPORT_STEP=500 is for the export of a run: give its name as EXPORT_RUN"),
        (["--export-to", "/fsx/x"], "EXPORT_TO=/fsx/x is for the export"),
        (["--export-run", "../x"], 'EXPORT_RUN is "../x": give the name of a run'),
        (["--profile-steps", "10"], "give FIRST-LAST"),
        (["--profile-steps", "5-4"], "give FIRST-LAST within them"),
        (["--profile-steps", "0-4"], "give FIRST-LAST within them"),
        (["--profile-steps", "1-9999"], "of 1000 steps"),
        (["--float8", "yes"], "FLOAT8=yes needs GPUs"),
        (["--", "--checkpoint.interval", "5"], "give CHECKPOINT_EVERY in its place"),
        (["--", "--training.max-norm", "1", "--training.seq-len=512"], "give SEQ_LEN in its place"),
        (["--", "--compile.no-enable"], "give COMPILE in its place"),
        (["--", "activation-checkpoint:full"], "give ACTIVATION_CHECKPOINTING in its place"),
        (["--config", "a:b", "--", "--training.steps", "5"], "give MAX_STEPS in its place"),
        (["--", "--parallelism.pipeline-parallel-degree", "2"], "give PP in its place"),
        (["--profile-steps", "2-3", "--", "--profiler.profile-freq", "9"], "give PROFILE_STEPS in its place"),
    ],
)
def test_a_wrong_setting_is_one_sentence(load: Import, arguments: list[str], sentence: str) -> None:
    with pytest.raises(SystemExit) as caught:
        load("settings").read_settings(arguments)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_task_has_its_default_learning_rate(load: Import) -> None:
    settings, weights = load("settings"), ["--init-from", "a/b"]
    for arguments, rate in (
        ([], 3e-4),
        (weights, 2e-5),
        ([*weights, "--task", "sft", "--lora-rank", "8"], 2e-4),
        (["--config", "a:b", *weights], 0.0),
    ):
        assert settings.usual_learning_rate(settings.read_settings(arguments)) == rate


def test_a_run_keeps_its_rate_unless_given(load: Import, tmp_path: Path) -> None:
    read = load("settings").read_settings
    # As a start of a version in which every task had this default.
    (tmp_path / "titan.json").write_text(json.dumps(dataclasses.asdict(read([])) | {"learning_rate": 3e-4}))
    tuning = ["--init-from", "a/b"]
    assert read(tuning).as_run_began(tmp_path).learning_rate == 3e-4
    assert read([*tuning, "--learning-rate", "2e-5"]).as_run_began(tmp_path).learning_rate == 2e-5
    assert read(["--config", "a:b"]).as_run_began(tmp_path).learning_rate == 0.0


def test_the_corpus_of_other_workloads_is_refused(load: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPUS", "raw")
    with pytest.raises(SystemExit, match="give DATA=raw, and no CORPUS"):
        load("settings").read_settings([])


MOE = ["--model", "qwen3", "--size", "30B-A3B"]
SMALL_MOE = ["--model", "deepseek_v3", "--size", "debugmodel"]


EXPERTS = ["--model", "deepseek_v3", "--size", "16B"]
PIPELINE = ["--size", "8B", "--pp", "2", "--batch-size", "8"]
THREE_BY_TWO = ["--tp", "2", "--cp", "3", "--seq-len", "1536"]


@pytest.mark.parametrize(
    ("nodes", "arguments", "sentence"),
    [
        (2, ["--tp", "3"], "give degrees whose product divides 16"),
        (2, ["--tp", "16"], "give at most 8"),
        (2, [*MOE, "--ep", "3"], "EP is 3 and 16 ranks share the experts"),
        (2, [*MOE, "--ep", "16", "--shard", "node"], "give a divisor of 8"),
        (2, ["--tp", "8", "--cp", "2", "--seq-len", "16384", "--shard", "node"], "or SHARD=all"),
        (3, [*THREE_BY_TWO, "--shard", "node"], "divides a node's 8 ranks: give one, or SHARD=all"),
        (2, ["--global-batch", "17"], "such as GLOBAL_BATCH=16"),
        (2, ["--cp", "2", "--seq-len", "1000"], "must be a multiple of 512: give one, such as 1024"),
        (2, ["--tp", "8", "--seq-len", "4100"], "must be a multiple of 8"),
        (2, ["--seq-len", "100"], "must be a multiple of 8: give one, such as 104"),
        (2, [*MOE, "--tp", "8"], "32 heads, 4 of keys and values: give a divisor of 4"),
        (2, ["--model", "qwen3", "--seq-len", "65536"], "has 40960 positions: give at most 40960"),
        (2, ["--pp", "2", "--size", "8B"], "give at least 2, or 8 for stages that wait less"),
        (3, [*PIPELINE, "--shard", "node"], "a PP that divides the 3 nodes: give one, or SHARD=all"),
        (2, [*PIPELINE, "--size", "1B"], "the head is the embedding as well, at the other end: give PP=1"),
        (2, [*PIPELINE, *SMALL_MOE, "--vocab-size", "2048", "--pp", "8"], "has 6 layers: give at most 4"),
        (3, [*PIPELINE, "--tp", "4"], ""),
        (2, [*PIPELINE, "--shard", "node"], ""),
        (2, ["--ep", "8"], "EP is 8 and the model has no experts: give EP=1"),
        (2, [*SMALL_MOE, "--vocab-size", "2048", "--ep", "16"], "has 8 experts: give a divisor"),
        (2, SMALL_MOE, "has 32000 tokens and the model 2048: give at most 2048 as VOCAB_SIZE"),
        (32, EXPERTS, "so 256 ranks share the matrices of an expert, 2048 x 1408"),
        (16, EXPERTS, ""),
        (32, [*EXPERTS, "--ep", "8"], ""),
        (32, [*EXPERTS, "--shard", "node"], ""),
        (3, THREE_BY_TWO, ""),
        (2, ["--cp", "2"], ""),
        (2, ["--global-batch", "64"], ""),
        (2, [*MOE, "--tp", "4", "--ep", "16"], ""),
        (2, ["--size", "debugmodel", "--tokenizer", "/fsx/tokenizer.json"], ""),
        (2, ["--size", "debugmodel", "--data", "hf:a/b", "--init-from", "c/d"], ""),
        (2, ["--data", "a/b/en@v1.0:0.5,books:0.5"], ""),
        (2, ["--config", "a:b", "--tp", "8", "--seq-len", "65536"], ""),
        (2, ["--init-from", "a/b", "--seq-len", "262144"], ""),
    ],
)
def test_settings_fit_the_ranks_or_are_refused(
    load: Import, nodes: int, arguments: list[str], sentence: str
) -> None:
    settings = load("settings")
    with pytest.raises(SystemExit, match=re.escape(sentence)) if sentence else nullcontext():
        settings.fit(settings.read_settings(arguments), count=nodes)


def test_a_run_keeps_its_global_batch(load: Import, tmp_path: Path) -> None:
    read, fit = load("settings").read_settings, load("settings").fit
    assert read([]).as_run_began(tmp_path).global_batch == 0
    begun, _ = fit(read(["--batch-size", "4", "--tp", "2"]), count=2)
    assert begun.global_batch == 32
    (tmp_path / "titan.json").write_text(json.dumps(dataclasses.asdict(begun) | {"gone": 1}))
    resumed = read(["--batch-size", "4"]).as_run_began(tmp_path)
    fewer, _ = fit(resumed, count=1)
    assert fewer.global_batch == 32
    with pytest.raises(
        SystemExit, match=r"is 32 \(that of the run so far.* has 64 sequences: give BATCH_SIZE=2, or"
    ):
        fit(resumed, count=2)
    with pytest.raises(
        SystemExit, match=r"give another number of nodes, or a multiple, such as GLOBAL_BATCH=96"
    ):
        fit(resumed, count=3)
    own = read(["--global-batch", "64", "--batch-size", "4"]).as_run_began(tmp_path)
    assert fit(own, count=2)[0].global_batch == 64


def test_checkpoints_that_do_not_fit_are_refused(
    load: Import, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Before the data is prepared and ranks start; a run that has saved before waits for space instead."""
    prepare, own = load("prepare"), load("settings").read_settings(["--size", "70B"])
    for name, value in (("EXPECTED_WORLD_SIZE", "16"), ("CHECKPOINT_DIR", str(tmp_path))):
        monkeypatch.setenv(name, value)
    disk = {"free": 1.6e12}
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(**disk))
    with pytest.raises(SystemExit, match=r"checkpoints need 1693\.3 GB .* has 1600\.0 GB free"):
        prepare.data_ranks(own, None)
    (tmp_path / "step-000500").mkdir()
    assert prepare.data_ranks(own, None) == 16


def test_weights_of_another_size_are_refused(load: Import, tmp_path: Path) -> None:
    found = {"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 128256}
    (tmp_path / "config.json").write_text(json.dumps(found))
    read, size_of = load("settings").read_settings, load("nodes").size_of
    assert size_of(read([]), str(tmp_path)) == "8B"
    with pytest.raises(SystemExit, match=r"are not those of llama3 3B: give SIZE=8B\.$"):
        size_of(read(["--size", "3B"]), str(tmp_path))
    with pytest.raises(SystemExit, match=r"are not those of qwen3: give another MODEL: none of 0\.6B, "):
        size_of(read(["--model", "qwen3"]), str(tmp_path))


def test_weights_in_an_unknown_quantization_are_refused(load: Import, tmp_path: Path) -> None:
    nodes = load("nodes")
    for model, method, is_read in (
        ("llama3", "", True),
        ("llama3", "fp8", False),
        ("gpt_oss", "mxfp4", True),
        ("deepseek_v3", "fp8", True),
        ("deepseek_v3", "awq", False),
    ):
        facts = next(iter(nodes.MODELS[model].values()))
        found: dict[str, object] = {"hidden_size": facts.width, "num_hidden_layers": facts.layers}
        found |= {"vocab_size": facts.vocabulary, "quantization_config": {"quant_method": method}}
        (tmp_path / "config.json").write_text(json.dumps(found))
        settings = load("settings").read_settings(["--model", model])
        if is_read:
            nodes.check_weights(settings, tmp_path)
        else:
            with pytest.raises(SystemExit, match=rf"are quantized \({method}\), .* give weights in bf16"):
                nodes.check_weights(settings, tmp_path)


def test_ranks_take_what_fits_their_memory(load: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = {"ACCELERATOR_KIND": "gpu", "ACCELERATOR_MEMORY_GIB": "80.0", "INSTANCE_TYPE": "p5.48xlarge"}
    for name, value in (gpu | {"RANKS_PER_NODE": "8"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("DEVICE")
    read, fit = load("settings").read_settings, load("settings").fit
    settings, reasons = fit(read(["--size", "8B", "--tp", "2"]), count=2)
    assert (settings.tp, settings.cp, settings.shard) == (2, 1, "node")
    assert any(each.startswith("SHARD=node: ") for each in reasons)
    # What they would choose after CUDA's "out of memory".
    needing_less = load("nodes").needing_less
    for given, less in (
        (["--size", "8B"], "BATCH_SIZE=1, or a smaller SIZE or"),
        (["--size", "8B", "--seq-len", "131072", "--activation-checkpointing", "full"], "CP=4, or a"),
        (["--config", "a:b"], "a smaller SIZE or SEQ_LEN, more nodes"),
    ):
        assert needing_less(fit(read(given), count=2)[0], count=2, weights=None).startswith(less)
    with pytest.raises(SystemExit, match="llama3 405B does not fit: it needs about"):
        fit(read(["--size", "405B"]), count=2)
    monkeypatch.delenv("ACCELERATOR_MEMORY_GIB")
    unknown, _ = fit(read(["--size", "405B"]), count=2)
    assert unknown.activation_checkpointing == "selective"
    for capability in ("8.9", "10.0"):
        monkeypatch.setenv("COMPUTE_CAPABILITY", capability)
        assert read(["--float8", "yes"]).float8 == "yes"
    monkeypatch.setenv("COMPUTE_CAPABILITY", "8.0")
    for kind, least in (("yes", "8.9"), ("mx", "10.0")):
        with pytest.raises(SystemExit, match=rf"{least} or more .* those of p5\.48xlarge have 8\.0"):
            read(["--float8", kind])


def test_one_module_knows_torchtitan_s_data() -> None:
    used = {
        (file.name, alias.name)
        for file in (TRAINING / "titan").glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom | ast.Import)
        for alias in node.names
        if f"{getattr(node, 'module', '')}.{alias.name}".startswith(
            tuple(f"torchtitan.{each}" for each in OF_DATA)
        )
    }
    assert {file for file, _ in used} == {"batches.py"}
    described = ast.get_docstring(ast.parse((TRAINING / "titan" / "batches.py").read_text())) or ""
    assert {name for _, name in used if name not in described} == set()
