"""tools/pinned.py: all versions that the repository pins."""

from __future__ import annotations

from tools.pinned import find_all


def test_everything_pinned_is_found() -> None:
    found = {(each.where, each.name) for each in find_all()}
    assert {
        ("cluster_configs/versions.yaml", "nvidia_driver"),
        ("requirements.txt", "aws-cdk-lib"),
        ("requirements-dev.txt", "moto"),
        ("requirements-pcluster.txt", "aws-parallelcluster"),
        ("assets/training/gpt2/requirements.txt", "torch"),
        ("package.json", "aws-cdk"),
    } <= found
