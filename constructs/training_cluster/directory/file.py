"""Reader of the file of a directory: ParallelCluster's DirectoryService, by its own keys."""

from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, field_validator, model_validator

from training_cluster.catalog.family import Strict
from training_cluster.paths import ROOT
from training_cluster.user_yaml import explained, line_of, read_file_of, unusable

LDAPS_PORT, LDAP_PORT = 636, 389
# DomainNameValidator of ParallelCluster.
_NAME = r"^([a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*|(DC|dc)=[a-zA-Z0-9_-]+(,(DC|dc)=[a-zA-Z0-9_-]+)*)$"
_ARN = r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:\S+$"
# sudo's rules of Ubuntu and Amazon Linux name these groups, and would take a directory's for them.
_HIDDEN_GROUPS = {"filter_groups": "nobody,root,admin,sudo,wheel"}
_PLAIN = "ldap_auth_disable_tls_never_use_in_production"


class Directory(Strict):
    """Keys of DirectoryService (schemas/cluster_schema.py of ParallelCluster 3.16.1)."""

    DomainName: str = Field(pattern=_NAME)
    DomainAddr: str
    PasswordSecretArn: str = Field(pattern=_ARN)
    DomainReadOnlyUser: str = Field(min_length=1)
    LdapTlsCaCert: str | None = Field(None, pattern=r"^/\S+$")
    LdapTlsReqCert: Literal["demand", "hard"] = "hard"
    LdapAccessFilter: str | None = None
    GenerateSshKeysForUsers: bool = True
    AdditionalSssdConfigs: dict[str, Any] = Field(default_factory=dict)

    @field_validator("DomainAddr")
    @classmethod
    def _are_addresses(cls, value: str) -> str:
        for each in value.split(","):
            # Without a scheme ParallelCluster takes ldaps.
            parts = urlsplit(each.strip() if "://" in each else f"ldaps://{each.strip()}")
            if parts.scheme not in {"ldaps", "ldap"} or not parts.hostname:
                raise ValueError(f'"{each.strip()}" is not an address of a directory')
        return value

    @model_validator(mode="after")
    def _is_encrypted(self) -> Self:
        if "ldap://" in self.DomainAddr and str(self.AdditionalSssdConfigs.get(_PLAIN)).lower() != "true":
            raise ValueError(
                f"ldap:// sends passwords unencrypted: give ldaps://, or, for a try alone, "
                f"AdditionalSssdConfigs: {{{_PLAIN}: true}}"
            )
        return self

    def rendered(self) -> dict[str, Any]:
        """Return the cluster config's DirectoryService."""
        found = {key: value for key, value in self.model_dump().items() if value is not None}
        return found | {"AdditionalSssdConfigs": {**_HIDDEN_GROUPS, **self.AdditionalSssdConfigs}}

    @property
    def search_base(self) -> str:
        """Distinguished name below which nodes search: DomainName, as ParallelCluster reads it."""
        name = self.DomainName
        return name if "=" in name else ",".join(f"DC={part}" for part in name.split("."))

    def addresses(self) -> list[str]:
        """Return each address with its scheme and port."""
        found = []
        for each in self.DomainAddr.split(","):
            parts = urlsplit(each.strip() if "://" in each else f"ldaps://{each.strip()}")
            port = parts.port or (LDAPS_PORT if parts.scheme == "ldaps" else LDAP_PORT)
            found.append(f"{parts.scheme}://{parts.hostname}:{port}")
        return found


_TAKES = {
    "DomainName": "a name such as corp.example.com, or dc=corp,dc=example,dc=com",
    "DomainAddr": "ldaps://HOST, several with commas",
    "PasswordSecretArn": "the ARN of a secret in Secrets Manager with the read-only user's password",
    "DomainReadOnlyUser": "a distinguished name such as cn=ReadOnly,ou=Users,dc=corp,dc=example,dc=com",
    "LdapTlsCaCert": "the absolute path of a file on the nodes",
    "LdapTlsReqCert": "hard, demand: the directory's certificate is checked",
    "GenerateSshKeysForUsers": "true, false",
    "AdditionalSssdConfigs": "keys and values of sssd.conf",
}
_PAGE = "docs/how-to/users.md has an example"


def read_directory(name: str) -> Directory:
    """Read the file of a directory. Raises ConfigurationError.

    Args:
        name: path of the file, absolute or in the folder of cdk.json.
    """
    otherwise = f"the file has no keys\n    allowed: {', '.join(Directory.model_fields)}"
    content = read_file_of("directory", name, otherwise=otherwise, page=_PAGE)
    if found := directory_problems(content):
        problems = [f"line {line_of(ROOT / name, [key])}: {key}: {words}" for key, words in found]
        raise unusable(f"directory={name}", problems, page=_PAGE)
    return Directory.model_validate(content)


def directory_problems(keys: dict[str, Any]) -> list[tuple[str, str]]:
    """Return key and words of each mistake in the keys of a directory."""
    try:
        Directory.model_validate(keys)
    except ValidationError as error:
        wrong = explained(error, takes=_TAKES, known=lambda _: Directory.model_fields)
        # The model's own check is one of DomainAddr.
        return [(place[0] if place else "DomainAddr", words) for place, words in wrong]
    return []
