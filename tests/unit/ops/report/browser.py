"""A page in Chromium, by the DevTools protocol over two pipes: no driver, no open port."""

import itertools
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_TIMEOUT_MS = 30_000
# File descriptors of the browser for the protocol's pipes. A message ends with a zero byte.
_START = 'exec "$@" 3<&"$TO" 4>&"$FROM"'


def find_browser() -> str | None:
    """Find a browser on PATH; None if there is none."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class BrowserError(Exception):
    """The browser ended, or refused a command."""


class Browser:
    """One page of a browser."""

    def __init__(self, to: BinaryIO, answers: BinaryIO) -> None:
        self._to, self._answers = to, answers
        self._ids = itertools.count(1)
        self._session: str | None = None
        self._events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result. Raises BrowserError."""
        number = next(self._ids)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        self._to.flush()
        while (answer := self._next()).get("id") != number:
            self._events.append(answer)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        return dict(answer["result"])

    def _next(self) -> dict[str, Any]:
        message = bytearray()
        while (byte := self._answers.read(1)) != b"\0":
            if not byte:
                raise BrowserError("the browser ended")
            message += byte
        return dict(json.loads(message))

    def open(self, page: Path, *, width: int, dark: bool, scripts: bool = True) -> None:
        """Open a file in a window of a width in pixels; a narrow window emulates a phone."""
        self._events.clear()
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send("Emulation.setScriptExecutionDisabled", value=not scripts)
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", **metrics)
        self.send("Page.navigate", url=page.resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self._events):
            self._events.append(self._next())

    def evaluate(self, expression: str) -> Any:
        """Evaluate a JavaScript expression in the page. Raises BrowserError if it throws."""
        result = self.send(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
            timeout=_TIMEOUT_MS,
        )
        if "exceptionDetails" in result:
            raise BrowserError(json.dumps(result["exceptionDetails"]))
        return result["result"].get("value")

    def page_errors(self) -> list[str]:
        """List the page's errors so far: exceptions, refused loads, and every request but the page itself."""
        found = []
        for event in self._events:
            said, parameters = event.get("method"), event.get("params", {})
            if said == "Runtime.exceptionThrown":
                found.append(
                    json.dumps(parameters["exceptionDetails"].get("exception", {}).get("description"))
                )
            elif said == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
            elif said == "Network.requestWillBeSent" and parameters["type"] != "Document":
                found.append(f"it loads {parameters['request']['url']}")
        return found


@contextmanager
def browser(program: str) -> Iterator[Browser]:
    """Start a browser with a profile of its own; end it with the block."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    # No sandbox, since root cannot have one; it opens only our own files.
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe")
    with tempfile.TemporaryDirectory() as profile:
        process = subprocess.Popen(
            ["bash", "-c", _START, "browser", program, *flags, f"--user-data-dir={profile}", "about:blank"],
            env=os.environ | {"TO": str(theirs_in), "FROM": str(theirs_out), "HOME": profile},
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            with os.fdopen(ours_out, "wb") as to, os.fdopen(ours_in, "rb") as answers:
                yield Browser(to, answers)
        finally:
            process.terminate()
            process.wait(timeout=30)
