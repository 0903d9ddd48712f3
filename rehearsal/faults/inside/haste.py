"""Runs in .venv-pcluster: spares what makes the library slow and has nothing to do with what it does.

For each call it makes clients anew, which reads their models and the trust bundle; and a whole session for
each request's log line and wherever it asks for the region. Here both are kept: they remember nothing of what
AWS said. What the library itself remembers is still forgotten at each call, as the provider does.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

import boto3
from botocore.config import Config


def make_haste() -> None:
    """Keep one client a service, for the library and for the provider, and one session."""
    make: Any = boto3.client
    client, resource = functools.cache(boto3.client), functools.cache(boto3.resource)
    common: Any = importlib.import_module("pcluster.aws.common")
    configured = dict[str, Any]()

    def keep_client(self: Any, client_name: str, botocore_config_kwargs: Any = None) -> None:
        if not botocore_config_kwargs:
            self._client = client(client_name)
            return
        key = f"{client_name} {botocore_config_kwargs}"
        if key not in configured:
            configured[key] = make(client_name, config=Config(**botocore_config_kwargs))
        self._client = configured[key]

    def keep_resource(self: Any, resource_name: str) -> None:
        self._resource = resource(resource_name)

    common.Boto3Client.__init__, common.Boto3Resource.__init__ = keep_client, keep_resource
    boto3.client = client
    sessions: Any = boto3.session
    sessions.Session = functools.cache(sessions.Session)
