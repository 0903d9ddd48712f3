"""The generator of titan's table of models; the slow test of titan compares the table with torchtitan."""

from __future__ import annotations

from types import SimpleNamespace

from tools.titan_models import experts_of


def test_a_dense_layer_has_no_experts() -> None:
    assert experts_of(SimpleNamespace(moe=None)) == 0
    assert experts_of(SimpleNamespace(moe=SimpleNamespace(num_experts=128))) == 128
