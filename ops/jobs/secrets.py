"""Refuses secrets on a job's command line, which Systems Manager, sudo's log and the shell's history keep."""

import re
from collections.abc import Mapping, Sequence

from ops.account.head_node import HeadNode
from ops.jobs.lookup import cluster_option
from ops.masking import mask
from ops.usage import OpsError, UsageError
from training_cluster.catalog.families import load_base

_FILE = "file:"
# Whole words of the names that secrets.sh takes: TOKENIZERS_PARALLELISM and MAX_TOKENS name no secret.
_NAME = re.compile(r"(?:^|_)(?:TOKEN|SECRETS?|\w*PASS(?:WORD|WD|PHRASE)?|\w*KEY|CREDENTIALS?|AUTH)(?:_|$)")
_WORDS = frozenset({"", "true", "false", "yes", "no", "on", "off"})
_FORM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def refuse_secret(name: str, value: str, *, option: str) -> None:
    """Refuse a variable whose name, or the form of whose value, is a secret's. Raises UsageError."""
    if value.startswith((_FILE, "secret:")):
        return
    base = load_base()
    is_path = value.startswith(tuple(f"{folder}/" for folder in ("/home", base.shared_dir, base.efs_dir)))
    is_named = _NAME.search(name) and not (value.isdecimal() or value.lower() in _WORDS)
    if not is_path and (is_named or mask(value) != value or mask(f"{name}={value}") != f"{name}={value}"):
        raise UsageError(_refusal(f"{option} {name}", name if _NAME.search(name) else "MY_TOKEN"))


def refuse_secret_arguments(arguments: Sequence[str]) -> None:
    """Refuse an argument of the workload with the form of a secret. Raises UsageError."""
    if any(mask(argument) != argument for argument in arguments):
        raise UsageError(_refusal("an argument of the workload", "MY_TOKEN"))


def check_files(settings: Mapping[str, str], head_node: HeadNode) -> None:
    """Look for the files of secrets, before nodes start. Raises OpsError, and botocore's errors."""
    for name, value in settings.items():
        path = value.removeprefix(_FILE).removeprefix("~/")
        if value.startswith(_FILE) and _NAME.search(name) and not head_node.can_read(path):
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
