"""Rules between the storage flags; see rules.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from training_cluster.problems import Contradiction

if TYPE_CHECKING:
    from training_cluster.settings import Settings


def _given_storage_is_left_alone(settings: Settings) -> Iterator[Contradiction]:
    for own, ours in {
        "fsx_id": ("fsx_type", "fsx_gib", "fsx_mbps_per_tib"),
        "efs_id": ("efs_mibps",),
    }.items():
        asked = [flag for flag in ours if flag in settings.model_fields_set]
        if getattr(settings, own) and asked:
            yield Contradiction(
                problem=f"{' and '.join(asked)} {'is' if len(asked) == 1 else 'are'} for a new file system, "
                f"and {own}={getattr(settings, own)} is there already",
                mend=f"leave {' and '.join(asked)} out",
            )
    if settings.fsx_type == "scratch2" and "fsx_mbps_per_tib" in settings.model_fields_set:
        yield Contradiction(
            problem="fsx_mbps_per_tib is for persistent2; scratch2 has 200 MB/s a TiB",
            mend="leave fsx_mbps_per_tib out",
        )


STORAGE_RULES: tuple[Callable[[Settings], Iterator[Contradiction]], ...] = (_given_storage_is_left_alone,)
