"""epilog.sh on a node as the rehearsal makes it: what a job left is removed before the node is judged."""

import os
import subprocess
from itertools import takewhile
from pathlib import Path

import pytest

from rehearsal.local_slurm.node_program import node_program
from tests.unit.assets.bootstrap.health.health_node import HealthNode

_LEFT = """\
find /dev/shm /tmp /var/tmp "$TRAINING_ROOT/scratch" -xdev -uid "$1" -printf . | wc -c
ipcs -msq | grep -cw "$1" || true
"""
"""Prints the number of a user's files (two are in a folder mounted in /tmp), and of the user's IPC."""
_NODE = """\
#!/bin/bash
set -eu
ROOT=$TRAINING_ROOT disk=$TRAINING_ROOT/scratch A=54321 B=54322
as() { setpriv --reuid="$1" --regid="$1" --clear-groups "${@:2}"; }
run() { env -i SLURMD_NODENAME=n-1 SLURM_JOB_ID="$2" SLURM_JOB_UID="$3" \\
  "$ROOT/opt/slurm/etc/scripts/$1.d/10-training-cluster"; }
leave() {
  for folder in /dev/shm /tmp /var/tmp "$disk"; do
    as "$1" sh -c 'mkdir -p "$1/$2/deep"; echo >"$1/$2/deep/a
b"; ln -s /tmp/shared "$1/$2/link"; chmod 555 "$1/$2/deep"; >"$1/$2.file"' leave "$folder" "$1"
  done
  as "$1" ipcmk --shmem 8 --semaphore 1 --queue >/dev/null
}
mkdir "$disk" /tmp/shared
mount -t tmpfs -o mode=1777 scratch "$disk"
mkdir "$ROOT/shared" && touch "$ROOT/shared/checkpoint" && chown -R "$A" "$ROOT/shared"
mount --bind "$ROOT/shared" /tmp/shared
"""


@pytest.fixture
def node(tmp_path: Path) -> HealthNode:
    for folder in takewhile(lambda folder: not folder.stat().st_mode & 0o001, (tmp_path, *tmp_path.parents)):
        folder.chmod(0o711)  # for other users
    node = HealthNode(tmp_path / "node")
    node.install_prolog()
    node.set_fact("SCRATCH", "/scratch")
    node.stub("left", _LEFT)
    (node.bundle / "bootstrap").unlink()
    judge = node.bundle / "bootstrap" / "health" / "judge-node.sh"
    judge.parent.mkdir(parents=True)
    judge.write_text('left 54321 >>"$TRAINING_ROOT/judged"')
    return node


def run(node: HealthNode, script: str) -> str:
    """Run a script in place of a node's slurmd; return its output."""
    start, slurmd = node.folder / "start", node.programs / "slurmd"
    slurmd.write_text(_NODE + script)
    start.write_text(node_program(root=node.folder / "slurm", shared={node.folder}, separate=True))
    for program in start, slurmd:
        program.chmod(0o755)
    environment = {"PATH": f"{node.programs}:/usr/sbin:/usr/bin:/sbin:/bin", "TRAINING_ROOT": str(node.root)}
    done = subprocess.run([start, "n-1"], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.root
def test_the_last_job_leaves_only_caches(node: HealthNode) -> None:
    """But not the oldest on a full disk; and a folder mounted in /tmp, others' files, those of a next job."""
    node.stub("df", "if [[ -e venvs-54321/oldest ]]; then echo 81%; else echo 80%; fi")
    node.stub("enroot", "if [[ $SLURM_JOB_ID == 18 && $1 == list ]]; then echo >/tmp/next; fi")
    script = """
run prolog 17 "$A"; run prolog 18 "$A"; run prolog 19 "$B"
leave "$A"; leave "$B"
install -d -m 1777 "$disk/enroot/"{,cache,tmp}
as "$B" mkdir -p "$disk/venvs-$B/in-use"
as "$A" mkdir -p "$disk/venvs-$A/oldest/bin" "$disk/enroot/"{cache,tmp}/"user-$A"
sleep 0.02; as "$A" mkdir "$disk/venvs-$A/kept"; as "$A" touch "$disk/venvs-$A/image.sqsh.17.sbcast"
run epilog 17 "$A"; run epilog 18 "$A"
left "$B" | cat "$ROOT/judged" - | paste -s -d " "
find "$disk" /tmp -xdev -uid "$A" -printf '%P '
"""
    counts, rest = run(node, script).splitlines()
    assert counts == "29 3 6 0 22 3"  # after the first job, after the last, of the other user
    kept = "enroot/cache/user-54321 venvs-54321 venvs-54321/kept next shared shared/checkpoint"
    assert sorted(rest.split()) == sorted(kept.split())


@pytest.mark.root
def test_files_of_who_is_logged_in_stay(node: HealthNode) -> None:
    """So do a system user's, and those of a job that started before this epilog was installed."""
    script = """
setpriv --reuid="$A" --clear-groups sleep 60 >/dev/null 2>&1 &
run prolog 17 "$A"; run prolog 17 999
for user in "$A" "$B" 999; do leave "$user"; run epilog 17 "$user"; left "$user" | paste -s -d " "; done
kill $!
"""
    assert run(node, script).splitlines() == ["22 3", "20 3", "20 3"]


def test_a_disk_that_hangs_delays_no_verdict(node: HealthNode) -> None:
    release = node.folder / "release"
    os.mkfifo(release)
    node.stub("enroot", f'read -r _ <"{release}"')
    epilog = node.prolog_folder.with_name("epilog.d") / "10-training-cluster"
    epilog.write_text(epilog.read_text().replace("LIMIT_S=120", "LIMIT_S=0.1"))
    slurm = {"SLURMD_NODENAME": "n-1", "SLURM_JOB_ID": "17", "SLURM_JOB_UID": str(os.getuid())}
    (node.root / "run/training-cluster/jobs-n-1" / slurm["SLURM_JOB_UID"] / "17").mkdir(parents=True)
    subprocess.run([epilog], env=slurm, timeout=30, check=True)
    assert (node.root / "judged").exists()
    release.write_text("\n")
