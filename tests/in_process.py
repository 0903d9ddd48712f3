"""The local AWS in this process: the rehearsal's emulators with all corrections, without a server.

It starts at the first request, once a worker. `empty()` removes everything in the account.
"""

import asyncio
import os
import tempfile
import threading
import warnings
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from rehearsal.local_aws import quotas
from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.local_aws.ec2 import capacity_reservations, placement_groups
from rehearsal.local_aws.emulators.ministack_client import body_of, response, text
from rehearsal.local_aws.fsx import data_repositories
from rehearsal.local_aws.image_builder import records
from rehearsal.local_aws.publications import official_images
from rehearsal.local_aws.server import configure, make_gateway
from training_cluster.flags.cluster import PCLUSTER_VERSION

ACCESS_KEY = "AKIAIOSFODNN7EXAMPLE"
_OWN_RECORDS: tuple[dict[str, Any], ...] = (
    capacity_reservations.RESERVATIONS,
    placement_groups._GROUPS,
    data_repositories._ASSOCIATIONS,
    data_repositories.TASKS,
    records.RECORDS,
)
"""Records of the corrections, in addition to the emulators' own."""


class _Aws:
    """The gateway, and the event loop on which it answers."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="aws-")
        address = LocalAwsAddress(port=1, folder=Path(self._folder.name), access_key=ACCESS_KEY)
        environment = dict(os.environ)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                configure(address)
                self._gateway = make_gateway(address)
        finally:
            kept = {
                key: value for key, value in os.environ.items() if key.startswith(("MINISTACK_", "MOTO_"))
            }
            os.environ.clear()
            os.environ.update(environment | kept)  # the emulators read these at requests, too
        from moto.ec2.models import amis  # noqa: PLC0415

        amis.AMIS[:] = official_images(PCLUSTER_VERSION)  # moto read its own, where it was imported before
        self.empty()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def empty(self) -> None:
        """Remove everything from the account."""
        from ministack.app import _reset_all_state  # noqa: PLC0415
        from moto.core.base_backend import BackendDict  # noqa: PLC0415

        _reset_all_state()
        BackendDict.reset()
        for each in _OWN_RECORDS:
            each.clear()
        quotas.install()

    def answer(self, request: AWSPreparedRequest) -> AWSResponse:
        """Answer one request of botocore's."""
        return asyncio.run_coroutine_threadsafe(self._answer(request), self._loop).result()

    async def _answer(self, request: AWSPreparedRequest) -> AWSResponse:
        parts = urlsplit(request.url)
        headers = {name.lower(): text(value) for name, value in request.headers.items()}
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": request.method,
            "scheme": "https",
            "path": parts.path,
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "headers": [
                (name.encode(), value.encode()) for name, value in ({"host": parts.netloc} | headers).items()
            ],
            "server": ("127.0.0.1", 1),
            "client": ("127.0.0.1", 1),
        }
        received, sent = [{"type": "http.request", "body": body_of(request), "more_body": False}], []

        async def receive() -> dict[str, Any]:
            return received.pop() if received else {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await self._gateway(scope, receive, send)
        answered = [(name.decode(), value.decode()) for name, value in sent[0]["headers"]]
        content = b"".join(each.get("body", b"") for each in sent[1:])
        return response(request, sent[0]["status"], answered, content)


@cache
def aws() -> _Aws:
    """Start the account of this process."""
    return _Aws()
