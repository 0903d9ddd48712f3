"""Image Builder's document, its commands, run in a folder of this machine, and the plan of an image."""

import hashlib
import io
import re
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.stacks.app import EVERYTHING
from training_cluster.catalog.families import family_names, load_base, load_family
from training_cluster.catalog.steps import image_steps, load_steps
from training_cluster.catalog.versions import under
from training_cluster.catalog.workloads import load_workloads, workloads_of
from training_cluster.cluster.bundle import build_image_bundle
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.image.content import DOCUMENT
from training_cluster.image.plan import ImagePlan, image_plan
from training_cluster.rules.context import read_settings

ONE_OF_EACH = {"gpu": "p4d", "volta": "p3dn", "neuron": "trn1", "cpu": "m6i"}
FOLDERS = ("/opt/training-cluster", "/opt/parallelcluster")
VALUES = {
    "PclusterVersion": PCLUSTER_VERSION,
    "Recipe": "gpu",
    "BundleSource": "s3://b/k",
    "BundleSha256": "0" * 64,
}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(DOCUMENT.read_text())
    return found


def steps(document: dict[str, Any], phase: str) -> dict[str, dict[str, Any]]:
    """Return the steps by name, in order."""
    (found,) = [each for each in document["phases"] if each["name"] == phase]
    return {step["name"]: step for step in found["steps"]}


def run(document: dict[str, Any], step: str, root: Path, **values: str) -> subprocess.CompletedProcess[str]:
    """Run a build step's commands, with its folders under another root."""
    (command,) = steps(document, "build")[step]["inputs"]["commands"]
    for name, value in {**VALUES, **values}.items():
        command = command.replace(f"{{{{ {name} }}}}", value)
    for folder in FOLDERS:
        command = command.replace(folder, f"{root}{folder}")
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True)


def test_image_builder_takes_the_document(document: dict[str, Any]) -> None:
    """By the rules of its guide: "AWSTOE component document framework", "Action modules"."""
    declared = [name for each in document["parameters"] for name in each]
    assert document["schemaVersion"] == 1.0
    assert document.keys() == {"name", "description", "schemaVersion", "parameters", "phases"}
    assert [each["name"] for each in document["phases"]] == ["build", "validate", "test"]
    for phase in document["phases"]:
        assert len(steps(document, phase["name"])) == len(phase["steps"]), "a name occurs twice"
        for step in phase["steps"]:
            assert step.keys() - {"maxAttempts"} == {"name", "action", "timeoutSeconds", "inputs"}
            assert {*re.findall(r"\{\{\s*(.*?)\s*\}\}", str(step))} <= {*declared}
            inputs = step["inputs"]
            if step["action"] == "ExecuteBash":
                assert inputs.keys() == {"commands"} and all(isinstance(e, str) for e in inputs["commands"])
            else:
                assert step["action"] == "S3Download"
                assert all({"source", "destination"} <= each.keys() for each in inputs)


def test_recipe_gives_each_parameter(document: dict[str, Any], synthesise: Any) -> None:
    resources = synthesise(**EVERYTHING)["ImageStack"].to_json()["Resources"].values()
    stack = {each["Type"].rpartition("::")[2]: each.get("Properties", {}) for each in resources}
    (component,) = stack["ImageRecipe"]["Components"]
    given = [each["Name"] for each in component["Parameters"]]
    assert [{name} for name in given] == [each.keys() for each in document["parameters"]]
    assert len(DOCUMENT.read_text()) < 16_000, "the limit of a component's data"
    assert yaml.safe_load(stack["Component"]["Data"]) == document
    build = list(steps(document, "build"))
    assert build.index("CheckParent") < build.index("FetchBundle") < build.index("UnpackBundle")
    assert build[-1] == "RunSteps"
    validate = steps(document, "validate")
    assert list(validate) == ["CheckSteps", "ReleaseSnaps", "CleanUp"]
    assert validate["CleanUp"]["inputs"]["commands"] == ["/usr/local/sbin/ami_cleanup.sh"]
    assert all(0 < step["timeoutSeconds"] <= 6 * 3600 for e in document["phases"] for step in e["steps"])
    limit_s = steps(document, "build")["RunSteps"]["timeoutSeconds"]
    for family in ONE_OF_EACH.values():
        plan = image_plan(read_settings({"family": family, "image": "build"}))
        assert plan.budget_s < limit_s
        assert sum(step.budget_s for step in plan.steps) < limit_s


def test_no_snap_is_refreshed_during_a_build(document: dict[str, Any], tmp_path: Path) -> None:
    """The agent that runs the steps is a snap on Ubuntu; Amazon Linux has none."""
    assert next(iter(steps(document, "build"))) == "HoldSnaps"
    (hold,) = steps(document, "build")["HoldSnaps"]["inputs"]["commands"]
    (release,) = steps(document, "validate")["ReleaseSnaps"]["inputs"]["commands"]
    (tmp_path / "bash").symlink_to("/bin/bash")
    for command in (hold, release):
        done = subprocess.run(
            ["/bin/bash", "-ec", command], env={"PATH": str(tmp_path)}, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "snap").write_text(f'#!/bin/bash\necho "$*" >>{tmp_path}/calls\n[[ $1 == refresh ]]\n')
    (tmp_path / "snap").chmod(0o755)
    for command in (hold, release):
        subprocess.run(["/bin/bash", "-ec", command], env={"PATH": str(tmp_path)}, check=True)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls == ["watch --last=auto-refresh", "refresh --hold", "refresh --unhold"]


def test_a_parent_of_another_version_ends_the_build(document: dict[str, Any], tmp_path: Path) -> None:
    mark = tmp_path / "opt" / "parallelcluster" / ".bootstrapped"
    mark.parent.mkdir(parents=True)
    mark.write_text(f"aws-parallelcluster-cookbook-{PCLUSTER_VERSION}\n")
    assert run(document, "CheckParent", tmp_path).returncode == 0
    mark.write_text("aws-parallelcluster-cookbook-3.15.0\n")
    wrong = run(document, "CheckParent", tmp_path)
    assert wrong.returncode != 0
    assert "3.15.0" in wrong.stderr
    assert f"cookbook-{PCLUSTER_VERSION} is wanted" in wrong.stderr
    mark.unlink()
    assert run(document, "CheckParent", tmp_path).returncode != 0


def test_a_bundle_that_was_changed_is_refused(document: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "opt" / "training-cluster"
    assert run(document, "MakeFolder", tmp_path).returncode == 0
    bundle = build_image_bundle(recipe="gpu", workloads=workloads_of("gpu"))
    (folder / "image.tar.gz").write_bytes(bundle)
    done = run(document, "UnpackBundle", tmp_path, BundleSha256=hashlib.sha256(bundle).hexdigest())
    assert done.returncode == 0, done.stderr
    assert list((folder / "image" / "bootstrap" / "steps").glob("*.sh"))
    assert not (folder / "image.tar.gz").exists()
    (folder / "image.tar.gz").write_bytes(bundle)
    wrong = run(document, "UnpackBundle", tmp_path, BundleSha256=hashlib.sha256(b"other").hexdigest())
    assert wrong.returncode != 0
    assert "FAILED" in wrong.stdout
    assert (folder / "image" / "bootstrap" / "run-steps.sh").exists()


def test_the_bundle_has_every_file_that_steps_source() -> None:
    """Without one of them a build fails after half an hour."""
    assert set(load_base().image_recipes) == set(ONE_OF_EACH)
    for recipe in ONE_OF_EACH:
        bundle = build_image_bundle(recipe=recipe, workloads=())
        with tarfile.open(fileobj=io.BytesIO(bundle), mode="r:gz") as files:
            names = set(files.getnames())
        for step in image_steps(recipe):
            needed = {each for each in step.reads if "*" not in each}
            needed |= set(re.findall(r"\$BUNDLE/((?:bootstrap|training)/[\w./-]+\.sh)", step.text))
            assert needed <= names, step.name


def plan(family: str = "p4d", **flags: str) -> ImagePlan:
    return image_plan(read_settings({"family": family, "image": "build", **flags}))


def test_every_family_has_a_plan_with_its_steps() -> None:
    of_starts = {step.name for step in load_steps() if step.moment == "start"}
    for family in family_names():
        found = plan(family)
        assert family in found.families
        assert set(found.steps) == set(image_steps(load_family(family).image_recipe))
        names = [step.name for step in found.steps]
        assert names == sorted(names), "the order in which they run"
        assert not of_starts & {*names}
        assert found.recipe.usual_min < found.most_min, "the usual build is within its budgets"
        assert all("==" in each for packages in found.packages.values() for each in packages)


def test_environments_take_as_long_as_their_workloads_say() -> None:
    found = plan()
    (step,) = [each for each in found.steps if each.makes_environments]
    assert found.step_budget_s(step) == sum(load_workloads()[each.name].budget_s for each in found.workloads)
    without = plan(workloads="none")
    assert without.workloads == ()
    assert found.budget_s - without.budget_s == found.step_budget_s(step)
    volta, others = plan("p3dn"), plan("p4d")
    for pin, ceiling in {"nvidia_driver": "580", "cuda_toolkit": "12.6", "torch_volta": "2.14"}.items():
        assert under(volta.pins[pin].version, ceiling)
    assert not {"nvidia_driver", "torch_volta"} & set(others.pins)
    assert "gpt2" in [each.name for each in volta.workloads]
    assert volta.compute_capabilities == ("7.0",)
    assert plan("trn1").compute_capabilities == plan("m6i").compute_capabilities == ()
