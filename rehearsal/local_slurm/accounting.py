"""Slurm's accounting on this machine: a MariaDB and slurmdbd, with all their files in one folder."""

import shutil
import subprocess
from collections.abc import Mapping

from rehearsal.local_slurm.daemons import Child, answers, listens, start_daemon
from rehearsal.local_slurm.errors import SlurmError
from rehearsal.local_slurm.layout import Layout
from rehearsal.local_slurm.ports import LOOPBACK

PROGRAMS = ("slurmdbd", "mariadbd", "mariadb-install-db", "sacctmgr", "sacct")
_USER, _PASSWORD, _SCHEMA = "slurm", "rehearsal", "slurm_acct_db"


def start_accounting(*, layout: Layout, environment: Mapping[str, str]) -> list[Child]:
    """Start the database, then slurmdbd. Raises SlurmError if one is missing or does not start."""
    missing = [name for name in PROGRAMS if not shutil.which(name, path=environment["PATH"])]
    if missing:
        raise SlurmError(
            f"{', '.join(missing)} not found: accounting requires a database. "
            "On Debian or Ubuntu type: make setup"
        )
    folder = layout.root / "mariadb"
    # Short, since a socket's path has at most 107 bytes.
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
    # slurmdbd's own values, and values of ParallelCluster's template of a database.
    start += ["--skip-networking", "--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900"]
    database = start_daemon(start, layout=layout, environment=environment, is_up=lambda: listens(sock))
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
    daemon = start_daemon(
        ["slurmdbd", "-D"],
        layout=layout,
        # MariaDB's client library reads the socket of "localhost" from here.
        environment={**environment, "SLURM_CONF": str(layout.conf), "MYSQL_UNIX_PORT": str(sock)},
        is_up=lambda: answers(layout.accounting_port),
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


def _run(argv: list[str], environment: Mapping[str, str], layout: Layout) -> None:
    done = subprocess.run(
        argv, env=dict(environment), cwd=layout.run, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SlurmError(f"{argv[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
