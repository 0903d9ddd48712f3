"""A node of folders with users: the file of users of its bundle, and its own /etc/passwd."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.unit.assets.bootstrap.start_step_node import Node
from tests.unit.training_cluster.users.keys import public_key
from training_cluster.users.file import read_users
from training_cluster.users.render import render_users

ALICE, BOB = 5001, 5002
FILE = f"""
accounts:
  nlp: {{gid: 6001, quota_gib: 500}}
users:
  alice: {{uid: {ALICE}, account: nlp, keys: {public_key("alice")}, admin: true, quota_gib: 100}}
  bob: {{uid: {BOB}, keys: {public_key("bob")}, iam: bob@example.com}}
"""


class UsersNode(Node):
    """A node with the files of users of a Linux, and the bundle's users."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.file = root / "users.yaml"
        self.write("etc/passwd", "root:x:0:0::/root:/bin/bash\nubuntu:x:1000:1000::/home/ubuntu:/bin/bash\n")
        self.write("etc/group", "root:x:0:\nubuntu:x:1000:\n")
        self.write("etc/shadow", "root:*:1::::::\nubuntu:*:1::::::\n").chmod(0o600)
        self.write("etc/gshadow", "root:*::\nubuntu:*::\n")
        self.write("etc/skel/.bashrc", "# of the skeleton\n")
        for folder in ("home", "efs", "fsx"):
            (self.slash / folder).mkdir()
            (self.slash / folder).chmod(0o1777)

    def describe(self, text: str, *, home: str = "ebs") -> None:
        """Put a file of users into the bundle."""
        self.file.write_text(text)
        for name, content in render_users(read_users(str(self.file)), home=home).items():
            path = self.bundle / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)

    def entry(self, name: str) -> list[str]:
        (found,) = [
            line.split(":") for line in self.text("etc/passwd").splitlines() if line.startswith(f"{name}:")
        ]
        return found

    def group(self, name: str) -> list[str]:
        (found,) = [
            line.split(":") for line in self.text("etc/group").splitlines() if line.startswith(f"{name}:")
        ]
        return [found[2], *sorted(found[3].split(","))]

    def keys(self, name: str) -> Path:
        return self.slash / "efs" / "home" / name / ".ssh" / "authorized_keys"


@contextmanager
def users_node() -> Iterator[UsersNode]:
    """Make a node, in a folder that other users can reach."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        umask = os.umask(0o022)
        yield UsersNode(Path(name))
        os.umask(umask)


def owner(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)
