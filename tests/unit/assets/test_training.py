"""Each workload's README has the same headings, and no Python of ours searches the folder of its caller."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from training_cluster.paths import ASSETS, ROOT, TRAINING

FIRST = ("Run it", "Settings")
LAST = ("Differences from the walk-through", "Figures", "Limits")
READMES = (
    *sorted((ROOT / "assets" / "training").glob("*/README.md")),
    ROOT / "ops" / "workload_template" / "README.md",
)


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_readmes_have_commands_first_and_figures_last(readme: Path) -> None:
    text = readme.read_text()
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings[:2] == list(FIRST)
    assert "job.slurm" in text.split("## Settings")[0]
    at_the_end = [each for each in LAST if each in headings]
    assert headings[len(headings) - len(at_the_end) :] == at_the_end


# In a container the current folder is always the run's, and -I would hide packages on the image's PYTHONPATH.
IN_CONTAINERS = TRAINING / "container_environment.sh"
SHELL = sorted({*ASSETS.rglob("*.sh"), *ASSETS.rglob("*.slurm")} - {IN_CONTAINERS})
# An interpreter, or what names one, and its flags before -m, -c or a script on stdin.
CALL = re.compile(r'(?:python[\w.]*\)?"?|"\$1"|find_python\)") (?P<flags>(?:-[A-Za-z]+ )*?)-[mc]? ')
POISON = 'import os\nos.write(2, f"poison: {__name__}\\n".encode())\n'


def poison(folder: Path) -> Path:
    """Fill a folder with files of the names of all modules that a program may import."""
    folder.mkdir()
    for name in (*sys.stdlib_module_names, "pip", "torch", "trainkit", "yaml"):
        (folder / f"{name}.py").write_text(POISON)
    return folder


def test_each_call_of_a_module_is_isolated() -> None:
    calls = {script: CALL.finditer(script.read_text("utf-8")) for script in SHELL}
    exposed = [
        (script.name, call[0])
        for script, found in calls.items()
        for call in found
        if "-I" not in call["flags"].split()
    ]
    assert exposed == []
    programs = [*TRAINING.rglob("*.py"), *(ASSETS / "bootstrap").rglob("*.py")]
    assert [path for path in programs if '"-m"' in path.read_text("utf-8")] == []
    lines = [
        "python3 -m venv x",
        '"$python" -B -c 1',
        '"$1" -m venv',
        '"$(find_python)" -m x',
        'b/python" - <<',
    ]
    assert all(CALL.search(f"{line} ") for line in lines)
    assert not CALL.search('python3 -B "$here/prepare.py"')


def test_a_module_runs_from_a_poisoned_folder(tmp_path: Path) -> None:
    module = "trainkit.run.report"
    done = subprocess.run(
        [sys.executable, "-I", "-B", TRAINING / "run_module.py", module, tmp_path, "--find", "none"],
        cwd=poison(tmp_path / "poisoned"),
        env=os.environ | {"PYTHONPATH": ""},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert '"found": []' in done.stdout
