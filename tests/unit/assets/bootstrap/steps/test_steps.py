"""Each step on a machine of stubs, as steps.yaml says: what the machine has, what is called, how it ends."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.assets.bootstrap.step_machine import APT, KERNEL, Machine
from training_cluster.catalog.steps import load_steps
from training_cluster.paths import ASSETS, ROOT

HAS = ("serves", "files", "programs", "links")


def cases() -> Iterator[dict[str, Any]]:
    """Yield the cases, each with its step and all that its machine has."""
    step: dict[str, Any] = {}
    for entry in yaml.safe_load(Path(__file__).with_name("steps.yaml").read_text()):
        if "step" in entry:
            step = entry
        else:
            yield step | entry | {name: step.get(name, {}) | entry.get(name, {}) for name in HAS}


PROMETHEUS = ROOT / ".cache" / "prometheus" / "usr" / "bin"
WORDS = {"APT": APT, "KERNEL": KERNEL, "PROMETHEUS": str(PROMETHEUS)}
STEPS = [step.path for step in load_steps()]


def filled(machine: Machine, value: Any) -> Any:
    """Replace @NAME@ by a place, a pin or another variable of the machine."""
    if isinstance(value, dict):
        return {filled(machine, name): filled(machine, each) for name, each in value.items()}
    if isinstance(value, list):
        return [filled(machine, each) for each in value]
    known = {**machine.environment, **WORDS, "ETC": str(machine.etc)}
    return re.sub(r"@(\w+)@", lambda name: known[name[1]], value) if isinstance(value, str) else value


def is_called(wanted: str, call: str) -> bool:
    """Return True if a call is the wanted one, in which ... is any text."""
    return bool(re.fullmatch(re.escape(wanted).replace(r"\.\.\.", ".*"), call))


def prepare(machine: Machine, case: dict[str, Any]) -> None:
    """Change what the machine has."""
    for name, text in case.get("serves", {}).items():
        machine.environment[name] = machine.serve(text)
    case.update(filled(machine, case))
    for name, script in case.get("programs", {}).items():
        machine.program(name, script or "")
    for name, text in case.get("files", {}).items():
        file = machine.write(name, "") if not name.startswith("etc:") else machine.etc / name[4:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for name, target in case.get("links", {}).items():
        path = machine.bin / name if "/" not in name else machine.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
    for name, text in case.get("bundle", {}).items():
        (machine.bundle / name).write_text(text)
    for name in case.get("lacks", ()):
        path = (machine.root if "/" in name else machine.bin) / name
        path.rmdir() if path.is_dir() else path.unlink()


def play(machine: Machine, case: dict[str, Any]) -> None:
    """Run a case's step, and compare."""
    prepare(machine, case)
    done = machine.run(case["step"], **case.get("with", {}))
    calls = machine.calls()
    last = (done.stderr.strip().splitlines() or [""])[-1]
    assert bool(done.returncode) == ("fails" in case), done.stderr
    assert [word for word in case.get("fails", ()) if word not in last] == [], done.stderr
    assert [word for word in case.get("says", ()) if word not in done.stderr] == [], done.stderr
    if "calls" in case:
        wanted = case["calls"]
        assert len(calls) == len(wanted) and all(map(is_called, wanted, calls)), calls
    for wanted in case.get("has", ()):
        assert any(is_called(wanted, call) for call in calls), (wanted, calls)
    for unwanted in case.get("never", ()):
        assert [call for call in calls if call.startswith(unwanted)] == []
    for name, text in case.get("writes", {}).items():
        file = machine.etc / name[4:] if name.startswith("etc:") else machine.root / name
        if text is None:
            assert not file.exists() and not file.is_symlink(), file
        elif isinstance(text, list):
            assert [part for part in text if part not in file.read_text()] == [], file.read_text()
        else:
            assert file.read_text() == text
    for name, target in case.get("linked", {}).items():
        assert str((machine.root / name).readlink()) == target
    for name, mode in case.get("modes", {}).items():
        assert f"{(machine.root / name).stat().st_mode & 0o7777:o}" == str(mode), name
    if "again" in case:
        before = machine.files()
        play(machine, {"step": case["step"], "with": case.get("with", {}), "calls": case["again"]})
        assert machine.files() == before
    if "then" in case:
        inherited = {name: case[name] for name in ("step", "with") if name in case}
        play(machine, inherited | case["then"])


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: f"{case['step']}: {case['name']}")
def test_a_step_does_this(case: dict[str, Any], tmp_path: Path, venv: Path) -> None:
    play(Machine(tmp_path, venv=venv if int(case["step"]) < 60 else None), case)


def test_steps_read_what_their_headers_say(machine: Machine) -> None:
    """An image's bundle has what headers name, and a step runs again when one of these files changes."""
    for step in (step for step in STEPS if step.name < "6"):
        text = step.read_text()
        header = re.search(r"^# Reads: (.+)$", text, re.MULTILINE)
        reads = set(header[1].split() if header else [])
        sourced = set(re.findall(r'^source "\$BUNDLE/(\S+)"$', text, re.MULTILINE))
        assert sourced <= reads, step
        for file in filter(Path.is_file, (ASSETS / name for name in sourced)):
            beside = r'^source "\$\(dirname "\$\{BASH_SOURCE\[0\]\}"\)/(\S+)"$'
            names = re.findall(beside, file.read_text(), re.MULTILINE)
            assert {str((file.parent / name).relative_to(ASSETS)) for name in names} <= reads
        for pattern in reads:
            assert list(ASSETS.glob(pattern)) or "install.sh" in pattern
        pins = re.findall(r"\$\{?#?([A-Z_0-9]+_(?:VERSION|SHA256|URL|COMMIT|FINGERPRINT))\b", text)
        assert set(pins) <= set(machine.environment), step


FETCHES = (
    "install_packages|install_program|apt|apt-get|dnf|yum|snap|pip3?|curl|wget|git|add_repository|fetch_key|"
    "download|checkout|unpack_wheel"
)


def test_no_start_step_of_compute_nodes_installs() -> None:
    """Thousands of nodes would each fetch the same package, and those that fail would lack it."""
    starts = [step for step in load_steps() if step.moment == "start" and "ComputeFleet" in step.nodes]
    assert len(starts) > 10
    for step in starts:
        code = re.sub(r"^ *#.*| # .*", "", step.text, flags=re.M)
        found = re.findall(rf"(?<![\w./-])(?:{FETCHES})(?![\w./=-])", code)
        found += re.findall("lib/(?:packages|download|repository)", code)
        assert not found, f"{step.name}: {found}"
