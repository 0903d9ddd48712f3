"""Temporary files of all tests are in the checkout, as with `make`, however pytest was started."""

from __future__ import annotations

import os
import tempfile

from training_cluster.paths import ROOT

_TEMPORARY = ROOT / ".cache" / "tmp"
_TEMPORARY.mkdir(parents=True, exist_ok=True)
# A test of the rehearsal compares /tmp before and after; jobs of tests beside it write where this names.
os.environ.setdefault("TMPDIR", str(_TEMPORARY))
tempfile.tempdir = None
