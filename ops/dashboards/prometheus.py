"""Asks a Prometheus, on this machine or behind a forwarded port."""

import json
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from typing import NamedTuple

from ops.usage import OpsError

PORT = 9090
"""Port on which the head node's Prometheus listens (assets/bootstrap/steps/87-start-prometheus.sh)."""
_TIMEOUT_S = 20


def is_address(text: str) -> bool:
    """Return True if a text is the address of a web server."""
    try:
        parts = urllib.parse.urlsplit(text)
        is_server = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is not a number
        return False
    return is_server and text.isprintable() and " " not in text


class Value(NamedTuple):
    """One sample: its labels and its value."""

    labels: dict[str, str]
    value: float


@dataclass(frozen=True)
class Prometheus:
    """A Prometheus by its address, such as http://127.0.0.1:9090."""

    url: str

    def ask(self, query: str) -> list[Value]:
        """Return the samples of a query now. Raises OpsError if there is no Prometheus."""
        address = f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        # On a machine with a proxy, its own ports are reached without it.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(address, timeout=_TIMEOUT_S) as answer:
                read = json.load(answer)
            return [Value(each["metric"], float(each["value"][1])) for each in read["data"]["result"]]
        except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
            why: object = error
            # Of an HTTPError only its own text has the number.
            if isinstance(error, urllib.error.URLError) and not isinstance(error, urllib.error.HTTPError):
                why = error.reason
            raise OpsError(
                f"{self.url} does not answer as Prometheus: {why}.\n"
                "  fix: deploy with -c metrics=prometheus; then on the head node: "
                "systemctl status training-cluster-prometheus"
            ) from None
