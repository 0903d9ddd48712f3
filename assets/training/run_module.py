"""Runs a module of trainkit: python3 -I run_module.py trainkit.run.report RUN_DIR.

`python -m` searches the current folder first for each module, and other users may write to the folder in
which a job was submitted. Only the standard library.
"""

from __future__ import annotations

import os
import runpy
import sys

# Not resolved: the next deploy but one removes the target of the link /fsx/training.
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - they resolve no link
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
