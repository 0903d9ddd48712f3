"""Environment of all tests, however pytest was started: temporary files in the checkout, a faster synth."""

import os
import signal
import tempfile

import pytest

from training_cluster.paths import ROOT

_TEMPORARY = ROOT / ".cache" / "tmp"
_TEMPORARY.mkdir(parents=True, exist_ok=True)
# A test of the rehearsal compares /tmp before and after; jobs of tests beside it write where this names.
os.environ.setdefault("TMPDIR", str(_TEMPORARY))
tempfile.tempdir = None
# A shell's background jobs ignore SIGINT, and nohup's command ignores SIGHUP: tests of signals would fail.
for _number, _handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGTERM, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)
# CDK's validation of templates takes two thirds of a synth; `make check` runs it once for each app.
os.environ["CDK_VALIDATION"] = "false"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests marked `root` for other users. CI runs these in a job of their own (.ci/run root)."""
    if os.geteuid() != 0:
        skip = pytest.mark.skip(reason="root: make test-root, as root")
        for item in items:
            if item.get_closest_marker("root"):
                item.add_marker(skip)
