"""Settings of a job are refused before a node starts, by the workload's own code."""

import dataclasses
import re
import shutil
import sys
from pathlib import Path

import pytest

from ops.jobs.settings import OF_JOBS, OF_PROGRAMS, ask_workload, check_job_settings, workloads_with
from ops.jobs.variables import variables_of_jobs, variables_of_readme
from ops.new_workload import create_workload
from ops.usage import UsageError
from tests.unit.sentences import assert_sentences
from training_cluster.paths import TRAINING

sys.path.insert(0, str(TRAINING))
try:
    from trainkit.run.settings import TrainSettings
finally:
    sys.path.remove(str(TRAINING))

DEFAULT = re.compile(r'^export (\w+)=(?:"\$\{\w+:-)?([^}"\n]*)', re.M)
WORKLOADS = sorted(path.parent.name for path in TRAINING.glob("*/train.sh"))
REFUSED = """
bert-trainium VOCAB_SIZE=20
bert-trainium MAX_STEPS=x
gpt2 MAX_STPS=5
gpt2 max_steps=5
gpt2 TENSOR_PARALLEL=2
gpt2 RANKS_PER_NODE=4
gpt2 CHECKPOINT_DIR=/fsx/x
gpt2 NAME=my-run
gpt2 PATH=/x
gpt2 TRAINING_BUCKET=mine
gpt2 NPROC_PER_NODE=010
gpt2 SLURM_JOB_ID=5
gpt2 MY_FLAG=1
gpt2 MAX_STEPS=five
gpt2 BATCH_SIZE=1.5
gpt2 MAX_STEPS=-1
gpt2 LEARNING_RATE=nan
gpt2 DEVICE=tpu
gpt2 MAX_RESTARTS=many
gpt2 AFTER_FAILURE_S=08
gpt2 MAX_RESTARTS=08
gpt2 AFTER_FAILURE_S=0
gpt2 NUMA_BINDING=numa
gpt2 STRICT_NETWORK=yes
gpt2 LOCAL_ENVIRONMENT=1
gpt2 CORPUS=wikipedia
gpt2 MIXED_PRECISION=fp8
gpt2 GPT2_HEADS=7
gpt2 VOCAB_SIZE=70000
gpt2-megatron TRANSFORMER_IMPL=fast
gpt2-megatron CORPUS=wiki
gpt2-megatron VOCAB_SIZE=20
gpt2-megatron MIXED_PRECISION=fp16
gpt2-megatron GPT2_DROPOUT=1
gpt2-megatron EXPORT_STEP=5
nccl-tests PREPARE_WORKERS=2
nccl-tests MY_FLAG=1
nccl-tests NUMA_BINDING=node
roberta VALIDATION_EVERY=20
roberta ROBERTA_HEADS=7
roberta PREPARE_WORKERS=all
roberta CORPUS=wikitext
roberta VOCAB_SIZE=256
titan RANK=0
titan HANG_TIMEOUT_S=8m
titan LAUNCHER=mpirun
titan VERIFY_DATA=maybe
titan VALIDATION_EVERY=1
"""
"""A workload and a setting that it or job.slurm refuses, in each line."""


def test_a_wrong_setting_is_one_message(tmp_path: Path) -> None:
    def check(line: str) -> None:
        workload, _, pair = line.partition(" ")
        check_job_settings(workload, dict([pair.split("=", 1)]), ())

    assert_sentences("settings", REFUSED.split("\n")[1:-1], check, tmp_path)


def test_strict_network_with_own_nccl_settings_is_refused() -> None:
    with pytest.raises(UsageError, match="STRICT_NETWORK=1 reads what NCCL writes with settings of its own"):
        check_job_settings("gpt2", {"STRICT_NETWORK": "1", "NCCL_DEBUG": "WARN"}, ())
    check_job_settings("gpt2", {"STRICT_NETWORK": "0", "NCCL_DEBUG": "WARN"}, ())


def test_settings_of_a_new_workload_are_checked(tmp_path: Path) -> None:
    training = shutil.copytree(TRAINING, tmp_path / "training")
    create_workload("mine", into=training)
    shared = {field.name.upper(): str(field.default) for field in dataclasses.fields(TrainSettings)}
    check_job_settings("mine", shared | {"MODEL_LAYERS": "3"}, (), training=training)
    rehearsed = dict(DEFAULT.findall((training / "mine" / "rehearsal.env").read_text()))
    assert "MAX_STEPS" in rehearsed
    check_job_settings("mine", rehearsed, (), training=training)
    for name, value, said in (
        ("EVAL_EVERY", "often", "--eval-every: invalid int value"),
        ("MODEL_HEADS", "7", "not a multiple of MODEL_HEADS 7"),
        ("MIXED_PRECISION", "fp8", "allowed: bf16, fp16, no"),
    ):
        with pytest.raises(UsageError, match=f"mine would refuse these settings: .*{said}"):
            check_job_settings("mine", {name: value}, (), training=training)


def test_wrong_arguments_of_a_workload_are_refused_too() -> None:
    for arguments, said in ((("--max-steps", "x"), "invalid int value"), (("--nope",), "unrecognized")):
        with pytest.raises(UsageError, match=said):
            check_job_settings("gpt2", {}, arguments)


@pytest.mark.slow
@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_settings_of_readmes_and_rehearsals_are_taken(workload: str) -> None:
    readme = (TRAINING / workload / "README.md").read_text().replace("\\\n", " ")
    rehearsal = (TRAINING / workload / "rehearsal.env").read_text()
    typed = [
        re.findall(r"\b([A-Z_0-9]+)=(\S+)", line) for line in re.findall(r"^ +(.*) sbatch ", readme, re.M)
    ]
    defaults = DEFAULT.findall(rehearsal)
    for pairs in filter(None, typed):
        check_job_settings(workload, {"DEVICE": "", **dict(pairs)}, ())
    assert defaults
    check_job_settings(workload, dict(defaults), ())


def test_each_declared_variable_is_read() -> None:
    shared = [*TRAINING.glob("*.sh"), TRAINING / "job.slurm", *(TRAINING / "trainkit").rglob("*.py")]
    everywhere = set(re.findall(r"\w+", "".join(file.read_text() for file in shared)))
    shared_names = {each.name for each in variables_of_jobs()}
    assert shared_names <= everywhere
    assert not shared_names & OF_JOBS, "job.slurm would ignore the user's value"
    for workload in WORKLOADS:
        own = [*(TRAINING / workload).glob("*.sh"), *(TRAINING / workload).glob("*.py")]
        words = set(re.findall(r"\w+", "".join(file.read_text() for file in own)))
        known = {word.upper() for word in everywhere | words}
        declared = {e for e in variables_of_readme(TRAINING / workload) if not e.startswith(OF_PROGRAMS)}
        assert declared <= known, workload


def test_variables_of_programs_jobs_and_preparations_are_taken() -> None:
    given = {"NCCL_DEBUG": "INFO", "HF_TOKEN": "x", "RUN_NAME": "a", "MAX_RESTARTS": "0", "LAUNCHER": "srun"}
    check_job_settings("gpt2", given, ())
    prepared = {"CORPUS": "wikipedia", "WIKIPEDIA_EDITION": "20231101.simple", "EVAL_SEQUENCES": "4"}
    check_job_settings("bert-trainium", prepared | {"PRECOMPILE": "1"}, ())


def test_a_workload_only_on_the_cluster_passes(tmp_path: Path) -> None:
    note = check_job_settings("elsewhere", {"ANY": "1"}, (), training=tmp_path)
    assert note == f"The settings are not checked: {tmp_path}/elsewhere is not on this machine."


@pytest.mark.parametrize("text", ["while True: pass\n", "import a_package_of_the_nodes\n", ""])
def test_settings_that_do_not_load_are_unchecked(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.jobs.settings._LIMIT_S", 0.2 if text.startswith("while") else 30.0)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "train.sh").touch()
    (tmp_path / "mine" / "settings.py").write_text(text)
    note = check_job_settings("mine", {"MY_STEPS": "x"}, (), training=tmp_path)
    assert note == f"The workload's settings are not checked: {tmp_path}/mine/settings.py does not load here."
    with pytest.raises(UsageError, match="the job itself sets it"):
        check_job_settings("mine", {"RUN_DIR": "x"}, (), training=tmp_path)


def test_a_readmes_table_declares_settings(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "train.sh").touch()
    (tmp_path / "mine" / "README.md").write_text(
        "# mine\n\n## Settings\n\n| MY_STEPS, MY_URL | 5 | |\n| `MY_RATE`  | 1 | |\n\n"
        "## Data\n\n| MY_TABLE | 5 |\n"
    )
    assert (
        check_job_settings("mine", {"MY_STEPS": "x", "MY_URL": "y", "MY_RATE": "z"}, (), training=tmp_path)
        == ""
    )
    with pytest.raises(UsageError, match="reads such a variable"):
        check_job_settings("mine", {"MY_TABLE": "x"}, (), training=tmp_path)


P4D = {
    "ACCELERATOR_KIND": "gpu",
    "ACCELERATOR_MEMORY_GIB": "40.0",
    "COMPUTE_CAPABILITY": "8.0",
    "INSTANCE_TYPE": "p4d.24xlarge",
    "RANKS_PER_NODE": "8",
}


def test_a_job_the_nodes_cannot_run_is_refused() -> None:
    for settings, said in (
        ({"SIZE": "70B"}, r"on 2 x p4d.24xlarge: llama3 70B does not fit: .* take \d+ nodes or more"),
        ({"SIZE": "8B", "CP": "3"}, "give degrees whose product divides 16"),
        ({"SIZE": "debugmodel"}, "32000 tokens and the model 2048: give at most 2048 as VOCAB_SIZE"),
        ({"SIZE": "8B", "FLOAT8": "yes"}, "those of p4d.24xlarge have 8.0: give FLOAT8=no"),
    ):
        assert "titan" in workloads_with("check_job")
        with pytest.raises(UsageError, match=said):
            ask_workload("check_job", "titan", settings, (), nodes=2, facts=P4D)


def test_a_job_the_nodes_can_run_passes() -> None:
    ask_workload(
        "check_job", "titan", {"SIZE": "8B"}, ("--seq-len", "8192", "--", "--debug.x"), nodes=2, facts=P4D
    )
    ask_workload("check_job", "titan", {"MODEL": "qwen3", "INIT_FROM": "a/b"}, (), nodes=1, facts=P4D)
    ask_workload("check_job", "gpt2-megatron", {"TENSOR_PARALLEL": "8"}, (), nodes=2, facts=P4D)
    assert "nccl-tests" not in workloads_with("check_job")


def test_a_node_has_its_jobs_ranks() -> None:
    for workload, degree, said in (
        ("titan", "TP", "give degrees whose product divides 1"),
        ("gpt2-megatron", "TENSOR_PARALLEL", "the product must be one of 1"),
    ):
        settings = {degree: "2", "SIZE": "debugmodel", "NPROC_PER_NODE": "1", "VOCAB_SIZE": "2048"}
        with pytest.raises(UsageError, match=said):
            ask_workload("check_job", workload, settings, (), nodes=1, facts=P4D)
        cpu = {"ACCELERATOR_KIND": "none", "RANKS_PER_NODE": "1"}
        ask_workload("check_job", workload, {degree: "2", "PREPARE_ONLY": "1"}, (), nodes=1, facts=cpu)


def test_settings_of_some_gpus_are_checked_later() -> None:
    check_job_settings("titan", {"FLOAT8": "yes"}, ())
