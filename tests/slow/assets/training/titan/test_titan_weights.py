"""Weights of titan: from the hub's format, by LoRA, and back."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.slow.assets.training.titan.runs import (  # noqa: F401 (fixtures)
    STEPS,
    train_on_one_node,
    training,
    weights,
    whole_run,
)
from tests.slow.assets.training.training import Training, in_environment
from tests.unit.ops.conftest import call, cluster  # noqa: F401 (fixtures)
from tests.unit.ops.jobs_head_node import Call, PlayedCluster

# ruff: noqa: F811 (fixtures are arguments)

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(1800)]

SHAPE = {"hidden_size": 256, "vocab_size": 2048, "tie_word_embeddings": False, "rope_scaling": None}
"""Sizes of a debug model, beside those of an exported llama3."""
LLAMA_3_2 = {
    **{"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    "original_max_position_embeddings": 64,
}
YARN = {
    **{"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False},
    "original_max_position_embeddings": 4096,
}
PUBLISHED: dict[str, dict[str, Any]] = {
    # Another rotary embedding than torchtitan's.
    "llama3": {"rope_theta": 10_000.0, "rope_scaling": LLAMA_3_2},
    "qwen3": {
        **SHAPE,
        **{"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 8},
        **{"num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072},
        **{"rope_theta": 5e6, "rms_norm_eps": 1e-6, "tie_word_embeddings": True},
    },
    "gpt_oss": {
        **SHAPE,
        **{"model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], "num_hidden_layers": 4},
        **{"num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880},
        **{"num_local_experts": 8, "num_experts_per_tok": 4, "sliding_window": 128, "rms_norm_eps": 1e-5},
        **{"rope_theta": 150_000.0, "rope_scaling": YARN, "attention_bias": True},
    },
}


STILL = {"MAX_STEPS": "1", "LEARNING_RATE": "1e-60", "EVAL_SEQUENCES": "0"}
"""A step that changes nothing: the rate is 0 in fp32. 1e-30 would change weights that are exactly 0."""


def begins_from(training: Training, weights: Path, *, run: str, model: str = "llama3") -> None:
    """Train a step that changes nothing from weights, and compare its export with them, bit by bit."""
    training.run(run, INIT_FROM=str(weights), MODEL=model, **STILL)
    check_export(training, weights, run=run)


def check_export(training: Training, weights: Path, *, run: str) -> None:
    """Compare the export of a run with weights, bit by bit."""
    compared = in_environment("gpt2", "same_weights.py", str(weights), str(training.run_dir(run) / "export"))
    assert compared.splitlines()[-1] == "equal"


def difference(*, checkpoint: Path, weights: Path, folder: Path, model: str = "llama3") -> float:
    """Return the greatest difference of the logits of a checkpoint, and of weights in transformers."""
    file = str(folder / "logits.npz")
    in_environment("titan", "titan_logits.py", model, str(weights), str(checkpoint), file)
    said = in_environment("gpt2", "transformers_logits.py", str(weights), str(folder / "logits.npz"))
    return float(said.splitlines()[-1])


def test_a_checkpoint_exported_by_trainctl_starts_a_run(
    *, training: Training, cluster: PlayedCluster, call: Call, whole_run: list[dict[str, Any]], tmp_path: Path
) -> None:
    assert whole_run
    # Its head node submits to this Slurm.
    cluster.environment = training.environment
    exported = training.shared / "ten"
    export = ("export", "titan/whole", "--checkpoint", "10", "--out", "/fsx/ten")
    code, said, complaint = call(*export)
    assert code == 0, said + complaint
    training.wait(int(said.split()[1].strip(":")), state="COMPLETED")
    ten = training.checkpoints("whole") / "step-000010"
    assert difference(checkpoint=ten, weights=exported, folder=tmp_path) <= 1e-5
    begins_from(training, exported, run="ten-again")
    again = {"EXPORT_RUN": "whole", "EXPORT_STEP": "10", "EXPORT_TO": str(exported), "MAX_RESTARTS": "0"}
    said = training.wait(training.submit("again", "--nodes=1", **again), state="FAILED")
    assert "already exists: move it away" in said


@pytest.mark.parametrize("model", ["llama3", "qwen3", "gpt_oss"])
def test_imported_weights_are_exported_bit_by_bit(
    training: Training, weights: Path, tmp_path: Path, model: str
) -> None:
    made = tmp_path / "made"
    made.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(weights / name, made / name)
    config = json.loads((weights / "config.json").read_text()) | PUBLISHED[model]
    (made / "config.json").write_text(json.dumps(config))
    in_environment("gpt2", "transformers_logits.py", str(made), "--make")
    begins_from(training, made, run=f"imported-{model}", model=model)
    first = training.checkpoints(f"imported-{model}") / "step-000001"
    # A bias that the training moves and the export lacks would choose other experts.
    assert b"expert_bias" not in (first / ".metadata").read_bytes()
    assert difference(checkpoint=first, weights=made, folder=tmp_path, model=model) <= 1e-4


def test_weights_pass_unchanged_through_ranks_of_tensor_parallelism(
    training: Training, weights: Path
) -> None:
    still = STILL | {"INIT_FROM": str(weights), "EVAL_SEQUENCES": "64"}
    others = {"SEED": "2", "BATCH_SIZE": "3"}
    train_on_one_node(training, "two-by-two", ranks=4, MODEL="llama3", TP="2", **still, **others)
    check_export(training, weights, run="two-by-two")
    whole, again = (training.validations(run)[-1]["val_loss"] for run in ("whole", "two-by-two"))
    assert again == pytest.approx(whole, rel=1e-5), "the same sequences, in other batches"


def test_ranks_share_the_export_of_a_state(whole_run: list[dict[str, Any]], tmp_path: Path) -> None:
    assert whole_run, "the first run installs the environment"
    share, verdict = in_environment("titan", "titan_sharded.py", str(tmp_path / "meet")).splitlines()[-2:]
    # A third, and what is not divisible by three.
    assert float(share) < 0.4
    assert verdict == "equal"


def test_chats_fine_tune_exported_weights_with_lora(training: Training, weights: Path) -> None:
    raw = training.shared / "datasets" / "titan" / "raw"
    raw.mkdir(parents=True)
    roles = ("system", "user", "assistant", "user", "assistant")
    turns = ("Be brief.", "What is {n} plus {n}?", "It is {m}.", "Sure?", "Yes.")
    rows = [
        {
            "messages": [
                {"role": role, "content": turn.format(n=n, m=2 * n)}
                for role, turn in zip(roles, turns, strict=True)
            ]
        }
        for n in range(400)
    ]
    (raw / "chats.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lora = {"TASK": "sft", "DATA": "raw", "LORA_RANK": "4", "LEARNING_RATE": "3e-3"}
    lora |= {"INIT_FROM": str(weights)}
    said = training.run("chats", **lora)
    assert "(380 examples), val " in said
    assert "(20 examples); the longest has " in said
    assert f"LEARNING_RATE=0.003, WARMUP_STEPS=2, {STEPS} steps of 8 sequences: " in said
    assert " epochs of raw" in said
    found = training.metrics("chats")
    assert found[-1]["loss"] < found[0]["loss"] - 0.5
    names = (training.run_dir("chats") / "export" / "model.safetensors.index.json").read_text()
    assert "lora" not in names
    kept = training.checkpoints("chats") / "step-000010"
    shutil.copytree(kept, training.checkpoints("chats-fewer") / kept.name)
    job_id = training.submit("chats-fewer", "--nodes=1", GLOBAL_BATCH="8", EXPORT="no", **lora)
    training.wait(job_id, state="COMPLETED")
    fewer = [row["loss"] for row in training.metrics("chats-fewer")]
    assert fewer == pytest.approx([row["loss"] for row in found[10:]], rel=1e-5)
    said = training.wait(training.submit("short", SEQ_LEN="8", MAX_RESTARTS="0", **lora), state="FAILED")
    assert "has 0 and 0: give SEQ_LEN=512 (all fit), more text." in said


def test_chats_are_masked_as_torchtitan_does(weights: Path, tmp_path: Path) -> None:
    assert in_environment("titan", "titan_chats.py", str(weights), str(tmp_path)).strip() == "equal"


def test_merged_lora_computes_the_same(whole_run: list[dict[str, Any]]) -> None:
    assert whole_run, "the first run installs the environment"
    assert float(in_environment("titan", "titan_lora.py").splitlines()[-1]) < 1e-4
