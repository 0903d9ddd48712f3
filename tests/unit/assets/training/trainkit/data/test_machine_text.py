"""Text that exists on any machine: what is gathered, and when."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.assets.training.workload_modules import Import, workload_on_the_path


@pytest.fixture(autouse=True)
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    with workload_on_the_path(monkeypatch, "gpt2") as load:
        yield load


@pytest.fixture
def machine_text(load: Import) -> ModuleType:
    return load("trainkit.data.machine_text")


@pytest.fixture
def stdlib(tmp_path: Path) -> Path:
    folder = tmp_path / "stdlib"
    for name, source in {
        "b.py": '"""Module b."""\nraise RuntimeError("imported")\n',
        "a.py": '"""Module a."""\nclass A:\n    """Class A."""\n    def f(self):\n        """Method f."""\n',
        "silent.py": "x = 1\n",
        "broken.py": "def (:\n",
        "test/test_a.py": '"""A test."""\n',
        "site-packages/other.py": '"""Someone else\'s."""\n',
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(source, encoding="utf-8")
    return folder


def test_documentation_is_read_from_source_and_nothing_is_imported(
    machine_text: ModuleType, stdlib: Path
) -> None:
    assert list(machine_text.documentation(stdlib)) == ["Module a.\n\nClass A.\n\nMethod f.", "Module b."]


def test_text_of_the_machine_is_gathered_once(machine_text: ModuleType, stdlib: Path, tmp_path: Path) -> None:
    licences = tmp_path / "licences"
    licences.mkdir()
    (licences / "MIT-2").write_text("Permission is granted.\n", encoding="utf-8")
    (licences / "MIT").symlink_to("MIT-2")

    def gather() -> list[Path]:
        found: list[Path] = machine_text.gather(tmp_path / "to", licences=licences, stdlib=stdlib)
        return found

    first, second = gather()
    assert first.read_text(encoding="utf-8") == "Permission is granted.\n"
    assert "Class A." in second.read_text(encoding="utf-8")
    before = second.stat().st_mtime_ns
    assert gather()[1].stat().st_mtime_ns == before
    (licences / "BSD").write_text("Redistribution and use are permitted.\n", encoding="utf-8")
    assert "Redistribution" in gather()[0].read_text(encoding="utf-8")


def test_a_machine_without_licences_still_has_documentation(
    machine_text: ModuleType, stdlib: Path, tmp_path: Path
) -> None:
    (only,) = machine_text.gather(tmp_path / "to", licences=tmp_path / "none", stdlib=stdlib)
    assert only.name == "documentation.txt"
