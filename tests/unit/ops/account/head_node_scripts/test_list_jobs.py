"""What `trainctl status` reads of runs, with what users may put in the place of their files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ops.account import head_node

SCRIPT = Path(head_node.__file__).with_name("head_node_scripts") / "list-jobs.sh"


def test_pipes_in_the_place_of_files_hide_no_complaint_of_others(tmp_path: Path) -> None:
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
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "squeue").write_text("#!/bin/sh\ncase $* in *%A*) echo 17 ;; *) echo RUNNING ;; esac\n")
    (programs / "squeue").chmod(0o755)
    done = subprocess.run(
        ["bash", SCRIPT, "5", tmp_path],
        env={"PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert (done.returncode, done.stdout) == (0, "RUNNING\n17 gpt2/good: NCCL sends over TCP\n"), done.stderr
