"""Translates Slurm's reasons for a waiting job into plain words. Pure."""

BUDGET = "QOSGrpBillingMinutes"
"""Reason of a job that exceeds the budget of its account (78-apply-accounts.sh)."""
# From squeue(1), JOB REASON CODES: those that occur on these clusters.
_PLAIN = {
    "Resources": "no nodes are free for it yet",
    "Priority": "jobs before it in the queue come first",
    "BeginTime": "its begin time has not come; a requeued job waits a minute or two",
    "Dependency": "another job has to end first",
    "DependencyNeverSatisfied": "the job that it waits for failed, so it will never start: cancel it",
    "ReqNodeNotAvail": "nodes that it needs are down, drained or reserved",
    "NodeDown": "a node that it needs is down",
    "BadConstraints": "no node meets its constraints",
    "PartitionDown": "its partition starts no jobs",
    "PartitionInactive": "its partition starts no jobs: is the compute fleet stopped?",
    "PartitionNodeLimit": "it requests more nodes than its partition allows",
    "PartitionTimeLimit": "it requests more time than its partition allows",
    "JobHeldUser": "it is held until `scontrol release`",
    "JobHeldAdmin": "an administrator holds it",
    "Reservation": "its reservation has not begun",
    "Licenses": "its licenses are in use",
    BUDGET: "its nodes need more for its time limit, or forever without one, than is left of its account's "
    "GPU hours (max_gpu_hours of the users file): cancel it, and submit it with a shorter --time",
    "InvalidQOS": "max_gpu_hours came to its account or left it: the head node gives it the account's QOS "
    "within two minutes, and `scontrol update JobId=ID QOS=` at once",
    "Cleaning": "Slurm is still cleaning up its last start",
}
# Reasons that pass when other jobs end or with time, and the user's own wish.
_PASSING = frozenset(
    "Resources Priority BeginTime Dependency JobArrayTaskLimit JobHeldUser Reservation Licenses "
    "Cleaning".split()
)
# Limits of accounts and QOS pass, too, except those of a single job.
_LIMITS, _OF_ONE_JOB = ("Assoc", "QOS", "Max"), "PerJob"
# Reasons that Slurm writes as sentences, with blanks or underscores.
_SENTENCES = {
    "nodes required for job are down": _PLAIN["ReqNodeNotAvail"],
    "launch failure limit exceeded": "its start failed five times, and it is held until `scontrol release`",
    "launch failed requeued held": "its start failed, and it is held until `scontrol release`",
    "job requeued in held state": "it was requeued, and is held until `scontrol release`",
}


def passes(reason: str) -> bool:
    """Return True if a job that waits for this reason starts without anybody's help."""
    word = reason.partition(",")[0].strip()
    is_limit = word.startswith(_LIMITS) and word != BUDGET and _OF_ONE_JOB not in word
    return not word or word in _PASSING or is_limit


def plain_reason(reason: str, *, dependency: str = "") -> str:
    """Translate Slurm's reason, or return an unknown one; `dependency` is the job's, as Slurm writes it."""
    word, _, more = reason.partition(",")
    spaced = reason.replace("_", " ").lower()
    sentence = next((plain for begins, plain in _SENTENCES.items() if spaced.startswith(begins)), "")
    plain = _PLAIN.get(word.strip(), "") or sentence
    if not plain:
        return reason or "Slurm gives no reason yet"
    detail = dependency if word == "Dependency" else more.strip().removeprefix("UnavailableNodes:")
    return f"{plain} ({detail})" if detail and not sentence else plain
