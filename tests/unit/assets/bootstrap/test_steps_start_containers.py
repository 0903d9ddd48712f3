"""Step 72, containers in jobs, with a node's programs stubbed; and systemd's opinion of what it writes."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.start_step_node import Node
from training_cluster.paths import ROOT

TMPFILES = Path("/usr/bin/systemd-tmpfiles")
ENROOT_EXAMPLE = """\
#ENROOT_LIBRARY_PATH        /usr/lib/enroot
ENROOT_RUNTIME_PATH         /run/enroot/runtime/user-$(id -u)
ENROOT_DATA_PATH            /run/enroot/data/user-$(id -u)
ENROOT_CONFIG_PATH          /var/enroot/config/user-$(id -u)
ENROOT_CACHE_PATH           /var/enroot/cache/group-$(id -g)
#ENROOT_TEMP_PATH           ${TMPDIR:-/tmp}

ENROOT_MOUNT_HOME          no
"""
PYXIS_EXAMPLE = """\
# THIS IS AN EXAMPLE OF pyxis.conf file
required /usr/local/lib/slurm/spank_pyxis.so runtime_path=/run/pyxis
"""
PYXIS_LINE = "required /usr/local/lib/slurm/spank_pyxis.so runtime_path=/run/pyxis\n"


@pytest.fixture
def containers(tmp_path: Path) -> Iterator[Node]:
    """A node whose image has Enroot and Pyxis, with local disks."""
    node = Node(tmp_path)
    examples = "opt/parallelcluster/examples"
    node.write(f"{examples}/enroot/enroot.conf", ENROOT_EXAMPLE)
    node.write(f"{examples}/pyxis/pyxis.conf", PYXIS_EXAMPLE)
    node.write("usr/bin/enroot", "")
    node.write("usr/local/lib/slurm/spank_pyxis.so", "")
    node.write("usr/share/enroot/hooks.d/50-slurm-pytorch.sh", "")
    (node.etc / "partitions" / "gpu.env").write_text("export SCRATCH='/scratch'\n")
    (node.etc / "partitions" / "cpu.env").write_text("export SCRATCH=''\n")
    umask = os.umask(0o077)  # as strict as a node's may be
    yield node
    os.umask(umask)


def own(folder: str) -> str:
    """Return what Enroot evaluates to the user's folder in another one."""
    return (
        f"$(f={folder}/user-$(id -u); mkdir -m 700 $f 2>/dev/null || :; [ ! -L $f ] && [ -O $f ] && echo $f"
        " || echo /dev/null$f-belongs-to-another-user)"
    )


def test_enroot_takes_no_folder_that_another_user_made_for_the_user(containers: Node, tmp_path: Path) -> None:
    """As enroot does: its config is a script without mistakes, and each line's value is evaluated."""
    containers.stub("mountpoint", "exit 32")
    containers.does("72", partition="gpu")
    config = containers.slash / "etc/enroot/enroot.conf"
    subprocess.run(["bash", "-n", config], check=True)
    read = r"""set -euo pipefail
    while IFS=$' \t=' read -r key value; do
      if [[ $key == ENROOT_DATA_PATH ]]; then eval "echo ${value//"/var/"/"$2/var/"}"; fi
    done <"$1"
    """

    def path() -> str:
        return subprocess.run(
            ["bash", "-c", read, "_", config, tmp_path], capture_output=True, text=True, check=True
        ).stdout.strip()

    mine = tmp_path / f"var/enroot/data/user-{os.geteuid()}"
    mine.parent.mkdir(parents=True)
    refused = f"/dev/null{mine}-belongs-to-another-user"
    assert path() == str(mine)
    assert mine.stat().st_mode & 0o777 == 0o700
    assert path() == str(mine), "the second time too"
    mine.rename(tmp_path / "elsewhere")
    mine.symlink_to(tmp_path / "elsewhere")
    assert path() == refused
    mine.unlink()
    if os.geteuid() == 0:
        mine.mkdir()
        os.chown(mine, 5002, 5002)
        assert path() == refused


@pytest.mark.skipif(not TMPFILES.exists(), reason="this machine has no systemd")
@pytest.mark.parametrize("step", ["66", "72"])
def test_systemd_understands_what_it_is_told(containers: Node, step: str) -> None:
    containers.does(step)
    (file,) = (containers.slash / "etc/tmpfiles.d").iterdir()
    checked = subprocess.run(
        [TMPFILES, "--create", "--prefix=/nowhere", file], capture_output=True, text=True
    )
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize(
    ("partition", "mounted", "large"),
    [("gpu", "", "/scratch/enroot"), ("gpu", "exit 32", "/var/enroot"), ("cpu", "", "/var/enroot")],
    ids=["local disks", "not mounted", "none"],
)
def test_containers_are_kept_on_the_local_disks_where_there_are_some(
    containers: Node, partition: str, mounted: str, large: str
) -> None:
    containers.stub("mountpoint", mounted)
    containers.does("72", partition=partition)
    asked = [f"mountpoint --quiet {containers.slash}/scratch"] if partition == "gpu" else []
    tmpfiles = containers.slash / "etc/tmpfiles.d/training-cluster-containers.conf"
    assert containers.calls() == [*asked, f"systemd-tmpfiles --create {tmpfiles}"]
    assert containers.text("etc/enroot/enroot.conf").splitlines()[1:] == [
        f"ENROOT_RUNTIME_PATH {own('/run/enroot/runtime')}",
        f"ENROOT_DATA_PATH {own(f'{large}/data')}",
        f"ENROOT_CACHE_PATH {own(f'{large}/cache')}",
        f"ENROOT_TEMP_PATH {large}/tmp",
        "ENROOT_CONFIG_PATH ${HOME:-$(echo ~)}/.config/enroot",
        "ENROOT_MOUNT_HOME          no",
    ]
    for folder in (large, f"{large}/data", f"{large}/cache", f"{large}/tmp"):
        assert (containers.slash / folder.lstrip("/")).stat().st_mode & 0o7777 == 0o1777, folder
    assert (containers.slash / "etc/enroot/enroot.conf").stat().st_mode & 0o777 == 0o644
    hook = containers.slash / "etc/enroot/hooks.d/50-slurm-pytorch.sh"
    assert hook.readlink() == Path("/usr/share/enroot/hooks.d/50-slurm-pytorch.sh")
    efa = containers.slash / "etc/enroot/hooks.d/97-efa.sh"
    assert efa.stat().st_mode & 0o777 == 0o755
    assert efa.read_text() == (ROOT / "assets/bootstrap/enroot/97-efa.sh").read_text()
    assert not (containers.slash / "opt/slurm/etc").exists()


def test_enroot_reads_the_passwords_in_the_users_home(containers: Node, tmp_path: Path) -> None:
    """As enroot does: each line's value is evaluated; Pyxis has no HOME after a job."""
    containers.does("72")
    (line,) = (
        line.split(maxsplit=1)[1]
        for line in containers.text("etc/enroot/enroot.conf").splitlines()
        if line.startswith("ENROOT_CONFIG_PATH")
    )
    for env, home in (({"HOME": "/home/alice"}, "/home/alice"), ({}, Path("~root").expanduser())):
        said = subprocess.run(
            ["bash", "-uc", f"eval echo '{line}'"], env=env, capture_output=True, text=True, check=True
        )
        assert os.geteuid() != 0 or said.stdout == f"{home}/.config/enroot\n"


def test_the_head_node_switches_on_slurms_plug_in_once(containers: Node) -> None:
    containers.does("72", node_type="HeadNode")
    etc = containers.slash / "opt/slurm/etc"
    assert (etc / "plugstack.conf.d").stat().st_mode & 0o777 == 0o755
    assert (etc / "plugstack.conf").read_text() == "include /opt/slurm/etc/plugstack.conf.d/*\n"
    assert (etc / "plugstack.conf.d/pyxis.conf").read_text() == f"include {containers.etc}/pyxis.conf\n"
    assert (containers.etc / "pyxis.conf").read_text() == PYXIS_LINE
    assert containers.calls()[-1] == "scontrol reconfigure"
    before = containers.files()
    containers.does("72", node_type="HeadNode")
    assert "scontrol reconfigure" not in containers.calls()
    assert containers.files() == before


def test_a_compute_node_has_its_own_line_for_slurm(containers: Node) -> None:
    containers.does("72")
    assert (containers.etc / "pyxis.conf").read_text() == PYXIS_LINE
    assert not (containers.slash / "opt/slurm/etc").exists()


@pytest.mark.skipif(not shutil.which("srun"), reason="this machine has no Slurm")
def test_slurm_starts_on_a_node_without_pyxis_although_the_head_node_has_it(
    containers: Node, tmp_path: Path
) -> None:
    """The real Slurm reads what the head node shares, on the node."""
    plugin = containers.slash / "usr/local/lib/slurm/spank_pyxis.so"
    containers.does("72", node_type="HeadNode")
    plugin.unlink()
    done = containers.run("72")
    assert done.returncode == 1
    assert "this image has no Pyxis" in done.stderr
    shared = containers.slash / "opt/slurm/etc/plugstack.conf.d/pyxis.conf"
    (tmp_path / "slurm.conf").write_text(f"ClusterName=a\nSlurmctldHost=a\nPlugStackConfig={shared}\n")
    started = subprocess.run(
        ["srun", "--help"],
        env={"PATH": os.environ["PATH"], "SLURM_CONF": str(tmp_path / "slurm.conf")},
        capture_output=True,
        text=True,
    )
    assert (started.returncode, started.stderr) == (0, "")


def test_an_image_without_parallelclusters_examples_has_containers_too(containers: Node) -> None:
    shutil.rmtree(containers.slash / "opt/parallelcluster/examples")
    containers.does("72", node_type="HeadNode")
    assert (containers.etc / "pyxis.conf").read_text() == PYXIS_LINE
    assert f"ENROOT_DATA_PATH {own('/var/enroot/data')}\n" in containers.text("etc/enroot/enroot.conf")


def test_somebodys_own_plug_ins_stay(containers: Node) -> None:
    file = containers.write("opt/slurm/etc/plugstack.conf", "optional mine.so")
    containers.does("72", node_type="HeadNode")
    assert file.read_text() == "optional mine.so\ninclude /opt/slurm/etc/plugstack.conf.d/*\n"


def test_an_image_without_enroot_or_pyxis_is_reported(containers: Node) -> None:
    (containers.slash / "usr/local/lib/slurm/spank_pyxis.so").unlink()
    ignored = "spank_pyxis.so): Slurm ignores --container-image here, and the program runs on the host\n"
    done = containers.run("72")
    assert done.returncode == 1
    assert done.stderr.endswith(ignored)
    assert not (containers.etc / "pyxis.conf").exists()
    (containers.slash / "usr/bin/enroot").unlink()
    done = containers.run("72")
    assert done.returncode == 1
    assert "this image has no Enroot: containers do not start" in done.stderr
    assert done.stderr.endswith(ignored)


def test_without_enroot_pyxis_is_on_so_that_a_container_fails_instead_of_running_on_the_host(
    containers: Node,
) -> None:
    (containers.slash / "usr/bin/enroot").unlink()
    done = containers.run("72")
    assert done.returncode == 1
    assert done.stderr.endswith("this image has no Enroot: containers do not start\n")
    assert (containers.etc / "pyxis.conf").read_text() == PYXIS_LINE
    # Pyxis writes there, and does not create it after slurmd has started.
    assert "d /run/pyxis " in containers.text("etc/tmpfiles.d/training-cluster-containers.conf")
    assert not (containers.slash / "etc/enroot").exists()


@pytest.mark.parametrize("recipe", ["gpu", "volta"])
def test_a_node_whose_containers_get_no_gpus_is_reported(containers: Node, recipe: str) -> None:
    done = containers.run("72", recipe=recipe)
    assert done.returncode == 1
    assert "this image has no nvidia-container-cli" in done.stderr
    assert (containers.etc / "pyxis.conf").exists(), "containers without GPUs start all the same"
    containers.stub("nvidia-container-cli")
    assert containers.run("72", recipe=recipe).returncode == 0


def test_users_may_create_namespaces_where_apparmor_would_keep_them_from_it(containers: Node) -> None:
    containers.stub("sysctl")
    containers.does("72")
    assert not any(call.startswith("sysctl") for call in containers.calls())
    containers.write("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1")
    containers.does("72")
    file = containers.slash / "etc/sysctl.d/99-training-cluster-containers.conf"
    assert file.read_text() == "kernel.apparmor_restrict_unprivileged_userns = 0\n"
    assert f"sysctl --quiet --load={file}" in containers.calls()
