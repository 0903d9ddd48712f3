"""Checks of a node's Lustre client: what the node tells is compared, and its GB/s with a record."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ops.verify import lustre, lustre_speed
from ops.verify.check import Result
from ops.verify.scene import open_scene
from tests.unit.ops.jobs_head_node import PlayedCluster

AS_SET = "ksocklnd.credits 2560 2560\nefa_interfaces 8 8\nldlm.namespaces.*.lru_size 19200 19200\n"
FACTS = {"FAMILY": "p5", "SHARED_MBPS": "4687", "LUSTRE_EFA_INTERFACES": "8"}
GB = {"written_gb_s": 9.0, "read_gb_s": 12.0, "bytes": 64 << 30, "efa_messages": 90_000}


def result(cluster: PlayedCluster, answer: str, number: int = 1, **facts: str) -> Result:
    cluster.has_nodes("p5.48xlarge", recipe="gpu", **FACTS | facts)
    cluster.says("srun", answer)
    scene = open_scene("training", cluster.client, lambda _: None, nodes=1)
    return lustre.CHECKS[number].run(scene)


def test_a_setting_that_the_node_lacks_differs(cluster: PlayedCluster) -> None:
    assert result(cluster, AS_SET, 0).verdict == "held"
    found = result(cluster, AS_SET.replace("8 8", "8 0"), 0)
    assert (found.verdict, found.seen) == ("differs", "efa_interfaces: 0, not 8")
    assert result(cluster, "sudo: a password is required", 0).verdict == "could not look"


def test_a_speed_is_compared_with_its_record(
    cluster: PlayedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = result(cluster, json.dumps(GB))
    assert (found.verdict, "never run on Lustre: record it in assets/" in found.seen) == ("held", True)
    row = {"what": "one node", "family": "p5", "unit": "GB/s", "source": "our run", "reproduced": True}
    row |= {"settings": {"SHARED_MBPS": 4687, "LUSTRE_EFA_INTERFACES": 8}}
    speeds = {"lustre_written_gb_per_s": 10.0, "lustre_read_gb_per_s": 12.0}
    record = tmp_path / "figures.json"
    record.write_text(json.dumps([row | {"metric": name, "value": value} for name, value in speeds.items()]))
    monkeypatch.setattr(lustre, "RECORD", record)
    found = result(cluster, json.dumps(GB))
    assert found.verdict == "held"
    assert "90% of the recorded lustre_written_gb_per_s (our run)" in found.seen
    assert result(cluster, json.dumps(GB | {"read_gb_s": 9.0})).verdict == "differs"


def test_lustre_over_tcp_instead_of_efa_differs(cluster: PlayedCluster) -> None:
    slow = json.dumps(GB | {"efa_messages": 40})
    assert result(cluster, slow).verdict == "differs"
    assert result(cluster, slow, LUSTRE_EFA_INTERFACES="0").verdict == "held"
    assert result(cluster, json.dumps(GB | {"efa_messages": -1})).verdict == "held", "it was not seen"


def test_the_measurement_removes_its_files_alone(tmp_path: Path) -> None:
    (folder := tmp_path / "fsx").mkdir()
    (folder / "theirs").write_text("kept")
    (sudo := tmp_path / "bin" / "sudo").parent.mkdir()
    sudo.write_text(f"#!/bin/sh\necho 'send_count: 1' >>{tmp_path}/n; cat {tmp_path}/n\n")
    sudo.chmod(0o755)
    text = Path(lustre_speed.__file__).read_text()
    done = subprocess.run(
        [sys.executable, "-I", "-c", text, str(folder), "2", "8", "10"],
        env={"PATH": f"{sudo.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert (found["bytes"], found["efa_messages"]) == (2 * 2 * (8 << 20), 1)
    assert found["written_gb_s"] > 0 < found["read_gb_s"]
    assert [each.name for each in folder.iterdir()] == ["theirs"]
