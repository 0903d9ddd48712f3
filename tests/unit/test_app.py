"""The CDK app: it runs by itself, and ends a wrong flag with one message."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from training_cluster.paths import ROOT

_FACTS = """\
capacity: [ondemand]
queue: gpu
mixed_precision: bf16
image_recipe: gpu
sizes:
  p7.1xlarge: &facts {accelerators: 8, vcpus: 192, memory_gib: 2048, threads_per_core: 2, network_cards: 32,
    efa_interfaces: 32, network_gbps: 3200, nvme_gb: 30400, usd_per_hour: 1}
"""
"""Facts of a new type, which instance_types.tsv does not have yet."""


def _app(root: Path, context: str, out: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "app.py"],
        cwd=root,
        env={
            "PATH": "/usr/bin:/bin",
            "CDK_OUTDIR": str(out),
            "TMPDIR": str(out),
            "CDK_CONTEXT_JSON": context,
            # Before what is installed: a copy runs its own code.
            "PYTHONPATH": f"{root}:{root / 'constructs'}",
        },
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_wrong_flag_ends_the_app_with_one_message(tmp_path: Path) -> None:
    done = _app(ROOT, '{"family": "nonsense"}', tmp_path)
    assert done.returncode == 1
    assert "allowed: g5, g6, g6e, hpc7a, m6i" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.glob("*.template.json")) == []


@pytest.mark.slow
def test_new_family_is_one_file_and_no_code(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    for name in ("constructs", "stacks", "assets", "cluster_configs"):
        shutil.copytree(ROOT / name, copy / name)
    for name in ("app.py", "requirements-pcluster.txt"):
        shutil.copy(ROOT / name, copy)
    p5 = (copy / "cluster_configs" / "p5.yaml").read_text()
    text = p5.replace("p5.48xlarge", "p7.96xlarge").replace("H100", "X100").replace("sizes:\n", _FACTS)
    text = text.replace(
        "accelerator: {", "accelerator: {kind: gpu, memory_gib: 80, cores: 1, compute_capability: '9.0', "
    )
    text = re.sub(r"  p5\.4xlarge: .*\n", "", text).replace("96xlarge: {", "96xlarge: {<<: *facts, ")
    (copy / "cluster_configs" / "p7.yaml").write_text(text)
    out = tmp_path / "out"
    out.mkdir()
    done = _app(copy, '{"family": "p7"}', out)
    assert done.returncode == 0, done.stderr
    assert "p7.96xlarge" in (out / "TrainingClusterStack.template.json").read_text()
