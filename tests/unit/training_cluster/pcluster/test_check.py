"""The check of the rendered config, which the stack of the cluster makes at every synth."""

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from stacks.composition import add_stacks
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings


def test_a_config_that_is_refused_ends_synth(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_scheduling(**_: object) -> dict[str, Any]:
        return {"Region": "us-east-1"}

    monkeypatch.setattr("training_cluster.pcluster.check.render_cluster_config", no_scheduling)
    with pytest.raises(
        ConfigurationError, match=r"would refuse .* cluster_configs/p5\.yaml(?s:.*)Scheduling"
    ):
        add_stacks(cdk.App(), read_settings({"family": "p5"}))


def test_a_flags_file_system_is_mounted_once(tmp_path: Path) -> None:
    file, lustre = tmp_path / "overrides.yaml", "fs-0123456789abcdef0"
    more = f"{{Name: m, StorageType: FsxLustre, MountDir: /m, FsxLustreSettings: {{FileSystemId: {lustre}}}}}"
    file.write_text(f"SharedStorage: [{more}]")
    with pytest.raises(ConfigurationError, match=f"{lustre} is listed 2 times"):
        add_stacks(cdk.App(), read_settings({"fsx_id": lustre, "overrides": str(file)}))
