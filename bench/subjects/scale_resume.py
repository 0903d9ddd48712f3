"""`python -m bench.subjects.scale_resume HOSTS`: starts a slurmd for each node, as slurmctld's ResumeProgram.

It replaces EC2 and the boot of an instance. The environment holds SLURM_CONF and the benchmark's marker.
"""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from rehearsal.local_slurm.power import BOOT_S


def _start(node: str) -> None:
    # -b reports that the node has booted, which ends its state "powering up".
    subprocess.run(["slurmd", "-N", node, "-b"], check=True, stdin=subprocess.DEVNULL)


def main(host_list: str) -> None:
    """Start the nodes, as many at a time as there are cores."""
    # slurmctld starts its programs with SIGTERM blocked, and a slurmd that inherits this never ends.
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    hostnames = subprocess.run(
        ["scontrol", "show", "hostnames", host_list], check=True, text=True, stdout=subprocess.PIPE
    )
    time.sleep(BOOT_S)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(_start, hostnames.stdout.split()))


if __name__ == "__main__":
    main(sys.argv[1])
