"""Checks of a directory of the user's own: the secret with its password, and what it answers to that."""

import json
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from botocore.exceptions import ClientError

from ops.account.session import ClientOf, unless
from ops.preflight.finding import Finding, Verdict
from training_cluster.directory.file import Directory, read_directory
from training_cluster.flags.settings import Settings

_TIMEOUT_S = "10"
_PASSWORD, _ANSWER = "directory's password", "directory's answer"
# Exit codes of curl (its man page).
_UNREACHED, _CERTIFICATE, _BIND, _SEARCH = (6, 7, 28), (35, 60), (38, 67), 39


def check_directory(settings: Settings, client: ClientOf) -> Iterator[Finding]:
    """Check the secret of a directory of the user's own, and ask each address as nodes will.

    A laptop seldom reaches what a VPC reaches, so an address that does not answer is a warning.
    """
    if not settings.directory:
        return
    directory = read_directory(settings.directory)
    password, finding = _read_password(directory.PasswordSecretArn, settings.directory, client)
    yield finding
    if password is None:
        return
    for address in directory.addresses():
        yield _asked(address, directory, password, settings.directory)


def _read_password(arn: str, file: str, client: ClientOf) -> tuple[str | None, Finding]:
    """Return the secret's password, or None, and what was found."""
    try:
        secret: Any = unless(
            lambda: client("secretsmanager").get_secret_value(SecretId=arn), "ResourceNotFoundException"
        )
    except ClientError as error:
        if "AccessDenied" not in error.response["Error"]["Code"]:
            raise
        return None, _warning(
            _PASSWORD,
            "you may not read it, so the directory was not asked",
            f"aws secretsmanager describe-secret --secret-id {arn}    shows whether it exists",
        )
    if secret is None:
        mend = f"aws secretsmanager list-secrets, then PasswordSecretArn in {file}"
        return None, Finding(check=_PASSWORD, found="missing", verdict="problem", mend=mend)
    # Nodes remove blanks at its ends (ParallelCluster's cookbook).
    return secret["SecretString"].strip(), Finding(check=_PASSWORD, found="exists")


def _asked(address: str, directory: Directory, password: str, file: str) -> Finding:
    base, fits = directory.search_base, directory.LdapAccessFilter or "(objectClass=*)"
    base_url = f"{address}/{quote(base, safe='=,')}"
    on_a_node = f"curl --user {shlex.quote(directory.DomainReadOnlyUser)} {base_url}"
    if not shutil.which("curl"):
        return _warning(_ANSWER, "not checked: there is no curl here", f"on a node: {on_a_node}")
    options = {
        "user": f"{directory.DomainReadOnlyUser}:{password}",
        "url": f"{base_url}?dn?sub?{quote(fits, safe='=()&|*!,')}",
    }
    if directory.LdapTlsCaCert:
        if not Path(directory.LdapTlsCaCert).is_file():
            found = f"not checked: {directory.LdapTlsCaCert} is a file of the nodes, and none of this machine"
            return _warning(_ANSWER, found, f"on a node: {on_a_node} --cacert {directory.LdapTlsCaCert}")
        options["cacert"] = directory.LdapTlsCaCert
    # json: curl's files quote as JSON does. On the command line every user would read the password.
    lines = "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in options.items())
    done = subprocess.run(
        ["curl", "--disable", "--silent", "--show-error", "--max-time", _TIMEOUT_S, "--config", "-"],
        input=lines,
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stderr.strip().splitlines()
    reason = said[0].partition(") ")[2] if said else f"curl ended with code {done.returncode}"
    verdict: Verdict = "problem"
    match done.returncode:
        case 0 if "DN: " in done.stdout:
            return Finding(check=_ANSWER, found=f"{address} knows the user, and has entries below {base}")
        case 0:
            found, mend = (
                f"{address} has no entry below {base} that fits {fits}",
                f"LdapAccessFilter in {file}",
            )
        case code if code in _UNREACHED:
            verdict = "warning"
            found = f"{address} is not reached from here: {reason}"
            mend = f"on an instance of the private subnet: {on_a_node}"
        case code if code in _CERTIFICATE:
            found = f"{address} has a certificate that is not trusted: {reason}"
            mend = f"put its authority's certificate on the nodes, and its path into {file}: LdapTlsCaCert"
        case code if code in _BIND:
            found = f"{address} refuses {directory.DomainReadOnlyUser} with the secret's password"
            mend = (
                f"DomainReadOnlyUser in {file}, or aws secretsmanager put-secret-value "
                f"--secret-id {directory.PasswordSecretArn} --secret-string file://password.txt"
            )
        case code if code == _SEARCH:
            found, mend = f"{address} has no {base}: {reason}", f"DomainName in {file}"
        case _:
            verdict = "warning"
            found, mend = f"not checked: {reason}", f"on a node: {on_a_node}"
    return Finding(check=_ANSWER, found=found, verdict=verdict, mend=mend)


def _warning(check: str, found: str, mend: str) -> Finding:
    return Finding(check=check, found=found, verdict="warning", mend=mend)
