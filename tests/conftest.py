"""Environment of all tests, however pytest was started: temporary files in the checkout, a faster synth."""

from __future__ import annotations

import os
import signal
import tempfile

from training_cluster.paths import ROOT

_TEMPORARY = ROOT / ".cache" / "tmp"
_TEMPORARY.mkdir(parents=True, exist_ok=True)
# A test of the rehearsal compares /tmp before and after; jobs of tests beside it write where this names.
os.environ.setdefault("TMPDIR", str(_TEMPORARY))
tempfile.tempdir = None
# The background jobs of a shell start with SIGINT ignored; tests of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# CDK's validation of templates takes two thirds of a synth; `make check` runs it once for each app.
os.environ["CDK_VALIDATION"] = "false"
