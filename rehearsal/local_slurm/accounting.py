"""Slurm's accounting on this machine: a MariaDB and slurmdbd, with all their files in one folder."""

import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rehearsal.local_slurm.daemons import Child
from rehearsal.local_slurm.errors import SlurmError, tail
from rehearsal.local_slurm.layout import Layout
from rehearsal.local_slurm.ports import LOOPBACK

PROGRAMS = ("slurmdbd", "mariadbd", "mariadb-install-db", "sacctmgr", "sacct")
START_TIMEOUT_S = 60.0
_POLL_S = 0.1
_USER, _PASSWORD, _SCHEMA = "slurm", "rehearsal", "slurm_acct_db"


def start_accounting(*, layout: Layout, environment: Mapping[str, str]) -> list[Child]:
    """Start the database, then slurmdbd. Raises SlurmError if one is missing or does not start."""
    missing = [name for name in PROGRAMS if not shutil.which(name, path=environment["PATH"])]
    if missing:
        raise SlurmError(
            f"{', '.join(missing)} not found: accounting takes a database. Install it: "
            "`sudo apt-get install --no-install-recommends slurmdbd mariadb-server-core mariadb-client-core`."
        )
    folder = layout.root / "mariadb"
    # As short as a socket of 107 bytes requires.
    sock = (layout.alias or layout.root) / "run" / "mariadb.socket"
    server = ["--no-defaults", f"--datadir={folder}", f"--user={layout.user}"]
    if not folder.exists():
        _run(["mariadb-install-db", *server, "--auth-root-authentication-method=socket"], environment, layout)
    start = [
        "mariadbd",
        *server,
        f"--socket={sock}",
        "--skip-networking",
        f"--pid-file={layout.run}/mariadbd.pid",
    ]
    # slurmdbd's own values, and those of ParallelCluster's template of a database.
    start += ["--skip-networking", "--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900"]
    database = _start(start, layout, environment, is_up=lambda: _listens(sock))
    rights = f"CREATE USER IF NOT EXISTS '{_USER}'@'localhost' IDENTIFIED BY '{_PASSWORD}';"
    rights += f"GRANT ALL ON {_SCHEMA}.* TO '{_USER}'@'localhost';"
    _run(
        ["mariadb", "--no-defaults", f"--socket={sock}", f"--user={layout.user}", "-e", rights],
        environment,
        layout,
    )
    conf = layout.root / "slurmdbd.conf"
    conf.touch(mode=0o600)
    conf.write_text(_slurmdbd_conf(layout), encoding="utf-8")
    daemon = _start(
        ["slurmdbd", "-D"],
        layout,
        # The library of MariaDB's client takes the socket of a "localhost" from here.
        {**environment, "SLURM_CONF": str(layout.conf), "MYSQL_UNIX_PORT": str(sock)},
        is_up=lambda: _answers(layout.accounting_port),
    )
    return [database, daemon]


def _slurmdbd_conf(layout: Layout) -> str:
    lines = {
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={layout.munge_socket}",
        "DbdHost": layout.host,
        "DbdAddr": LOOPBACK,
        "DbdPort": layout.accounting_port,
        "SlurmUser": layout.user,
        "LogFile": f"{layout.log}/slurmdbd.log",
        "PidFile": f"{layout.run}/slurmdbd.pid",
        "StorageType": "accounting_storage/mysql",
        "StorageHost": "localhost",
        "StorageUser": _USER,
        "StoragePass": _PASSWORD,
        "StorageLoc": _SCHEMA,
    }
    return "".join(f"{name}={value}\n" for name, value in lines.items())


def _start(
    argv: list[str], layout: Layout, environment: Mapping[str, str], *, is_up: Callable[[], bool]
) -> Child:
    output = layout.log / f"{argv[0]}.out"
    with output.open("wb") as file:
        child = subprocess.Popen(
            argv,
            env=dict(environment),
            cwd=layout.run,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_TIMEOUT_S
    while child.poll() is None and time.monotonic() < deadline:
        if is_up():
            return child
        time.sleep(_POLL_S)
    raise SlurmError(f"{argv[0]} does not start within {START_TIMEOUT_S:.0f} s:\n{tail(output)}")


def _run(argv: list[str], environment: Mapping[str, str], layout: Layout) -> None:
    done = subprocess.run(
        argv, env=dict(environment), cwd=layout.run, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SlurmError(f"{argv[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


def _answers(port: int | None) -> bool:
    with socket.socket() as client:
        return client.connect_ex((LOOPBACK, port)) == 0
