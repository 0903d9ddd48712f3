"""Prometheus's rules, config and Alertmanager's config: by promtool and amtool, the distribution's own."""

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from training_cluster.paths import ASSETS, ROOT

MONITORING = ASSETS / "bootstrap" / "monitoring"
CASES = Path(__file__).parent / "rules"
PROGRAMS = ROOT / ".cache" / "prometheus" / "usr" / "bin"


def run(program: str, *arguments: str, folder: Path) -> str:
    assert (PROGRAMS / program).exists(), f"{program} is missing; type: make setup"
    done = subprocess.run(
        [PROGRAMS / program, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rules() -> list[dict[str, str]]:
    groups = yaml.safe_load((MONITORING / "rules.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


@pytest.mark.parametrize("case", sorted(path.stem for path in CASES.glob("*.yml")))
def test_rules_fire_and_stay_quiet(case: str, tmp_path: Path) -> None:
    shutil.copy(MONITORING / "rules.yml", tmp_path)
    shutil.copy(CASES / f"{case}.yml", tmp_path)
    assert "SUCCESS" in run("promtool", "test", "rules", f"{case}.yml", folder=tmp_path)


def test_every_alert_has_a_case() -> None:
    cases = "".join(path.read_text() for path in CASES.glob("*.yml"))
    assert [rule["alert"] for rule in rules() if "alert" in rule and rule["alert"] not in cases] == []


def test_rules_name_metrics_that_a_node_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ASSETS / "bootstrap" / "metrics"))
    names = importlib.import_module("names").NAMES
    sys.modules.pop("names")
    exporter = {"up", "node_textfile_mtime_seconds"}
    known = {*names, *exporter, *(rule["record"] for rule in rules() if "record" in rule)}
    for rule in rules():
        used = re.findall(r"\b(?:[a-z]+_[a-z_]+(?::\w+)*|up)\b(?= *[{\[<>=)*/]|$| offset| or)", rule["expr"])
        functions = {"group_left", "quantile_over_time", "clamp_min"}
        assert set(used) - functions <= known, rule


def test_prometheus_takes_the_config_with_and_without_a_workspace(tmp_path: Path) -> None:
    shutil.copy(MONITORING / "rules.yml", tmp_path)
    (tmp_path / "nodes.json").write_text("[]")
    step = (ASSETS / "bootstrap/steps/87-start-prometheus.sh").read_text()
    (function,) = re.findall(r"^remote_write\(\) \{.*?^\}", step, re.MULTILINE | re.DOTALL)
    workspace = "https://aps-workspaces.eu-west-1.amazonaws.com/workspaces/ws-1"
    for url, wanted in {"": None, workspace: f"{workspace}/api/v1/remote_write"}.items():
        text = (MONITORING / "prometheus.yml").read_text()
        said = subprocess.run(
            ["bash", "-c", f"{function}\nremote_write"],
            env={"METRICS_WORKSPACE": url},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        words = {
            **{"CLUSTER": "training", "INTERVAL": "30s", "TIMEOUT": "10s", "HEAD_PORT": "9100"},
            **{"FOLDER": str(tmp_path), "TARGETS": f"{tmp_path}/nodes.json", "REMOTE_WRITE": said},
        }
        for word, value in words.items():
            text = text.replace(f"@{word}@", value)
        assert not re.search("@[A-Z_]+@", text)
        (tmp_path / "prometheus.yml").write_text(text)
        run("promtool", "check", "config", "prometheus.yml", folder=tmp_path)
        writes = yaml.safe_load(text).get("remote_write")
        assert (writes and (writes[0]["url"], writes[0]["sigv4"])) == (
            wanted and (wanted, {"region": "eu-west-1"})
        )


@pytest.mark.parametrize("topic", ["", "TrainingCluster_a_Alarms"])
@pytest.mark.parametrize("secret", ["", "arn:aws:secretsmanager:us-east-1:123456789012:secret:a"])
def test_alertmanager_takes_the_config_of_each_channel(topic: str, secret: str, tmp_path: Path) -> None:
    if not topic and not secret:
        return  # the step starts none then
    step = (ASSETS / "bootstrap/steps/88-start-alertmanager.sh").read_text()
    (function,) = re.findall(r"^receivers\(\) \{.*?^\}", step, re.MULTILINE | re.DOTALL)
    aws = "aws() { printf 'arn:aws:sts::123456789012:assumed-role/x/i-1\\n'; }"
    said = subprocess.run(
        ["bash", "-c", f"{aws}\n{function}\nreceivers eu-west-1"],
        env={"METRICS_TOPIC": topic, "METRICS_WEBHOOK_SECRET": secret, "FOLDER": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    text = (MONITORING / "alertmanager.yml").read_text().replace("@RECEIVERS@", said.rstrip("\n"))
    (tmp_path / "alertmanager.yml").write_text(text)
    run("amtool", "check-config", "alertmanager.yml", folder=tmp_path)
    assert (f"arn:aws:sns:eu-west-1:123456789012:{topic}" in text) is bool(topic)
