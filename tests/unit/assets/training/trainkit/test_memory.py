"""Too little memory of a GPU: one sentence with what to give instead."""

import sys
from types import SimpleNamespace

import pytest
from trainkit.memory import GIB, enough_memory, smaller_micro_steps
from trainkit.run.settings import AccumulatingSettings

CUDA = "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 5 has a total capacity of 79.18 GiB.\nSee ..."


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = SimpleNamespace(
        max_memory_reserved=lambda: 77 * GIB, mem_get_info=lambda: (GIB, round(79.2 * GIB))
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))


def test_out_of_memory_is_one_sentence() -> None:
    with pytest.raises(SystemExit) as ended, enough_memory("BATCH_SIZE=12", lambda: "BATCH_SIZE=6"):
        raise RuntimeError(CUDA)
    said = str(ended.value)
    assert "step with BATCH_SIZE=12: torch took 77.0 of 79.2 GiB (CUDA out of memory. Tried" in said
    assert said.endswith("): give BATCH_SIZE=6.")
    assert "\n" not in said
    with pytest.raises(RuntimeError, match="Loss is not finite"), enough_memory("", str):
        raise RuntimeError("Loss is not finite")


@pytest.mark.parametrize(
    ("batch", "count", "instead"),
    [
        (12, 1, "BATCH_SIZE=6 GRADIENT_ACCUMULATION=2, which make the same step"),
        (9, 2, "BATCH_SIZE=3 GRADIENT_ACCUMULATION=6, which make the same step"),
        (1, 4, "less"),
    ],
)
def test_smaller_micro_steps_make_the_same_step(batch: int, count: int, instead: str) -> None:
    given = AccumulatingSettings(batch_size=batch, gradient_accumulation=count)
    assert smaller_micro_steps(given, "less") == instead
