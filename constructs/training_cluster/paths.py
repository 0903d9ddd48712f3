"""Folders of the repository."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ASSETS = ROOT / "assets"
TRAINING = ASSETS / "training"
PCLUSTER_BIN = ROOT / ".venv-pcluster" / "bin"
PCLUSTER_PYTHON = PCLUSTER_BIN / "python"
"""Interpreter with the ParallelCluster library (docs/mechanisms/flag-to-node.md)."""
