"""An OpenLDAP server with people, on a free port, over TLS with a certificate that is made for it."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rehearsal.local_aws.certificate import make_certificate
from rehearsal.local_slurm.ports import LOOPBACK, find_ports
from rehearsal.problems import RehearsalError

BASE = "dc=corp,dc=example,dc=com"
READER = f"cn=ReadOnly,{BASE}"
PASSWORD = "of the reader"
PACKAGES = "slapd sssd-ldap sssd-common libnss-sss libpam-sss"
"""Debian's packages of the server and of a node."""
_START_TIMEOUT_S = 20.0
_CONF = """\
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
TLSCACertificateFile {folder}/certificate.pem
TLSCertificateFile {folder}/certificate.pem
TLSCertificateKeyFile {folder}/key.pem
database mdb
suffix {base}
directory {folder}/db
access to attrs=userPassword by anonymous auth by * none
access to * by users read by anonymous auth by * none
"""
_TOP = """\
dn: {base}
objectClass: domain
dc: corp

dn: {reader}
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: ReadOnly
userPassword: {password}
"""
_PERSON = """
dn: uid={name},{base}
objectClass: inetOrgPerson
objectClass: posixAccount
uid: {name}
cn: {name}
sn: {name}
uidNumber: {uid}
gidNumber: {uid}
homeDirectory: /home/{name}
userPassword: of {name}
"""
_GROUP = """
dn: cn={name},{base}
objectClass: posixGroup
cn: {name}
gidNumber: {gid}
memberUid: {member}
"""


@dataclass(frozen=True, kw_only=True)
class Server:
    """Address of a server that runs, and the file with which its clients check its certificate."""

    port: int
    certificate: Path

    @property
    def address(self) -> str:
        """DomainAddr of a cluster that uses this directory."""
        return f"ldaps://{LOOPBACK}:{self.port}"


@contextmanager
def serve(
    folder: Path, *, people: Mapping[str, int], groups: Mapping[str, tuple[int, str]]
) -> Iterator[Server]:
    """Run a server with all its files in `folder` until the end of the block.

    Args:
        folder: is made; a path without blanks.
        people: uid, which is the gid as well, by name.
        groups: gid and the one member, by name.

    Raises:
        RehearsalError: there is no slapd, or it does not start.
    """
    path = os.environ["PATH"] + ":/usr/sbin"
    if not (slapd := shutil.which("slapd", path=path)):
        raise RehearsalError(
            f"slapd is missing here. On Debian or Ubuntu type: sudo apt-get install {PACKAGES}"
        )
    (folder / "db").mkdir(parents=True)
    certificate = folder / "certificate.pem"
    make_certificate(certificate=certificate, key=folder / "key.pem", trust_bundle=folder / "trust.pem")
    conf, ldif = folder / "slapd.conf", folder / "people.ldif"
    conf.write_text(_CONF.format(folder=folder, base=BASE))
    text = _TOP.format(base=BASE, reader=READER, password=PASSWORD)
    text += "".join(_PERSON.format(name=name, uid=uid, base=BASE) for name, uid in people.items())
    text += "".join(
        _GROUP.format(name=name, gid=gid, member=member, base=BASE) for name, (gid, member) in groups.items()
    )
    ldif.write_text(text)
    added = subprocess.run([slapd, "-T", "add", "-f", conf, "-l", ldif], capture_output=True, text=True)
    if added.returncode:
        raise RehearsalError(f"slapadd failed:\n{added.stderr}")
    port = find_ports(1)
    server = Server(port=port, certificate=certificate)
    with (folder / "slapd.log").open("wb") as log:
        process = subprocess.Popen(
            [slapd, "-f", conf, "-h", server.address, "-d", "none"], stdout=log, stderr=log
        )
    try:
        _wait(process, port, folder / "slapd.log")
        yield server
    finally:
        process.terminate()
        process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as client:
            if client.connect_ex((LOOPBACK, port)) == 0:
                return
        time.sleep(0.05)
    raise RehearsalError(f"slapd does not answer within {_START_TIMEOUT_S:.0f} s:\n{log.read_text()}")
