"""What `trainctl status` reads of runs, with what users may put in the place of their files."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

import pytest

from ops.account import head_node

SCRIPT = Path(head_node.__file__).with_name("head_node_scripts") / "list-jobs.sh"


def listed(folder: Path, wait_s: int = 20, **programs: str) -> subprocess.CompletedProcess[str]:
    """Run the script as trainctl does: its text is in the command line of its shell."""
    for name, script in programs.items():
        program = folder / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/bash\n{script}\n")
        program.chmod(0o755)
    return subprocess.run(
        ["bash", "-c", SCRIPT.read_text(), SCRIPT.name, str(wait_s), folder],
        env={"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=20,
    )


def test_pipes_instead_of_files_hide_no_complaint(tmp_path: Path) -> None:
    for name, job in (("a", None), ("b", None), ("good", "17")):
        run = tmp_path / "runs" / "gpt2" / name
        run.mkdir(parents=True)
        if name == "a":
            os.mkfifo(run / "network.json")
        else:
            (run / "network.json").write_text('{"complaint": "NCCL sends over TCP"}')
        if job:
            (run / "owner").write_text(f"{job}\n")
        else:
            os.mkfifo(run / "owner")
    done = listed(tmp_path, squeue="case $* in *%A*) echo 17 ;; *) echo RUNNING ;; esac")
    assert (done.returncode, done.stdout) == (0, "RUNNING\n17 gpt2/good: NCCL sends over TCP\n"), done.stderr


@pytest.mark.slow
def test_a_hanging_file_system_hides_no_job(tmp_path: Path) -> None:
    # No signal ends it, as none ends a process that waits for Lustre: it goes on in another session.
    hangs = f"""trap '' TERM
echo $$ >>{tmp_path}/calls
if [[ -z ${{SAFE-}} ]]; then SAFE=1 setsid "$0" "$@" & wait; fi
while sleep 0.1; do :; done"""
    try:
        for _ in range(2):
            done = listed(tmp_path, 3, squeue="printf 'RUNNING\\nPENDING\\n'", grep=hangs)
            assert done.returncode == 0, done.stderr
            assert done.stdout == f"RUNNING\nPENDING\n{tmp_path}/runs: no answer within 3 s\n"
        pids = (tmp_path / "calls").read_text().split()
        assert len(pids) == 2, "one grep, with itself in another session"
    finally:
        (tmp_path / "bin" / "grep").unlink()  # the second script may still wait for the first one's grep
        for pid in (tmp_path / "calls").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
