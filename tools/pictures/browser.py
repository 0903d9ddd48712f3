"""Takes pictures of a page in Chromium, by the DevTools protocol over two pipes: no driver, no open port."""

from __future__ import annotations

import base64
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
# The protocol's pipes are these descriptors of the browser, and a message ends with a zero.
_START = 'exec "$@" 3<&"$TO" 4>&"$FROM"'


def find_browser() -> str | None:
    """The browser on PATH, if there is one."""
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
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command; its result. Raises BrowserError."""
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
        """Open a file in a window of so many pixels; a narrow one is a phone's."""
        self._events.clear()
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Emulation.setScriptExecutionDisabled", value=not scripts)
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}  # noqa: PLR2004
        self.ask("Emulation.setDeviceMetricsOverride", **metrics)
        self.ask("Page.navigate", url=page.resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self._events):
            self._events.append(self._next())

    def evaluate(self, expression: str) -> Any:
        """What a JavaScript expression gives in the page. Raises BrowserError where it throws."""
        result = self.ask(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
            timeout=_TIMEOUT_MS,
        )
        if "exceptionDetails" in result:
            raise BrowserError(json.dumps(result["exceptionDetails"]))
        return result["result"].get("value")

    def complaints(self) -> list[str]:
        """Errors of the page so far: exceptions, refused loads, and every request but the page itself."""
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

    def picture(self, *, height: int | None = None) -> bytes:
        """A PNG of the page from its top; all of it without a height (in pixels)."""
        content = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": content["width"], "height": height or content["height"], "scale": 1}
        taken = self.ask("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        return base64.b64decode(taken["data"])


@contextmanager
def browser(program: str) -> Iterator[Browser]:
    """A browser with a profile of its own; it ends with the block."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    # Without a sandbox, since root has none; it opens files of ours only.
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
