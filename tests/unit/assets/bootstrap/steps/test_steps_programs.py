"""Files that steps 66, 72 and 86 to 88 write, judged by the programs that read them."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.step_machine import Machine
from training_cluster.paths import ROOT

TMPFILES = Path("/usr/bin/systemd-tmpfiles")
PROMETHEUS = ROOT / ".cache" / "prometheus" / "usr" / "bin"


def output(*command: object, **environment: str) -> str:
    done = subprocess.run(
        list(map(str, command)), env=os.environ | environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def containers(node: Machine) -> Machine:
    """Return a node whose image has Enroot and Pyxis."""
    node.write("usr/bin/enroot", "")
    node.write("usr/local/lib/slurm/spank_pyxis.so", "")
    for name in ("systemd-tmpfiles", "scontrol"):
        node.program(name)
    return node


def test_enroot_takes_no_folder_of_another_user(containers: Machine, tmp_path: Path) -> None:
    """As enroot does: its config is a script without mistakes, and each line's value is evaluated."""
    containers.does("72")
    config = containers.root / "etc/enroot/enroot.conf"
    output("bash", "-n", config)
    read = r"""set -euo pipefail
    while IFS=$' \t=' read -r key value; do
      if [[ $key == "$2" ]]; then eval "echo ${value//"/var/"/"$3/var/"}"; fi
    done <"$1"
    """

    def value(key: str, **environment: str) -> str:
        return output("bash", "-c", read, "_", config, key, tmp_path, **environment)

    mine = tmp_path / f"var/enroot/data/user-{os.geteuid()}"
    mine.parent.mkdir(parents=True)
    refused = f"/dev/null{mine}-belongs-to-another-user"
    for _ in range(2):
        assert value("ENROOT_DATA_PATH") == str(mine)
        assert mine.stat().st_mode & 0o777 == 0o700
    mine.rename(tmp_path / "elsewhere")
    mine.symlink_to(tmp_path / "elsewhere")
    assert value("ENROOT_DATA_PATH") == refused
    mine.unlink()
    if os.geteuid() == 0:
        mine.mkdir()
        os.chown(mine, 5002, 5002)
        assert value("ENROOT_DATA_PATH") == refused
    # Pyxis has no HOME after a job.
    assert value("ENROOT_CONFIG_PATH", HOME="/home/alice") == "/home/alice/.config/enroot"
    home = Path(f"~{output('id', '-un')}").expanduser()
    (line,) = re.findall("^ENROOT_CONFIG_PATH (.*)$", config.read_text(), re.MULTILINE)
    assert output("bash", "-c", f"unset HOME; eval echo '{line}'") == f"{home}/.config/enroot"


@pytest.mark.skipif(not TMPFILES.exists(), reason="this machine has no systemd")
@pytest.mark.parametrize("step", ["66", "72"])
def test_systemd_understands_its_files(containers: Machine, step: str) -> None:
    containers.does(step)
    (file,) = (containers.root / "etc/tmpfiles.d").iterdir()
    command = [str(TMPFILES), "--create", "--prefix=/nowhere", str(file)]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.skipif(not shutil.which("srun"), reason="this machine has no Slurm")
def test_slurm_starts_on_a_node_without_pyxis(containers: Machine, tmp_path: Path) -> None:
    """The real Slurm reads what the head node shares, on the node."""
    containers.does("72", NODE_TYPE="HeadNode")
    (containers.root / "usr/local/lib/slurm/spank_pyxis.so").unlink()
    assert containers.run("72").returncode == 1
    shared = containers.root / "opt/slurm/etc/plugstack.conf.d/pyxis.conf"
    config = tmp_path / "slurm.conf"
    config.write_text(f"ClusterName=a\nSlurmctldHost=a\nPlugStackConfig={shared}\n")
    assert output("srun", "--help", SLURM_CONF=str(config))


def test_every_flag_of_a_daemon_exists(node: Machine) -> None:
    node.write("etc/parallelcluster/cfnconfig", "stack_name=training\ncfn_region=us-east-1\n")
    node.program("aws", "echo https://hooks.example.com/x")
    for name in ("systemctl", "systemd-tmpfiles", "install", "chown"):
        node.program(name)
    for name in ("promtool", "amtool", "prometheus", "prometheus-node-exporter", "prometheus-alertmanager"):
        (node.bin / name).symlink_to(PROMETHEUS / name)
    for step in ("86", "87", "88"):
        node.does(step, NODE_TYPE="HeadNode", METRICS_WEBHOOK_SECRET="arn:x")
    for program in ("prometheus-node-exporter", "prometheus", "prometheus-alertmanager"):
        unit = f"training-cluster-{program.removeprefix('prometheus-')}.service"
        flags = set(re.findall(r"--([a-z.-]+)", node.text(f"etc/systemd/system/{unit}")))
        known = subprocess.run([PROMETHEUS / program, "--help"], capture_output=True, text=True)
        assert flags
        assert flags <= set(re.findall(r"--(?:\[no-\])?([a-z.-]+)", known.stdout + known.stderr)), program
