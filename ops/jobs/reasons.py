"""Why a job waits, in plain words. Pure."""

from __future__ import annotations

# squeue(1), JOB REASON CODES, those that a cluster of ours meets.
_PLAIN = {
    "Resources": "no nodes are free for it yet",
    "Priority": "jobs before it in the queue come first",
    "BeginTime": "its time has not come; a job that was queued again waits a minute or two",
    "Dependency": "another job has to end first",
    "DependencyNeverSatisfied": "the job that it waits for failed, so it will never start: cancel it",
    "ReqNodeNotAvail": "nodes that it needs are down, drained or reserved",
    "NodeDown": "a node that it needs is down",
    "BadConstraints": "no node can be what it asks for",
    "PartitionDown": "its partition starts no jobs",
    "PartitionInactive": "its partition starts no jobs: is the compute fleet stopped?",
    "PartitionNodeLimit": "it asks for more nodes than its partition lets it have",
    "PartitionTimeLimit": "it asks for more time than its partition lets it have",
    "JobHeldUser": "it is held until `scontrol release`",
    "JobHeldAdmin": "an administrator holds it",
    "Reservation": "its reservation has not begun",
    "Licenses": "its licenses are in use",
    "Cleaning": "its last start is still being cleaned up",
}
# Slurm writes these as sentences, with blanks or underscores.
_SENTENCES = {
    "nodes required for job are down": _PLAIN["ReqNodeNotAvail"],
    "launch failed requeued held": "its start failed, and it is held until `scontrol release`",
    "job requeued in held state": "it was queued again and is held until `scontrol release`",
}


def plain_reason(reason: str, *, dependency: str = "") -> str:
    """Slurm's reason for a person; one that is not known here stays as it is.

    Args:
        dependency: what the job waits for, in Slurm's words; empty without one.
    """
    word, _, more = reason.partition(",")
    spaced = reason.replace("_", " ").lower()
    sentence = next((plain for begins, plain in _SENTENCES.items() if spaced.startswith(begins)), "")
    plain = _PLAIN.get(word.strip(), "") or sentence
    if not plain:
        return reason or "Slurm has not said why yet"
    detail = dependency if word == "Dependency" else more.strip().removeprefix("UnavailableNodes:")
    return f"{plain} ({detail})" if detail and not sentence else plain
