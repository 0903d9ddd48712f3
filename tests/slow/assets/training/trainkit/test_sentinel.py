"""The sentinel in ranks of torch: what it disturbs, and which node it names after a flipped bit."""

import json

import pytest

from tests.slow.assets.training.training import in_environment


@pytest.mark.slow
def test_a_flipped_bit_names_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    scenes = json.loads(in_environment("gpt2", "sentinel_scenes.py"))
    assert scenes["on"][0] == scenes["off"][0], "losses, weights and buffers are equal bit by bit"
    same = "for the weights, and the loss and gradients of the same batch"
    for name, words, marks in (
        ("on", "3 ranks agree, compared every 3 steps\n", ""),
        ("flipped", f"step 6: {same}, n1 got other bits than 2 of 3 ranks; checkpoints since step 3", "1"),
        ("tie", "n0 and n1 got different bits, and no majority tells which is wrong; checkpoints", "01"),
        ("once", f"step 3: {same}, n0 got other bits when it computed again; checkpoints since step 1", "0"),
        ("flaky", f"step 1: {same}, n0 got other bits when it computed again; checkpoints of this", "0"),
        ("unsteady", "off: the kernels are not deterministic: two computations differ on n0 n1\n", ""),
        ("alone", "off: one rank has no other to be compared with\n", ""),
    ):
        _, said, marked = scenes[name]
        assert words in said
        assert said.count("\n") <= 2, "a suspect is named once"
        assert marked == [f"suspect-7.n{rank}" for rank in marks]
