"""Asks the Hugging Face hub, before a node starts, whether a job may download its INIT_FROM."""

import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

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
    """Check that INIT_FROM, if it is a repository of the hub, can be downloaded with the job's HF_TOKEN.

    Args:
        settings: settings of the job.
        variables: further variables of the job.

    Returns:
        A note if the hub could not be asked, else "".

    Raises:
        UsageError: there is no such repository or revision, or it is gated and the token does not open it.
    """
    job = {**variables, **settings}
    found = _REPOSITORY.fullmatch(job.get("INIT_FROM", ""))
    if not found or not _reads_hub(TRAINING / workload):
        return ""
    token = job.get("HF_TOKEN", "")
    if token.startswith("secret:"):
        return f"INIT_FROM={found[0]} is not checked: its token is a secret, which the nodes read."
    name, revision = found["name"], found["revision"] or "main"
    url = f"{job.get('HF_ENDPOINT', _PUBLIC).rstrip('/')}/{name}/resolve/{revision}/config.json"
    request = urllib.request.Request(url, method="HEAD")  # noqa: S310 (the user's own endpoint)
    if token:
        # Not to the storage to which the hub redirects.
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=_LIMIT_S):  # noqa: S310
            return ""
    except urllib.error.HTTPError as error:
        return _refuse(error, name, revision, has_token=bool(token))
    except (OSError, ValueError) as error:
        return f"INIT_FROM={found[0]} is not checked: {url} does not answer here ({error})."


def _reads_hub(folder: Path) -> bool:
    return any(_HUB.search(file.read_text(encoding="utf-8")) for file in folder.glob("*.py"))


def _refuse(error: urllib.error.HTTPError, name: str, revision: str, *, has_token: bool) -> str:
    """Raise what the hub's answer means; return a note for another answer."""
    code = error.headers.get(_ERROR, "")
    if code == "GatedRepo":
        lacks = "this HF_TOKEN does not open it" if has_token else "the job has no HF_TOKEN"
        raise UsageError(
            f"--set INIT_FROM={name}: the weights are gated, and {lacks}.\n"
            f"  open:    {_PUBLIC}/{name}, and accept its terms\n"
            "  type:    --env HF_TOKEN=secret:NAME, a secret of AWS Secrets Manager, or the token itself"
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
            "  type:    --env HF_TOKEN=secret:NAME, if it is a private one"
        )
    return f"INIT_FROM={name} is not checked: the hub answers {error.code} {error.reason}."
