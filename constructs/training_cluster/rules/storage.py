"""Rules between the flags of the storage."""

from collections.abc import Callable, Iterator

from training_cluster.flags.flag import facts_of
from training_cluster.flags.settings import Settings
from training_cluster.flags.storage import EFA_STEPS_GIB, StorageFlags
from training_cluster.problems import Contradiction


def _given_storage_is_left_alone(settings: Settings) -> Iterator[Contradiction]:
    for own in ("fsx_id", "efs_id"):
        ours = (
            flag for flag, info in StorageFlags.model_fields.items() if facts_of(info).refused_with == own
        )
        asked = [flag for flag in ours if flag in settings.asked_flags]
        if getattr(settings, own) and asked:
            yield Contradiction(
                problem=f"{' and '.join(asked)} {'is' if len(asked) == 1 else 'are'} for a new file system, "
                f"and {own}={getattr(settings, own)} already exists",
                mend=f"leave {' and '.join(asked)} out",
            )
    if settings.fsx_type == "scratch2" and "fsx_mbps_per_tib" in settings.asked_flags:
        yield Contradiction(
            problem="fsx_mbps_per_tib is for persistent2; scratch2 has 200 MB/s a TiB",
            mend="leave fsx_mbps_per_tib out",
        )


def _efa_has_the_size_it_needs(settings: Settings) -> Iterator[Contradiction]:
    if settings.fsx_efa == "off" or settings.fsx_id:
        return
    if settings.fsx_type == "scratch2":
        yield Contradiction(
            problem="fsx_efa=on is for persistent2; FSx has no scratch file system with EFA",
            mend="-c fsx_type=persistent2, or leave fsx_efa out",
        )
        return
    speed, step = settings.fsx_mbps_per_tib, EFA_STEPS_GIB[settings.fsx_mbps_per_tib]
    if settings.fsx_gib % step:
        fastest, smallest = min(EFA_STEPS_GIB.items(), key=lambda item: item[1])
        yield Contradiction(
            problem=f"fsx_gib={settings.fsx_gib}: with fsx_efa=on and {speed} MB/s a TiB, FSx takes "
            f"multiples of {step} GiB",
            mend=f"-c fsx_gib={-(-settings.fsx_gib // step) * step}, or the smallest size: -c "
            f"fsx_mbps_per_tib={fastest} -c fsx_gib={smallest}",
        )


STORAGE_RULES: tuple[Callable[[Settings], Iterator[Contradiction]], ...] = (
    _given_storage_is_left_alone,
    _efa_has_the_size_it_needs,
)
