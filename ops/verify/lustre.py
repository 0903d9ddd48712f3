"""Checks of a node's Lustre client: its settings, and its GB/s."""

import json
from pathlib import Path

from ops.jobs.lookup import find_partition, read_facts
from ops.report.record import Figure
from ops.verify.check import Check
from ops.verify.scene import Scene, UnseenError
from training_cluster.catalog.families import load_base
from training_cluster.paths import ROOT, TRAINING

RECORD = TRAINING / "nccl-tests" / "figures.json"
LEAST = 0.8
"""Part of a recorded figure below which Lustre is slow."""
_STEP = ("srun", "--nodes=1", "--time=5", "--immediate=60")
_CHECK = (
    "sudo -n env PARTITION=$SLURM_JOB_PARTITION bash "
    "/opt/training-cluster/bundles/current/bootstrap/steps/61-tune-lustre.sh check"
)
_SPEED = Path(__file__).with_name("lustre_speed.py")
_FILES, _MIB, _SECONDS = 16, 2048, 30
_LIMIT_S = 300
_MESSAGE_MIB = 16
"""Largest message of Lustre's bulk data."""


def _is_tuned(scene: Scene) -> tuple[bool, str]:
    said = scene.head_node.run(*_STEP, *_partition(scene), "bash", "-c", _CHECK)
    rows = [line.split() for line in said.splitlines()]
    if not rows or any(len(row) != len(("name", "wanted", "seen")) for row in rows):
        raise UnseenError(f"the node does not tell its settings: {said.strip() or 'no answer'}")
    wrong = [f"{name}: {seen}, not {wanted}" for name, wanted, seen in rows if seen != wanted]
    return not wrong, "; ".join(wrong) or ", ".join(f"{name}={seen}" for name, _, seen in rows)


def _is_fast(scene: Scene) -> tuple[bool, str]:
    facts = read_facts(find_partition(scene.partition, scene.head_node).name, scene.head_node)
    program = ("python3", "-I", "-c", _SPEED.read_text(encoding="utf-8"), load_base().shared_dir)
    said = scene.head_node.run(
        # All CPUs of the node, as a training has.
        *(*_STEP, "--exclusive", "--cpu-bind=none", *_partition(scene)),
        *(*program, *map(str, (_FILES, _MIB, _SECONDS))),
        limit_s=_LIMIT_S,
    )
    try:
        found = json.loads(said)
        written, read = float(found["written_gb_s"]), float(found["read_gb_s"])
        size, messages = int(found["bytes"]), int(found["efa_messages"])
    except (ValueError, KeyError, TypeError):
        raise UnseenError(f"the node measured nothing: {said.strip() or 'no answer'}") from None
    interfaces = int(facts.get("LUSTRE_EFA_INTERFACES") or 0)
    over_efa = messages * _MESSAGE_MIB << 20 >= size
    how = "over EFA" if over_efa else "over TCP"
    if interfaces and messages < 0:
        how = "over EFA or TCP: who asks may not read LNet's counters"
    shown = f"{written:.2f} GB/s written, {read:.2f} GB/s read by one node, {size / 1e9:.1f} GB {how}"
    is_held = over_efa or not interfaces or messages < 0
    figures = _recorded(facts)
    if not figures:
        return is_held, f"{shown}; never run on Lustre: record it in {RECORD.relative_to(ROOT)}"
    for metric, value in (("lustre_written_gb_per_s", written), ("lustre_read_gb_per_s", read)):
        if figure := figures.get(metric):
            is_held = is_held and value >= LEAST * figure.value
            shown += f"; {value / figure.value:.0%} of the recorded {metric} ({figure.source})"
    return is_held, shown


def _recorded(facts: dict[str, str]) -> dict[str, Figure]:
    """Return the figures that were measured with this project on such nodes and such a file system."""
    rows = map(Figure.model_validate, json.loads(RECORD.read_text(encoding="utf-8")))
    own = {name: facts.get(name, "") for name in ("SHARED_MBPS", "LUSTRE_EFA_INTERFACES")}
    return {
        each.metric: each
        for each in rows
        if each.reproduced
        and each.family == facts.get("FAMILY")
        and own == {name: str(each.settings.get(name)) for name in own}
    }


def _partition(scene: Scene) -> tuple[str, ...]:
    return (f"--partition={scene.partition}",) if scene.partition else ()


_LOCAL = "Lustre: a local node writes to this machine's disk."
CHECKS = (
    Check(
        id="lustre-client",
        claim="A node's Lustre client has the module options, parameters and EFA interfaces of step "
        "61-tune-lustre, which are AWS's.",
        expected="each as the step sets it for the node's memory and CPUs",
        not_in_rehearsal=_LOCAL,
        look=_is_tuned,
        only_on_aws=True,
    ),
    Check(
        id="lustre-speed",
        claim="One node writes to Lustre and reads from it as fast as recorded, with fsx_efa=on over EFA.",
        expected=f"at least {LEAST:.0%} of the figure for such nodes and such a file system; {_FILES} files, "
        f"{_FILES * _MIB // 1024} GiB or {_SECONDS} s at most, are written, read from the servers' memory "
        "and removed",
        not_in_rehearsal=_LOCAL,
        look=_is_fast,
        only_on_aws=True,
    ),
)
"""Checks of `trainctl verify --nodes`, on a node that runs."""
