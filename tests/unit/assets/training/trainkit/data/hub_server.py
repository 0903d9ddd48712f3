"""A Hugging Face hub on this machine: lists and serves the files of a folder, can break off."""

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

COMMIT = "c0" * 20
LARGE_SUFFIXES = (".parquet", ".safetensors")


@dataclass
class Hub:
    """`folder` has models/<repository>/ and datasets/<repository>/; whatever the revision, they are these."""

    folder: Path
    url: str = ""
    break_off_after: int | None = None
    """Bytes after which the next answer ends, once."""
    held: str = ""
    """Part of the paths of files that are not sent before it is empty."""
    token: str = ""
    """Token that opens the files, which are gated; empty for public files."""
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Path and Range of each request for a file."""

    def listing(self, at: Path, root: Path, *, recursive: bool = False) -> list[dict[str, Any]]:
        """Return the hub's answer about a folder: large files with their sha256, small ones with git's."""
        found = []
        for file in sorted(at.rglob("*") if recursive else at.iterdir()):
            content = file.read_bytes() if file.is_file() else b""
            git = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            entry: dict[str, Any] = {"type": "file" if file.is_file() else "directory", "oid": git}
            entry |= {"path": str(file.relative_to(root)), "size": len(content)}
            if file.suffix in LARGE_SUFFIXES:
                sha256 = hashlib.sha256(content).hexdigest()
                entry["lfs"] = {"oid": sha256, "size": len(content), "pointerSize": 134}
            found.append(entry)
        return found

    def about(self, root: Path) -> dict[str, Any]:
        """Return the hub's answer about a repository: its commit and all of its files."""
        files = [each for each in self.listing(root, root, recursive=True) if each["type"] == "file"]
        siblings = [
            {"rfilename": each["path"], "size": each["size"], "blobId": each["oid"]}
            | ({"lfs": each["lfs"] | {"sha256": each["lfs"]["oid"]}} if "lfs" in each else {})
            for each in files
        ]
        return {"id": f"{root.parent.name}/{root.name}", "sha": COMMIT, "siblings": siblings}


@contextmanager
def hub_server(folder: Path) -> Iterator[Hub]:
    """Serve a folder until the end of the block."""
    hub = Hub(folder)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            address, _, options = self.path.partition("?")
            parts = address.strip("/").split("/")
            if len(parts) < 5:  # such as the version of the package, which huggingface_hub asks for
                self._not_found()
                return
            if parts[0] == "api":
                kind, owner, name, what, _, *below = parts[1:]
                root = hub.folder / kind / owner / name
                at = root.joinpath(*below)
                if not at.is_dir():
                    self._not_found()
                    return
                recursive = "recursive=true" in options.lower()
                answer = hub.about(root) if what == "revision" else hub.listing(at, root, recursive=recursive)
                self._send(200, json.dumps(answer).encode())
                return
            kind = "datasets" if parts[0] == "datasets" else "models"
            owner, name, _, _, *path = parts[1:] if kind == "datasets" else parts
            file = (hub.folder / kind / owner / name).joinpath(*path)
            asked = self.headers.get("Range", "")
            hub.requests.append((self.path, asked))
            if hub.token not in self.headers.get("Authorization", ""):
                self.send_error(401)
                return
            if not file.is_file():
                self._not_found()
                return
            while hub.held and hub.held in self.path:
                time.sleep(0.05)
            content = file.read_bytes()
            start = int(asked.removeprefix("bytes=").partition("-")[0]) if asked else 0
            self._send(206 if asked else 200, content[start:], start=start, whole=len(content))

        do_HEAD = do_GET  # noqa: N815

        def _not_found(self) -> None:
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _send(self, status: int, content: bytes, *, start: int = 0, whole: int = 0) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("ETag", f'"{hashlib.sha1(content).hexdigest()}"')
            if status == 206:
                self.send_header("Content-Range", f"bytes {start}-{whole - 1}/{whole}")
            self.end_headers()
            if whole and hub.break_off_after is not None:
                content, hub.break_off_after = content[: hub.break_off_after], None
            if self.command != "HEAD":
                self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
