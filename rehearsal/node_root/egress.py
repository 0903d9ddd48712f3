"""Network access of throw-away machines: this machine's names, certificates, proxies and pip settings."""

import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf")
_VARIABLES = re.compile(
    r"(?i:(http|https|no|all)_proxy)|PIP_(?!CACHE).+|.+_CA_BUNDLE|SSL_CERT_FILE|GIT_SSL_CAINFO"
)
_LOCAL = re.compile(r"(?:^|[\s=]|(file://))(/[^\s:]+)")


@dataclass(frozen=True, kw_only=True)
class Egress:
    """Environment and files that a throw-away machine inherits from this one."""

    environment: dict[str, str]
    places: tuple[Path, ...]
    """Files and folders that it sees at the same paths."""


@cache
def egress() -> Egress:
    """Read it from this machine's settings, which may also name folders, such as package folders."""
    environment = {name: value for name, value in os.environ.items() if _VARIABLES.fullmatch(name)}
    settings = [Path("/etc/pip.conf"), Path.home() / ".config" / "pip" / "pip.conf"]
    named = {Path(path) for path in _FILES}
    for text in (*environment.values(), *(path.read_text() for path in settings if path.is_file())):
        # The pages of an index link to files next to their own folder.
        named.update(Path(path).parent if url else Path(path) for url, path in _LOCAL.findall(text))
    named.update(settings)
    places = tuple(sorted(path for path in named if path.exists()))
    return Egress(environment=environment, places=places)
