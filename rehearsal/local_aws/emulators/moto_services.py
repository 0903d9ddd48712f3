"""EC2, FSx, EFS and Service Quotas: moto's WSGI application, with corrections."""

import io
import sys
from collections.abc import Callable, Iterable
from typing import Any

from rehearsal.local_aws.emulators import hooks

SERVICES = frozenset({"ec2", "fsx", "elasticfilesystem", "servicequotas"})
_ROOT_DEVICES = ("/dev/sda1", "/dev/xvda")
ROOT_VOLUME_GIB = 35
"""Size of the root volume of ParallelCluster's own images."""

Headers = list[tuple[str, str]]
Answer = tuple[int, Headers, bytes]


def install() -> None:
    """Accept block devices that ParallelCluster's validators try in dry runs."""
    hooks.replace("BLOCK_DEVICES", _accept_block_devices)


def _accept_block_devices(original: Callable[..., None]) -> Callable[..., None]:
    def validate(device_mapping: dict[str, Any]) -> None:
        if "VirtualName" in device_mapping:  # an instance store has no Ebs block
            return
        if device_mapping.get("DeviceName") in _ROOT_DEVICES:  # the size comes from the image
            device_mapping.setdefault("Ebs", {}).setdefault("VolumeSize", str(ROOT_VOLUME_GIB))
        original(device_mapping)

    return validate


class MotoServices:
    """moto's dispatcher, called in this process."""

    def __init__(self, port: int) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app  # noqa: PLC0415

        self._application: Callable[..., Iterable[bytes]] = DomainDispatcherApplication(create_backend_app)
        self._port = port

    def answer(self, scope: dict[str, Any], headers: dict[str, str], body: bytes) -> Answer:
        """Answer one request. It blocks, so call it in a worker thread."""
        status: list[Any] = []

        def start_response(line: str, response_headers: Headers, _exc: object = None) -> None:
            status[:] = [int(line.split(maxsplit=1)[0]), response_headers]

        answer = b"".join(self._application(self._environ(scope, headers, body), start_response))
        kept = [(name, value) for name, value in status[1] if name.lower() != "transfer-encoding"]
        return status[0], kept, answer

    def _environ(self, scope: dict[str, Any], headers: dict[str, str], body: bytes) -> dict[str, Any]:
        return {
            "REQUEST_METHOD": scope["method"],
            "SCRIPT_NAME": "",
            "PATH_INFO": scope["path"],
            "QUERY_STRING": scope.get("query_string", b"").decode(),
            "SERVER_NAME": "localhost",
            "SERVER_PORT": str(self._port),
            "SERVER_PROTOCOL": "HTTP/1.1",
            "CONTENT_LENGTH": str(len(body)),
            "CONTENT_TYPE": headers.get("content-type", ""),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "https",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        } | {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
