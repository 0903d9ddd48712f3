"""The search for the causes' patterns."""

import re

import pytest

from ops.diagnose.diagnose import diagnose_evidence
from ops.diagnose.texts import Gathered


def test_a_second_diagnosis_compiles_no_expression_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """`re` keeps 512 expressions, and the causes have more."""
    line = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"

    def found() -> list[str]:
        texts = Gathered()
        texts.add("job-31.log", line)
        return [cause.id for cause in diagnose_evidence(texts, cluster="training").causes]

    first = found()
    assert first
    compiled: list[object] = []
    monkeypatch.setattr(re, "compile", compiled.append)
    assert found() == first
    assert compiled == []
