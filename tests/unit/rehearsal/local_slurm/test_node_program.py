"""The program that starts a node's slurmd; tests/slow/rehearsal/local_slurm starts nodes with it."""

from pathlib import Path

from rehearsal.local_slurm.node_program import node_program

SHARED = {Path("/tmp/project/below"), Path("/work/project"), Path("/dev/shm/venv")}


def test_folders_that_all_nodes_share_stay_visible_below_those_that_each_has_for_itself() -> None:
    lines = node_program(root=Path("/tmp/a b/slurm"), shared=SHARED, separate=True).splitlines()
    assert "hide /tmp 'a b' project" in lines
    assert "hide /var/tmp" in lines
    assert "hide /dev/shm venv" in lines


def test_each_node_has_private_folders_for_itself_also_below_shared_ones() -> None:
    private = [Path("/tmp/project/below/tmp")]
    text = node_program(root=Path("/tmp/slurm"), shared=SHARED, separate=True, private=private)
    assert text.index("hide /tmp project slurm\n") < text.index("hide /tmp/project/below/tmp\n")
    assert "below" not in node_program(
        root=Path("/tmp/slurm"), shared=SHARED, separate=False, private=private
    )


def test_without_namespaces_only_slurmd_is_started() -> None:
    text = node_program(root=Path("/tmp/slurm"), shared=SHARED, separate=False)
    assert text.splitlines()[-1] == 'exec slurmd -N "$1" -b'
    assert not {"unshare", "mount", "hide"} & set(text.split())
