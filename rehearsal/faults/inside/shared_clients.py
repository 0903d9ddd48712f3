"""Shared boto3 clients and sessions, which make the library faster; runs in .venv-pcluster.

The library creates new clients for each call, which read their models and the trust bundle, and a new session
for each log line of a request and each look-up of the region. Sharing is safe: they store no answers of AWS.
The library's own caches are still cleared at each call, as in the provider.
"""

import functools
import importlib
from typing import Any

import boto3
from botocore.config import Config


def share_clients() -> None:
    """Share one client per service between the library and the provider, and one session."""
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
