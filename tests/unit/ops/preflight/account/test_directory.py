"""A directory whose password preflight does not get; tests/slow/training_cluster/directory has a real one."""

from pathlib import Path

from ops.preflight.account.directory import check_directory
from tests.unit.ops.fake_account import Account, Refused
from training_cluster.rules.context import read_settings

ARN = "arn:aws:secretsmanager:us-east-1:123456789012:secret:ldap-AbCdEf"
FILE = f"""\
DomainName: corp.example.com
DomainAddr: ldaps://127.0.0.1:1
PasswordSecretArn: {ARN}
DomainReadOnlyUser: cn=ReadOnly,dc=corp,dc=example,dc=com
"""


def test_missing_and_unreadable_passwords_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "directory.yaml"
    file.write_text(FILE)
    settings = read_settings({"directory": str(file)})
    (missing,) = check_directory(
        settings, Account({"GetSecretValue": Refused("ResourceNotFoundException")}).client
    )
    assert (missing.verdict, missing.found) == ("problem", "missing")
    assert f"PasswordSecretArn in {file}" in missing.mend
    (refused,) = check_directory(
        settings, Account({"GetSecretValue": Refused("AccessDeniedException")}).client
    )
    assert (refused.verdict, ARN in refused.mend) == ("warning", True)
    assert "the directory was not asked" in refused.found


def test_a_cluster_without_directory_asks_for_no_secret() -> None:
    assert list(check_directory(read_settings({}), Account({}).client)) == []
