"""run-steps.sh with steps of the tests: when each runs, its messages, and what counts as done."""

import re
import shutil
import subprocess
from pathlib import Path

import psutil
import pytest

from training_cluster.catalog.steps import NODES, RECIPES, load_steps
from training_cluster.paths import ASSETS
from training_cluster.problems import ConfigurationError

ONE_TEXT = ("bash", "-c", 'exec bash "$@" >&2', "_")
RUNNER = ASSETS / "bootstrap" / "run-steps.sh"


class Bundle:
    """An unpacked bundle of a GPU cluster, and the disk of the node that runs it."""

    def __init__(self, root: Path) -> None:
        self.root, self.assets, self.slash = root, root / "bundle", root / "slash"
        self.steps = self.assets / "bootstrap" / "steps"
        self.steps.mkdir(parents=True)
        shutil.copy(RUNNER, self.assets / "bootstrap")
        (self.assets / "partitions").mkdir()
        (self.assets / "partitions" / "gpu.env").write_text(
            "export IMAGE_RECIPE='gpu'\nexport WORKLOADS='mine'\n"
        )
        self.pins("export TOOL_VERSION='1'\n")
        (self.assets / "image.env").write_text("export WORKLOADS='mine'\n")
        (self.slash / "etc" / "parallelcluster").mkdir(parents=True)
        self.cfnconfig.write_text("cfn_scheduler_queue_name=gpu\n")

    @property
    def cfnconfig(self) -> Path:
        return self.slash / "etc" / "parallelcluster" / "cfnconfig"

    def pins(self, text: str) -> None:
        (self.assets / "versions.env").write_text(text)

    def step(self, name: str, body: str = "echo ran", **header: str) -> Path:
        lines = {"Where": "any", "Budget": "20 s"} | header
        stated = "".join(f"# {key}: {value}\n" for key, value in lines.items())
        path = self.steps / f"{name}.sh"
        path.write_text(f"#!/usr/bin/env bash\n# Says so.\n{stated}set -eu\n{body}\n")
        return path

    def run(
        self, *arguments: str, node: str = "ComputeFleet", of: tuple[str, ...] = ONE_TEXT
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*of, str(self.assets / "bootstrap" / "run-steps.sh"), *(arguments or ("start",))],
            env={"PATH": "/usr/bin:/bin", "NODE_TYPE": node, "TRAINING_ROOT": str(self.slash)},
            capture_output=True,
            text=True,
        )

    def said(self, *arguments: str, node: str = "ComputeFleet") -> dict[str, str]:
        """Return the runner's message of each step."""
        done = self.run(*arguments, node=node)
        return dict(re.findall(r"bootstrap: step (\S+): (\w+(?: \([^:)]+)?)", done.stderr))


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return Bundle(tmp_path)


def test_steps_run_in_order_with_their_variables(bundle: Bundle) -> None:
    out = bundle.root / "out"
    for name in ("60-last", "10-first"):
        bundle.step(name, f'echo "{name} $NODE_TYPE $RECIPE $PARTITION $TOOL_VERSION $WORKLOADS $OS" >>{out}')
    done = bundle.run()
    assert done.returncode == 0, done.stderr
    first, last = out.read_text().splitlines()
    assert first.startswith("10-first ComputeFleet gpu gpu 1 mine ")
    assert last.startswith("60-last")
    log = (bundle.slash / "var" / "log" / "training-cluster" / "bootstrap.log").read_text()
    assert re.search(r"step 10-first: done, \d s\n", log)


def test_a_done_step_waits_for_a_change(bundle: Bundle) -> None:
    bundle.step("10-tool", "echo $TOOL_VERSION")
    bundle.step("20-other")
    assert bundle.said() == {"10-tool": "done", "20-other": "done"}
    assert bundle.said() == {"10-tool": "skipped (done before", "20-other": "skipped (done before"}
    bundle.pins("export TOOL_VERSION='2'\n")
    assert bundle.said() == {"10-tool": "done", "20-other": "skipped (done before"}
    bundle.step("20-other", "echo changed")
    assert bundle.said() == {"10-tool": "skipped (done before", "20-other": "done"}


def test_files_that_a_step_reads_are_part(bundle: Bundle) -> None:
    """But not those of other workloads, which an image does not have."""
    for workload in ("mine", "other"):
        (bundle.assets / "training" / workload).mkdir(parents=True)
        (bundle.assets / "training" / workload / "requirements.txt").write_text("torch\n")
    bundle.step("50-workloads", Reads="training/*/requirements.txt")
    assert bundle.said() == {"50-workloads": "done"}
    (bundle.assets / "training" / "other" / "requirements.txt").write_text("jax\n")
    assert bundle.said() == {"50-workloads": "skipped (done before"}
    (bundle.assets / "training" / "mine" / "requirements.txt").write_text("jax\n")
    assert bundle.said() == {"50-workloads": "done"}


def test_steps_run_at_their_moment_and_place(bundle: Bundle) -> None:
    """On a Debian without a version, too."""
    (bundle.slash / "etc" / "os-release").write_text('ID=debian\nPRETTY_NAME="Debian forky/sid"\n')
    bundle.step("10-install")
    bundle.step("40-compile", Moment="image")
    bundle.step("60-start")
    bundle.step("61-node", Where="node")
    waits = "skipped (a job waits; the next node that starts does it"
    of_start = {"60-start": "done", "61-node": "done"}
    assert bundle.said("refresh") == {"10-install": waits, "40-compile": waits, **of_start}
    compiles = {"40-compile": "skipped (only in a built image"}
    assert bundle.said() == {"10-install": "done", **compiles, **of_start}
    bundle.cfnconfig.unlink()
    of_start["61-node"] = "skipped (this is no ParallelCluster node"
    assert bundle.said() == {"10-install": "skipped (done before", **compiles, **of_start}


def test_after_an_image_build_a_start_only_starts(bundle: Bundle) -> None:
    """An image without a step fails."""
    bundle.step("10-install")
    bundle.step("40-compile", Moment="image")
    bundle.step("45-nice", "exit 1", Moment="image", Required="no")
    bundle.step("60-start")
    done = bundle.run("check", "--recipe", "gpu")
    assert done.returncode == 1
    assert "2 steps are not done" in done.stderr.splitlines()[-1]
    assert "step 45-nice: not done" in done.stderr
    made = {"10-install": "done", "40-compile": "done", "45-nice": "failed"}
    assert bundle.said("image", "--recipe", "gpu") == made
    assert bundle.run("check", "--recipe", "gpu").returncode == 0
    assert bundle.said() == {
        **dict.fromkeys(("10-install", "40-compile"), "skipped (done before"),
        "45-nice": "skipped (only in a built image",
        "60-start": "done",
    }


def test_a_step_runs_where_its_header_says(bundle: Bundle) -> None:
    bundle.step("10-head", Nodes="HeadNode")
    bundle.step("11-login", Nodes="HeadNode LoginNode")
    bundle.step("20-others", Recipes="volta neuron")
    bundle.step("21-gpu", Recipes="gpu")
    bundle.step("22-cpu", Recipes="cpu gpu")
    bundle.step("30-cloudwatch", Metrics="cloudwatch")
    bundle.step("31-prometheus", Metrics="prometheus amp")
    heads = ["10-head", "11-login", "22-cpu", "30-cloudwatch"]
    assert list(bundle.said(node="HeadNode")) == heads
    assert list(bundle.said(node="LoginNode")) == heads[1:]
    assert list(bundle.said()) == ["21-gpu", "22-cpu", "30-cloudwatch"]
    (bundle.assets / "metrics.env").write_text("export METRICS='amp'\n")
    assert list(bundle.said()) == ["21-gpu", "22-cpu", "31-prometheus"]
    of_image = ["21-gpu", "22-cpu", "30-cloudwatch", "31-prometheus"]
    assert list(bundle.said("image", "--recipe", "gpu")) == of_image


def test_only_a_required_step_ends_all(bundle: Bundle) -> None:
    """Its reason is the last line of both outputs."""
    bundle.step("05-soft", "echo 'no metrics today' >&2; exit 1", Required="no")
    bundle.step("10-a", "echo 'no such package: x' >&2; exit 3")
    bundle.step("20-b")
    done = bundle.run(of=("bash",))
    assert done.returncode == 1
    for text in (done.stdout, done.stderr):
        assert re.search(r"step 10-a failed after \d s: no such package: x$", text.strip().splitlines()[-1])
    assert re.search(r"step 05-soft: failed, optional, \d s: no metrics today\n", done.stdout)
    assert "20-b" not in done.stdout
    assert bundle.said() == {"05-soft": "failed"}  # not done: it is tried again, and fails again


@pytest.mark.slow
def test_a_step_over_budget_ends_with_its_processes(bundle: Bundle) -> None:
    bundle.step("61-dawdle", "sleep 300.125 & sleep 300.125", Budget="1 s")
    done = bundle.run()
    last = done.stderr.splitlines()[-1]
    assert re.search(r"step 61-dawdle failed after \d+ s: it took more than its 1 s$", last), done.stderr
    assert [p for p in psutil.process_iter(["cmdline"]) if "300.125" in (p.info["cmdline"] or [])] == []


def test_a_node_of_no_partition_is_refused(bundle: Bundle) -> None:
    for cfnconfig, said in (
        ("cfn_scheduler_queue_name=elsewhere\n", "no settings of the partition 'elsewhere'"),
        ("", "cfn_scheduler_queue_name is missing"),
    ):
        bundle.cfnconfig.write_text(cfnconfig)
        done = bundle.run()
        assert (done.returncode, said in done.stderr) == (1, True)


def test_python_reads_headers_as_the_runner() -> None:
    """The defaults of headers are written in both languages."""
    script = f"""
        declare -A header; source <(sed -n '/^read_header()/,/^}}/p' {RUNNER})
        for file; do read_header "$file"
            for name in Moment Recipes Nodes Where Required Budget; do echo "${{header[$name]}}"; done
        done"""
    files = [str(step.path) for step in load_steps()]
    output = subprocess.check_output(["bash", "-c", script, "_", *files], text=True)
    lines = iter(output.splitlines())
    for step, read in zip(load_steps(), zip(*[lines] * 6, strict=True), strict=True):
        moment, recipes, nodes, where, required, budget = read
        assert (moment, budget) == (step.moment, f"{step.budget_s} s"), step.name
        assert set(RECIPES if recipes == "all" else recipes.split()) == step.recipes
        assert set(NODES if nodes == "all" else nodes.split()) == step.nodes
        assert (where == "node", required == "yes") == (step.is_for_nodes_only, step.is_required)


def test_an_unknown_header_is_refused(bundle: Bundle) -> None:
    wrong = {"Budget": "soon", "Moment": "someday", "Recipes": "all gpu", "Nodes": "Toaster"}
    for name, value in wrong.items():
        bundle.step("10-a", **{name: value})
        with pytest.raises(ConfigurationError, match=rf"10-a\.sh: its header has no line `# {name}:"):
            load_steps(bundle.assets)
    bundle.step("10-a", Recipe="gpu")
    with pytest.raises(ConfigurationError, match=r"10-a\.sh: .* `# Recipe:`\n    allowed: .*Recipes"):
        load_steps(bundle.assets)
