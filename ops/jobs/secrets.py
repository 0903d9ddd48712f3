"""Refuses secrets on a job's command line, which Systems Manager, sudo's log and the shell's history keep."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from ops.account.head_node import HeadNode
from ops.jobs.lookup import cluster_option
from ops.masking import mask
from ops.usage import OpsError, UsageError
from training_cluster.catalog.families import load_base
from training_cluster.paths import TRAINING

_FILE, _SETTINGS = "file:", TRAINING / "job_settings.sh"
# Variables that secrets.sh replaces.
_TAKEN = re.compile(*re.findall("^readonly SECRET_NAMES='(.+)'$", _SETTINGS.read_text(), re.MULTILINE))
# The last word of a name tells what it is: MOE_TOKEN_DISPATCHER_TYPE and HF_TOKEN_PATH are no secrets.
_NAME = re.compile(
    r"(?:(?:^|_)(?:SECRETS?|CREDENTIALS?|AUTH)|_PWD|PASS(?:WORD|WD|PHRASE)"
    r"|(?:API|ACCESS|SECRET|AUTH|PRIVATE|DB|HF|WANDB)_?(?:TOKEN|KEY|PASS))(?:_?\d+)?$"
)
# PAD_TOKEN, TEXT_KEY and SINGLE_PASS too end this way, so their values have to look random.
_AMBIGUOUS_NAME = re.compile(r"(?:^|_)(?:TOKEN|KEY|PASS)(?:_?\d+)?$")
_RANDOM = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w+/=.-]{16,}")
_PLAIN = re.compile(r"|true|false|yes|no|on|off|[-+]?\d*\.?\d+(?:e[-+]?\d+)?", re.IGNORECASE)
_FORM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def refuse_secret(name: str, value: str, *, option: str) -> None:
    """Refuse a variable whose name, or the form of whose value, is a secret's. Raises UsageError."""
    if value.startswith((_FILE, "secret:", "/")):
        return
    is_named = _NAME.search(name) or (_AMBIGUOUS_NAME.search(name) and _RANDOM.fullmatch(value))
    has_form = any(mask(text) != text for text in (value, f"{name}={value}"))
    if has_form or (is_named and not _PLAIN.fullmatch(value)):
        raise UsageError(_refusal(f"{option} {name}", name if _TAKEN.search(name) else "MY_TOKEN"))


def refuse_secret_arguments(arguments: Sequence[str]) -> None:
    """Refuse an argument of the workload, or its value, with the form of a secret. Raises UsageError."""
    pairs = [
        f"{option} {value}"
        for option, value in pairwise(arguments)
        if option[:1] == "-" and value[:1] not in "-/"
    ]
    if any(mask(argument) != argument for argument in (*arguments, *pairs)):
        raise UsageError(_refusal("an argument of the workload", "MY_TOKEN"))


def check_files(settings: Mapping[str, str], head_node: HeadNode) -> None:
    """Look for the files of secrets, before nodes start. Raises OpsError, and botocore's errors."""
    for name, value in settings.items():
        path = value.removeprefix(_FILE).removeprefix("~/")
        if value.startswith(_FILE) and _TAKEN.search(name) and not head_node.can_read(path):
            raise OpsError(
                f"{name}: your home on {head_node.cluster_name} has no file {path} that you can read.\n"
                f"  type:    trainctl secret set {name}{cluster_option(head_node.cluster_name)}"
            )


def script(name: str) -> list[str]:
    """Return the command for the head node, which asks for a secret. Raises UsageError for a wrong name."""
    if not _FORM.fullmatch(name):
        raise UsageError(
            f"secret set {name!r}: not a name.\n  allowed: letters, digits and _ . -\n"
            "  type:    trainctl secret set HF_TOKEN"
        )
    return ["bash", f"{load_base().shared_dir}/training/secrets.sh", "set", name]


def _refusal(where: str, name: str) -> str:
    return (
        f"{where}: this looks like a secret, which Systems Manager, the head node's log and this shell's "
        "history would keep.\n"
        "  allowed: file:PATH, a file in your home on the cluster that only you can read, or secret:NAME, a "
        "secret of AWS Secrets Manager\n"
        f"  type:    trainctl secret set {name}, and then --env {name}=file:.training-cluster/{name}"
    )
