"""The generator of titan's table of models; the slow test of titan compares the table with torchtitan."""

from __future__ import annotations

from types import SimpleNamespace

from tools.titan_models import experts_of


def test_the_experts_are_those_of_the_first_layer_that_has_some() -> None:
    dense = SimpleNamespace(moe=None)
    assert set(experts_of([dense, SimpleNamespace()]).values()) == {0}
    experts = SimpleNamespace(inner_experts=SimpleNamespace(hidden_dim=768))
    moe = SimpleNamespace(num_experts=128, router=SimpleNamespace(top_k=8), routed_experts=experts)
    assert experts_of([dense, SimpleNamespace(moe=moe)]) == {
        "experts": 128,
        "experts_of_token": 8,
        "expert_width": 768,
    }
