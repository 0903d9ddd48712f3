"""bash in tests, with an environment that holds PATH and what a test gives."""

import os
import subprocess
from collections.abc import Sequence

from training_cluster.paths import TRAINING

# What job.slurm has for the scripts that it sources.
JOB = f"""\
log() {{ printf '%s\\n' "$*" >&2; }}
die() {{ printf 'die: %s\\n  %s\\n' "$1" "$2" >&2; exit 1; }}
tell() {{ :; }}
training={TRAINING}
"""


def bash(
    script: str, *arguments: object, user: Sequence[str] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a script that ends at its first error; `user` is a command before bash."""
    return subprocess.run(
        [*user, "bash", "-euo", "pipefail", "-c", script, "_", *map(str, arguments)],
        env={"PATH": os.environ["PATH"]} | environment,
        capture_output=True,
        text=True,
    )


def printed(script: str, *arguments: object, **environment: str) -> str:
    """Return the output of a script that succeeds and complains of nothing."""
    done = bash(script, *arguments, **environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
