"""Step 77 on head nodes of folders: each cluster on a file system gets job ids of its own."""

import pwd
import shutil
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.start_step_node import Node

SLURM_CONF = "opt/slurm/etc/slurm.conf"
# slurmctld takes the setting of slurm.conf when it is told to.
SCONTROL = """
case "$*" in
  'show config') echo "FirstJobId             = $(cat {conf}.taken 2>/dev/null || echo 1) "; echo "x = 1" ;;
  reconfigure) sed -n 's/^FirstJobId=//p' {conf} >{conf}.taken ;;
esac
"""


class Head:
    """The head node of one of the clusters that share a file system."""

    def __init__(self, root: Path, shared: Path) -> None:
        root.mkdir()
        self.node, self.shared = Node(root), shared
        self.conf = self.node.write(SLURM_CONF, "ClusterName=x\ninclude slurm_parallelcluster.conf\n")
        self.node.stub("scontrol", SCONTROL.format(conf=self.conf))
        self.node.stub("sleep")

    def run(self, *, ok: bool = True) -> str:
        done = self.node.run(
            "77",
            node_type="HeadNode",
            TRAINING_SHARED=str(self.shared),
            TRAINING_STATE=str(self.node.slash / "var/lib/training-cluster"),
        )
        assert (done.returncode == 0) == ok, done
        return done.stderr

    @property
    def first_id(self) -> int:
        lines = [line for line in self.conf.read_text().splitlines() if line.startswith("FirstJobId")]
        return int(lines[0].removeprefix("FirstJobId=")) if lines else 1


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    (tmp_path / "fsx").mkdir()
    return tmp_path / "fsx"


def test_each_cluster_on_a_file_system_has_a_range_of_its_own(tmp_path: Path, shared: Path) -> None:
    heads = [Head(tmp_path / name, shared) for name in ("a", "b", "c")]
    for head in heads:
        head.run()
    assert [head.first_id for head in heads] == [1, 100_001, 200_001]
    assert "include slurm_parallelcluster.conf\n" in heads[1].conf.read_text()
    assert heads[0].node.calls() == [], "the first one needs no setting"


def test_a_cluster_keeps_its_range_and_slurm_is_left_alone(tmp_path: Path, shared: Path) -> None:
    Head(tmp_path / "a", shared).run()
    head = Head(tmp_path / "b", shared)
    head.run()
    head.node.calls()
    head.run()
    assert (head.first_id, head.node.calls()) == (100_001, ["scontrol show config"])
    head.conf.write_text("ClusterName=x\n")  # an update of ParallelCluster writes it anew
    Path(f"{head.conf}.taken").unlink()
    head.run()
    assert head.first_id == 100_001
    assert "scontrol reconfigure" in head.node.calls()


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("checkpoints/gpt2/job-17", 100_001),
        ("runs/gpt2/job-312345", 400_001),
        ("runs/job-99.log", 100_001),
        ("runs/gpt2/my-run", 1),
        ("runs/gpt2/job-of-mine", 1),
        ("runs/gpt2/job-99999999", 1),
    ],
)
def test_ids_that_name_something_are_not_given_again(
    tmp_path: Path, shared: Path, name: str, first: int
) -> None:
    """Lustre was made anew: it has the bucket's checkpoints and no registry."""
    (shared / name).mkdir(parents=True)
    head = Head(tmp_path / "a", shared)
    head.run()
    assert head.first_id == first


def test_a_slurmctld_that_does_not_apply_it_fails_the_step(tmp_path: Path, shared: Path) -> None:
    Head(tmp_path / "a", shared).run()
    head = Head(tmp_path / "b", shared)
    head.node.stub("scontrol", "exit 1")
    assert "slurmctld did not apply FirstJobId=100001" in head.run(ok=False)
    head.node.stub("scontrol", SCONTROL.format(conf=head.conf))
    head.run()
    assert head.first_id == 100_001
    assert Path(f"{head.conf}.taken").read_text() == "100001\n"


def test_a_users_folder_in_the_place_of_the_registry_fails_the_step(tmp_path: Path, shared: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (shared / ".job-ids").symlink_to(tmp_path / "elsewhere")
    owner = pwd.getpwuid((shared / ".job-ids").lstat().st_uid).pw_name
    output = Head(tmp_path / "a", shared).run(ok=False)
    assert f"{shared}/.job-ids is a symbolic link of {owner}: move it away" in output
    (shared / ".job-ids").unlink()
    Head(tmp_path / "b", shared).run()
    shutil.rmtree(tmp_path / "elsewhere")
