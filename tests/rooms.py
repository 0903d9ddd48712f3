"""The rooms of the code: folders of modules, and who imports whom."""

import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from training_cluster.paths import ROOT

PACKAGES = {
    "training_cluster": ROOT / "constructs",
    **dict.fromkeys(("ops", "rehearsal", "tools", "bench"), ROOT),
}
# Packages whose modules import each other.
IMPORTERS = (*PACKAGES, "stacks")
# Run by themselves, in other environments: their imports are not those of the project.
APART = ("rehearsal/faults/inside", "ops/workload_template", "bench/baselines", "rehearsal/shims")

# Folders that are tested as a part of something larger: a file of tests for each.
TESTED_WITH = {
    # Constructs, in the template of the stack that they make.
    "constructs/training_cluster/cluster": "tests/unit/stacks/test_training_cluster_stack.py",
    "constructs/training_cluster/image": "tests/unit/stacks/test_image_stack.py",
    "constructs/training_cluster/network": "tests/unit/stacks/test_network_stack.py",
    "constructs/training_cluster/storage": "tests/unit/stacks/test_storage_stack.py",
    # Options and help of commands, whose work is in other folders.
    "ops/commands/buying": "tests/unit/ops/capacity/test_search.py",
    "ops/commands/local": "tests/unit/ops/commands/test_commands.py",
    "ops/commands/people": "tests/unit/ops/users/test_users_deploy.py",
    # One command's checks, which read one account.
    "ops/preflight/account": "tests/unit/ops/preflight/test_checks.py",
    "ops/preflight/capacity": "tests/unit/ops/preflight/test_checks.py",
    "ops/preflight/network": "tests/unit/ops/preflight/test_checks.py",
    # Services of one local AWS, which runs as a process with all of them.
    **dict.fromkeys(
        (
            "rehearsal/local_aws/cloudformation",
            "rehearsal/local_aws/ec2",
            "rehearsal/local_aws/emulators",
            "rehearsal/local_aws/fsx",
            "rehearsal/local_aws/head_node",
        ),
        "tests/slow/stacks/test_stacks_deploy.py",
    ),
    # Stand-ins for Pyxis and Enroot, in which jobs run.
    "rehearsal/containers": "tests/slow/assets/training/test_job_container.py",
    # Stand-ins for a GPU and a network, which real workloads load in their own environments.
    "rehearsal/shims": "tests/slow/assets/training/test_gpt2_megatron.py",
}
# Folders that no test runs, and the command that does.
RUN_BY_HAND = {
    "bench": "make bench: a program that fails, or prints no figure, ends its benchmark with a message",
    "tools": "make check, make docs, make lock: each ends with a message where something is wrong",
    "rehearsal/faults/inside": "make faults: in .venv-pcluster",
}


@cache
def tracked(pattern: str) -> list[Path]:
    """List the files of a git pattern that exist, new ones included, relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "--", pattern],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [Path(line) for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


@cache
def modules() -> dict[str, Path]:
    """Return all modules of the packages and of the stacks: dotted name to path."""
    paths = [path for path in tracked("*.py") if not path.is_relative_to("tests")]
    found = {}
    for path in paths:
        if not any(path.is_relative_to(each) for each in APART):
            parts = path.with_suffix("").parts
            parts = parts[1:] if parts[0] == "constructs" else parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            if parts[0] in IMPORTERS:
                found[".".join(parts)] = path
    return found


def _imported(path: Path, names: dict[str, Path]) -> Iterator[str]:
    """Yield the modules of ours that a module imports anywhere, also inside of functions."""
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom) and node.module in names:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (each if each in names else node.module for each in inner)


@cache
def _with_folders() -> set[str]:
    """Return the packages that have packages in them."""
    packages = [module for module, path in modules().items() if path.name == "__init__.py"]
    return {package.rpartition(".")[0] for package in packages} | {"stacks"}


def room_of(module: str, path: Path) -> str:
    """Return the folder of a module; a module beside the folders of its package is a room of its own."""
    folder = module.rpartition(".")[0]
    return module if path.name == "__init__.py" or folder in _with_folders() else folder


@cache
def arrows() -> dict[str, set[str]]:
    """Return the rooms that each room imports, other than itself."""
    names = modules()
    found: dict[str, set[str]] = defaultdict(set)
    for module, path in names.items():
        mine = room_of(module, path)
        for other in _imported(path, names):
            theirs = room_of(other, names[other])
            if theirs != mine and theirs not in IMPORTERS:
                found[mine].add(theirs)
    return dict(found)


def order() -> list[str]:
    """Return the rooms, each after all that it imports. Raises graphlib.CycleError."""
    return list(TopologicalSorter(arrows()).static_order())


def workload_imports(folder: Path) -> dict[str, set[str]]:
    """Return what each module of a folder of assets/training imports of that folder and of trainkit."""
    names = {
        ".".join(path.parts[2:]).removesuffix(".py"): path
        for path in tracked("assets/training/trainkit/*.py")
    }
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    names |= {path.stem: path for path in tracked(f"{folder}/*.py") if path.parent == folder}
    return {name: {*_imported(path, names)} - {name} for name, path in names.items()}


def tests_of(path: Path, *kinds: str) -> set[Path]:
    """Return the tests at the place that mirrors a file: those named after it, else after its folder.

    Of several that are named after its folder, those that share most words with the file's name.
    """
    folder = Path(str(path.parent).replace("-", "_").removeprefix("constructs/"))
    name = re.sub(r"^\d+_", "", path.stem.replace("-", "_"))
    places = [Path("tests", kind, folder) for kind in kinds]
    tests = tracked("tests/**/test_*.py")
    beside = [test for test in tests if test.parent in places]
    above = [test for test in tests if test.parent in [place.parent for place in places]]
    if named := _begin(beside, name):
        return named
    named = _begin([*beside, *above], folder.name)
    shared = {test: len({*test.stem.split("_")} & {*name.split("_")}) for test in named}
    return {test for test in named if shared[test] == max(shared.values())}


def _begin(tests: Iterable[Path], name: str) -> set[Path]:
    """Return the tests whose names begin with the words of a name."""
    return {test for test in tests if name and f"{test.stem}_".startswith(f"test_{name}_")}
