"""Every parallelism of titan against one rank, from the same weights: the table of its README."""

import re
import shutil

import pytest

from tests.slow.assets.training.titan.runs import train_on_one_node, training  # noqa: F401 (a fixture)
from tests.slow.assets.training.training import Training
from training_cluster.paths import TRAINING

# ruff: noqa: F811 (fixtures are arguments)

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(1800)]

TABLE = re.findall(
    r"^\| (\w+) \| `([A-Z_\d= a-z]+)` \| (\d) \| (equal|\d\S+) \|$",
    (TRAINING / "titan" / "README.md").read_text(),
    re.MULTILINE,
)
SETTINGS = {
    "GLOBAL_BATCH": "8",
    "MAX_STEPS": "5",
    "CHECKPOINT_EVERY": "2",
    "KEEP_CHECKPOINTS": "5",
    "EVAL_EVERY": "0",
    "EVAL_SEQUENCES": "13",
    "LEARNING_RATE": "1e-3",
    "EXPORT": "no",
}


def train(training: Training, run: str, *, ranks: int, begun: str = "", **settings: str) -> list[float]:
    """Train on a node, or with SHARD=node on two; from a checkpoint RUN/STEP if one is given.

    Returns:
        The losses of the steps.
    """
    if begun:
        kept = training.checkpoints(begun)
        shutil.copytree(kept, training.checkpoints(run) / kept.name)
    if settings.get("SHARD") == "node":
        training.run(run, BATCH_SIZE="4", **SETTINGS | settings)
    else:
        train_on_one_node(training, run, ranks=ranks, **SETTINGS | settings)
    rows = training.metrics(run)
    assert {row["world_size"] for row in rows} == {ranks}
    sequences = 8 * int(settings.get("SEQ_LEN", 64))
    assert [row["tokens"] for row in rows] == [row["step"] * sequences for row in rows]
    return [row["loss"] for row in rows]


@pytest.mark.parametrize(("model", "layout", "ranks", "bound"), TABLE)
def test_a_layout_computes_as_one_rank(
    training: Training, model: str, layout: str, ranks: str, bound: str
) -> None:
    settings = {"MODEL": model, **dict(each.split("=") for each in layout.split())}
    alone = {name: value for name, value in settings.items() if name in {"MODEL", "SEQ_LEN"}}
    one, run = "-".join([*alone.values(), "one"]), re.sub("[ =]", "-", f"{model}-{layout}")
    if not training.metrics(one):
        train(training, one, ranks=1, **alone)
    expected = [row["loss"] for row in training.metrics(one)[2:]]
    limit = 0.0 if bound == "equal" else float(bound)
    found = train(training, run, ranks=int(ranks), begun=f"{one}/step-000002", **settings)
    assert found == pytest.approx(expected, rel=limit, abs=0)
    if layout == "PP=2":
        # Its validation has the same sequences, and its checkpoint continues without a pipeline.
        (of_one,), (of_stages,) = map(training.validations, (one, run))
        assert of_stages["val_loss"] == pytest.approx(of_one["val_loss"], rel=1e-6)
        back = train(training, f"{run}-back", ranks=1, begun=f"{run}/step-000004", **alone)
        assert back == pytest.approx(found[-1:], rel=limit, abs=0)
