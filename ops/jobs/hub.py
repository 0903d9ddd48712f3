"""Asks the Hugging Face hub, before a node starts, whether a job may download its INIT_FROM."""

import re
import urllib.error
import urllib.request
from collections.abc import Mapping

from ops.usage import UsageError
from training_cluster.paths import TRAINING

_PUBLIC = "https://huggingface.co"
_REPOSITORY = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w.-]+))?")
_LIMIT_S = 10.0
# Header of the hub's refusals, by which its own client tells them apart.
_ERROR = "X-Error-Code"
# A workload whose modules name the hub's modules takes names of the hub as INIT_FROM.
_HUB = re.compile(r"hf_weights|data import hub\b")


def check_weights(workload: str, settings: Mapping[str, str], variables: Mapping[str, str]) -> str:
    """Check that INIT_FROM, if it is a repository of the hub, can be downloaded without a token.

    Args:
        settings: settings of the job.
        variables: further variables of the job.

    Returns:
        A note if the hub could not be asked, or the job has a token, else "".

    Raises:
        UsageError: there is no such repository or revision, or it is gated or private.
    """
    job = {**variables, **settings}
    found = _REPOSITORY.fullmatch(job.get("INIT_FROM", ""))
    programs = (TRAINING / workload).glob("*.py")
    if not found or not any(_HUB.search(each.read_text(encoding="utf-8")) for each in programs):
        return ""
    if job.get("HF_TOKEN"):
        return f"INIT_FROM={found[0]} is not checked: only the job reads its token."
    name, revision = found["name"], found["revision"] or "main"
    url = f"{job.get('HF_ENDPOINT', _PUBLIC).rstrip('/')}/{name}/resolve/{revision}/config.json"
    request = urllib.request.Request(url, method="HEAD")  # noqa: S310 (the user's own endpoint)
    try:
        with urllib.request.urlopen(request, timeout=_LIMIT_S):  # noqa: S310
            return ""
    except urllib.error.HTTPError as error:
        return _refuse(error, name, revision)
    except (OSError, ValueError) as error:
        return f"INIT_FROM={found[0]} is not checked: {url} does not answer here ({error})."


def _refuse(error: urllib.error.HTTPError, name: str, revision: str) -> str:
    """Raise what the hub's answer means; return a note for another answer."""
    code = error.headers.get(_ERROR, "")
    if code == "GatedRepo":
        raise UsageError(
            f"--set INIT_FROM={name}: the weights are gated, and the job has no HF_TOKEN.\n"
            f"  open:    {_PUBLIC}/{name}, and accept its terms\n"
            "  type:    trainctl secret set HF_TOKEN, and then --env HF_TOKEN=file:.training-cluster/HF_TOKEN"
        )
    if code == "RevisionNotFound":
        raise UsageError(
            f"--set INIT_FROM={name}@{revision}: the repository has no such revision.\n"
            f"  allowed: those of {_PUBLIC}/{name}/commits/main"
        )
    # The hub hides private repositories: to the outside they do not exist.
    if code == "RepoNotFound":
        raise UsageError(
            f"--set INIT_FROM={name}: the hub has no such repository that this job may see.\n"
            f"  allowed: a name of {_PUBLIC}/models, a folder of the cluster (/fsx/...), or s3://BUCKET/FOLDER\n"
            "  type:    if it is a private one, trainctl secret set HF_TOKEN, and then --env "
            "HF_TOKEN=file:.training-cluster/HF_TOKEN"
        )
    return f"INIT_FROM={name} is not checked: the hub answers {error.code} {error.reason}."
