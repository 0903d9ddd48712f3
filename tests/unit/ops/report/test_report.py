"""`trainctl report`: runs of this machine and of a cluster, cost, published figures, files, messages."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ops.account.head_node import CommandError
from ops.report.compared import compare
from ops.report.panels import floors_of
from ops.report.record import Run
from ops.report.run_cost import cost_of
from ops.report.source import read_folder, read_on_cluster
from ops.usage import OpsError, UsageError
from tests.unit.ops.jobs_head_node import Call
from tests.unit.ops.report.example_run import P4D, write_all_reduce, write_training
from training_cluster.catalog.families import instance_hour
from training_cluster.paths import TRAINING


class ClusterWith:
    """A head node whose /fsx is a folder of this machine."""

    cluster_name, client = "training", None

    def __init__(self, shared: Path) -> None:
        self.shared = shared

    def run(self, *argv: str, reads_only: bool = False) -> str:
        assert reads_only
        words = [
            word.replace("/fsx/training", str(TRAINING)).replace("/fsx/", f"{self.shared}/") for word in argv
        ]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            raise CommandError(done.stderr)
        return done.stdout


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Short runs that nothing changes."""
    folder = tmp_path_factory.mktemp("fsx")
    write_training(folder, steps=800)
    slower = P4D | {"LEARNING_RATE": "3e-4"}
    write_training(folder, run="mine", job="19", steps=300, deaths=(), settings=slower)
    rehearsed = P4D | {"TRAINING_REHEARSAL": "1"}
    write_training(folder, run="rehearsed", job="20", steps=60, deaths=(), settings=rehearsed)
    write_training(folder, workload="roberta", run="mine", job="30", steps=20, deaths=())
    write_all_reduce(folder)
    return folder


@pytest.fixture
def run_of(shared: Path) -> Callable[[str], Run]:
    return lambda name: read_folder(shared / "runs" / name)


def test_cost_is_node_hours_times_catalog_price(run_of: Callable[[str], Run]) -> None:
    run, price = run_of("gpt2/job-17"), instance_hour("p4d.24xlarge")
    assert price
    cost = cost_of(run)
    assert cost.usd
    hours = 2 * ((run.starts[-1].time - run.starts[0].time).seconds + run.starts[-1].seconds + 90) / 3600
    assert cost.node_hours == pytest.approx(hours, rel=1e-3)
    assert cost.usd == pytest.approx(hours * price.usd, rel=1e-3)
    assert cost.usd_per_million_tokens == pytest.approx(cost.usd / (run.summary.tokens or 0) * 1e6)
    assert f"list price on demand, us-east-1, {price.date}" in cost.lines[0]


@pytest.mark.parametrize(
    ("changes", "paid", "said"),
    [
        ({"rehearsal": True}, False, "nothing was paid"),
        ({"instance_type": None}, False, "cost unknown"),
        ({"instance_type": "x9.large"}, False, "the catalog has no price"),
        ({"capacity": "spot"}, True, "They were spot instances, which cost less than that."),
    ],
)
def test_use_costs_what_was_paid_for_it(
    changes: dict[str, object], paid: bool, said: str, run_of: Callable[[str], Run]
) -> None:
    run = run_of("gpt2/mine")
    cost = cost_of(run.model_copy(update={"use": [run.use[0].model_copy(update=changes)]}))
    assert (cost.usd is not None) == paid
    assert said in " ".join(cost.lines)


@pytest.mark.slow
def test_a_published_figure_stands_beside_the_runs_own(run_of: Callable[[str], Run]) -> None:
    (loss,) = compare(run_of("gpt2/job-17"))  # that of one node's tokens/s does not
    assert loss.share == pytest.approx((run_of("gpt2/job-17").summary.last_val_loss or 0) / 2.85)
    assert (loss.published, loss.remark) == ("2.85 nats a token", "not reproduced here")


def test_a_rehearsal_is_not_held_against_real_hardware(run_of: Callable[[str], Run]) -> None:
    assert all(each.share is None for each in compare(run_of("gpt2/rehearsed")))


def test_all_reduce_is_compared_at_the_published_size(run_of: Callable[[str], Run]) -> None:
    run = run_of("nccl-tests/job-21")
    measured = dict(zip(run.axes["message_bytes"], run.series["busbw_gb_per_s"].mean, strict=True))
    figure = run.figures[0]

    def own(message_gib: float | None) -> str:
        figures = [figure.model_copy(update={"message_gib": message_gib})]
        return compare(run.model_copy(update={"figures": figures}))[0].own

    assert figure.message_gib == 1
    assert compare(run)[0].own == f"{measured[2**30]:.4g}"
    assert own(0.0625) == f"{measured[2**26]:.4g}"
    assert own(None) == "44.92", "the best of all sizes"
    assert floors_of(run) == [(2**30, 41.0)]


def test_a_record_has_no_control_character(tmp_path: Path) -> None:
    folder = write_training(tmp_path, steps=10, deaths=())
    (folder / "outcome").write_text("refused \x1b[31m\x00 \\u001b\n")
    text = repr(read_folder(folder))
    assert "refused ?[31m?" in text
    assert "\\x1b" not in text
    assert "\\x00" not in text


@pytest.mark.slow
def test_a_cluster_has_the_run_of_its_folder(shared: Path) -> None:
    cluster = ClusterWith(shared)
    for name in ("17", "gpt2/job-17"):
        on_cluster = read_on_cluster(name, cluster)  # type: ignore[arg-type]
        assert on_cluster == read_folder(shared / "runs" / "gpt2" / "job-17")
    with pytest.raises(UsageError, match=r"no run \"99\" on training(.|\n)*gpt2/rehearsed"):
        read_on_cluster("99", cluster)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"names 2 runs of training(.|\n)*gpt2/mine, roberta/mine"):
        read_on_cluster("mine", cluster)  # type: ignore[arg-type]


def test_older_scripts_on_a_cluster_are_reported(shared: Path) -> None:
    class Older(ClusterWith):
        def run(self, *argv: str, **_: bool) -> str:
            raise CommandError(f"env: report.py: error: unrecognized arguments: {argv[-2]} 17")

    with pytest.raises(OpsError, match="older than this trainctl"):
        read_on_cluster("17", Older(shared))  # type: ignore[arg-type]


@pytest.mark.parametrize("line", ["", "H4sIAAAA", "nonsense", "eyJhIjoxfQ=="])
def test_what_is_no_record_is_one_message(line: str, shared: Path) -> None:
    class Torn(ClusterWith):
        def run(self, *argv: str, **_: bool) -> str:
            return line if "--record" in argv else '{"found": ["gpt2/mine"], "newest": []}'

    with pytest.raises(OpsError, match="not a record of a run"):
        read_on_cluster("mine", Torn(shared))  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_report_needs_no_account_and_overwrites_nothing(
    shared: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.account.session.account_clients", lambda: pytest.fail("asked"))
    run, page = str(shared / "runs" / "gpt2" / "job-17"), tmp_path / "run.html"
    code, output, errors = call("report", run, "--html", str(page))
    assert (code, errors) == (0, "")
    assert page.read_text().startswith("<!doctype html>")
    for said in ("Loss", "█", "restart 1", "Checkpoints", "USD", "forecast", "Beside published", "run.html"):
        assert said in output
    page.write_text("mine")
    code, output, errors = call("report", run, "--html", str(page))
    assert (code, output, "run.html already exists" in errors, page.read_text()) == (2, "", True, "mine")
    assert call("report", run, "--html", str(page), "--force")[0] == 0
    assert list(tmp_path.iterdir()) == [page]


@pytest.mark.slow
def test_json_is_one_object_with_cost_and_comparisons(shared: Path, call: Call) -> None:
    runs = [str(shared / "runs" / "gpt2" / name) for name in ("job-17", "mine")]
    code, output, _ = call("report", *runs, "--json")
    found = json.loads(output)["runs"]
    assert (code, [each["name"] for each in found]) == (0, ["gpt2/job-17", "gpt2/mine"])
    assert found[0]["cost"]["usd"] > 0 < found[0]["forecast"]["train_share"] < 1
    assert found[0]["compared"][0]["published"] == "2.85 nats a token"


def test_a_missing_page_library_says_what_to_type(
    shared: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.report.page._UPLOT", tmp_path / "none")
    run, page = shared / "runs" / "gpt2" / "mine", tmp_path / "run.html"
    code, _, said = call("report", str(run), "--html", str(page))
    assert (code, "npm ci" in said, page.exists()) == (1, True, False)
