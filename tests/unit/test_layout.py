"""The folder named constructs, the two environments, the shape of app.py."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests import rooms
from training_cluster.paths import ROOT

MOST_MODULES = 20
MOST_WORDS = 8
CONSTANTS = ("paths", "ports")
"""Modules of constants alone."""


def test_constructs_has_no_init_file() -> None:
    assert not (ROOT / "constructs" / "__init__.py").exists(), (
        "constructs/__init__.py shadows the PyPI package that aws_cdk imports: remove it"
    )
    assert not (ROOT / "tests" / "constructs").exists()


def test_mypy_follows_each_imported_cdk_module() -> None:
    """mypy skips the others, and knows no type of a module that it skips."""
    imported = {"aws_cdk", "aws_cdk._jsii", "aws_cdk.interfaces.*"}
    for path in rooms.tracked("*.py"):
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            match node:
                case ast.ImportFrom(module="aws_cdk"):
                    imported |= {f"aws_cdk.{alias.name}" for alias in node.names if alias.name.islower()}
                case ast.ImportFrom(module=str(module)) if module.startswith("aws_cdk."):
                    imported.add(module)
                case ast.Import():
                    imported |= {a.name for a in node.names if a.name.startswith("aws_cdk.")}
    mypy = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    (followed,) = (each for each in mypy["overrides"] if each.get("follow_imports") == "normal")
    assert set(followed["module"]) == imported


def test_no_folder_has_more_than_20_modules() -> None:
    folders = Counter(path.parent for path in rooms.tracked("*.py"))
    assert {str(folder): count for folder, count in folders.items() if count > MOST_MODULES} == {}


def test_rooms_import_each_other_in_one_direction() -> None:
    assert rooms.order()  # raises CycleError, which names a circle


def test_modules_of_workloads_import_in_one_direction() -> None:
    for folder in (ROOT / "assets" / "training").glob("*/"):
        imports = rooms.workload_imports(folder.relative_to(ROOT))
        assert list(TopologicalSorter(imports).static_order()), folder


def _names_tested(folder: Path) -> set[str]:
    """Return what a test in a folder may be named after: the folder of the code, what is in it."""
    beside = {folder.name} | {path.name for path in (ROOT / folder).iterdir()}
    names = {name.split(".")[0].replace("-", "_") for name in beside}
    return names | {re.sub(r"^\d+_", "", name) for name in names}


def test_each_test_mirrors_the_path_of_code() -> None:
    code = {
        Path(str(folder).replace("-", "_").removeprefix("constructs/")): folder
        for path in [*rooms.tracked("*.py"), *rooms.tracked("*.sh")]
        for folder in path.parents
        if not path.is_relative_to("tests")
    }
    lost = []
    for kind in ("unit", "slow"):
        for path in rooms.tracked(f"tests/{kind}/**/test_*.py"):
            mirrored = path.relative_to(f"tests/{kind}").parent
            words = path.stem.removeprefix("test_").split("_")
            starts = {"_".join(words[:count]) for count in range(1, len(words) + 1)}
            if mirrored != Path() and not (mirrored in code and starts & _names_tested(code[mirrored])):
                lost.append(str(path))
    assert lost == [], "named after no module, script or folder at the place that they mirror"


def test_names_of_tests_have_eight_words_at_most() -> None:
    longer = [
        f"{path}: {node.name}"
        for path in rooms.tracked("tests/*.py")
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
        if len(node.name.removeprefix("test_").split("_")) > MOST_WORDS
    ]
    assert longer == []


def _has_test(path: Path) -> bool:
    """Return True if a test is named after a file or its folder, at the place that mirrors it."""
    return bool(rooms.tests_of(path, "unit", "slow"))


def _within_any(path: Path, folders: Iterable[str]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def test_each_module_has_a_test_at_its_path() -> None:
    modules = [
        path
        for path in rooms.tracked("*.py")
        if not path.is_relative_to("tests") and path.stem not in {"__init__", "__main__", *CONSTANTS}
    ]
    apart = (*rooms.TESTED_WITH, *rooms.RUN_BY_HAND)
    assert [str(path) for path in modules if not (_within_any(path, apart) or _has_test(path))] == []


def test_folders_tested_elsewhere_have_modules_without_tests() -> None:
    for folder in (*rooms.TESTED_WITH, *rooms.RUN_BY_HAND):
        inside = [path for path in rooms.tracked(f"{folder}/*.py") if path.stem != "__init__"]
        assert [path for path in inside if not _has_test(path)], f"{folder}: leave it out of the list"
    assert all((ROOT / test).exists() for test in rooms.TESTED_WITH.values())


@pytest.mark.slow
def test_a_rehearsal_loads_no_cdk_of_its_own() -> None:
    """It starts Node when it is imported; only the CDK CLI, which brings Node along, runs the app."""
    program = "import sys, rehearsal.__main__; sys.exit('aws_cdk' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == 0


def test_imports_point_one_way() -> None:
    forbidden = {
        "constructs/training_cluster": ("stacks", "ops", "rehearsal", "tools", "boto3"),
        "stacks": ("ops", "rehearsal", "tools", "boto3"),
        "assets": ("stacks", "ops", "rehearsal", "tools", "training_cluster"),
    }
    for folder, packages in forbidden.items():
        for path in (ROOT / folder).rglob("*.py"):
            for package in packages:
                found = re.search(rf"^\s*(from|import) {package}\b", path.read_text(), re.MULTILINE)
                assert not found, f"{path.relative_to(ROOT)} imports {package}"


def test_actions_are_pinned_by_commit() -> None:
    workflows = "".join(path.read_text() for path in (ROOT / ".github" / "workflows").iterdir())
    uses = re.findall(r"uses: (.*)", workflows)
    assert uses
    assert [each for each in uses if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v[\d.]+", each)] == []


def test_every_requirement_is_pinned_and_locked() -> None:
    for name, lock in {
        "requirements": "dev",
        "requirements-dev": "dev",
        "requirements-pcluster": "pcluster",
    }.items():
        locked = (ROOT / "locks" / f"{lock}.txt").read_text().lower().replace("_", "-")
        for line in (ROOT / f"{name}.txt").read_text().splitlines():
            if line and not line.startswith(("#", "-e")):
                pinned = re.sub(r"\[.*\]", "", line).lower().replace("_", "-")
                assert re.fullmatch(r"[a-z0-9.-]+==[a-z0-9.!]+", pinned), line
                assert f"{pinned} \\" in locked, f"{line} of {name}.txt is not in locks/{lock}.txt: make lock"
