"""The denied calls of a local AWS, which fail whatever runs on it."""

from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.problems import RehearsalError

_MOST_SHOWN = 10


def denied_calls(address: LocalAwsAddress) -> list[str]:
    """Return one sentence for each denied call so far."""
    file = address.denied_calls
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def refuse_denied_calls(address: LocalAwsAddress) -> None:
    """Fail if any call was denied, even if its caller continued without it.

    Raises:
        RehearsalError: with the calls, and the statements that came nearest.
    """
    calls = denied_calls(address)
    if calls:
        shown = "\n".join(f"  {call}" for call in calls[:_MOST_SHOWN])
        raise RehearsalError(
            f"{len(calls)} calls lacked a right (all of them: {address.denied_calls}):\n{shown}\n"
            "Fix the role's policy; the provider's is permissions.tsv and scopes.py in "
            "constructs/training_cluster/permissions."
        )
