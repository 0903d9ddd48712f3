"""Ends whatever a rehearsal started, however it was left."""

from __future__ import annotations

from collections.abc import Mapping

from rehearsal.local_slurm.processes import check_none, end, find

GRACE_S = 5.0

__all__ = ["end_all", "find"]


def end_all(environment: Mapping[str, str]) -> None:
    """End every process that carries these environment variables."""
    end(environment, except_names=(), grace_s=GRACE_S)
    check_none(environment)
