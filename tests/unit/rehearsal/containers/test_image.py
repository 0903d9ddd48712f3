"""Two rehearsals that want the same image at the same time."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rehearsal.containers import image


def test_of_two_that_want_an_image_one_makes_it_and_the_other_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second_begins = threading.Event()

    def squash(_base: Path, _packages: object, made: Path) -> None:
        if not made.exists():
            second_begins.wait(5)
        with made.open("x"):
            pass

    def base(say: object) -> Path:
        if threading.current_thread().name.endswith("1"):
            second_begins.set()
        return tmp_path / "base"

    monkeypatch.setattr(image, "make_base", base)
    monkeypatch.setattr(image, "_squash", squash)
    monkeypatch.setattr("shutil.which", lambda name: name)
    said: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(image.make_image, tmp_path, environment=None, say=said.append) for _ in "ab"]
        assert both[0].result() == both[1].result()
    assert len(said) == 1
