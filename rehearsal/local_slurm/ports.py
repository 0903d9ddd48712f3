"""Consecutive free TCP ports, since a range of nodes in slurm.conf has a range of ports."""

import random
import socket

from rehearsal.local_slurm.errors import SlurmError

LOOPBACK = "127.0.0.1"
# Below Linux's default range for outgoing connections (32768 up), so that no client takes one of
# them, and above the rendezvous ports that job.slurm derives from job ids (12000-21999).
PORTS = range(22_000, 32_000)
ATTEMPTS = 200


def find_ports(count: int) -> int:
    """Find `count` consecutive TCP ports that are free on the loopback now; return the first.

    Raises SlurmError if there are none.
    """
    first_ports = range(PORTS.start, PORTS.stop - count + 1)
    for _ in range(ATTEMPTS if first_ports else 0):
        # Random, so that clusters that start at the same time try different ports.
        first = random.choice(first_ports)  # noqa: S311
        if all(_is_free(port) for port in range(first, first + count)):
            return first
    raise SlurmError(
        f"No {count} consecutive free TCP ports on {LOOPBACK} between {PORTS.start} and {PORTS.stop - 1}. "
        "Stop what listens there (`ss -ltnp`), or ask for fewer nodes."
    )


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            # Binds every address, as Slurm's daemons do, for an instant and without listening.
            probe.bind(("", port))
        except OSError:
            return False
    return True
