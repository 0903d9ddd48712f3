"""The address of the local AWS, and the environment in which every client reaches only this AWS."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from rehearsal.below import Below
from training_cluster.paths import ROOT

ACCOUNT = "123456789012"
REGION = os.environ.get("LOCAL_AWS_REGION", "us-east-1")
"""Region of the local AWS, which its processes read from the environment."""

# Variables that could name a real account, which must not reach a client of the local one.
REAL_ACCOUNT_VARIABLES = (
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_SESSION_TOKEN",
    "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
)


PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
"""Folder of the program `aws` of a rehearsal's nodes."""


def tools_path() -> str:
    """Return this process's PATH, preceded by the folders of its interpreter and of PROGRAMS."""
    return os.pathsep.join((str(Path(sys.executable).parent), str(PROGRAMS), os.environ["PATH"]))


@dataclass(frozen=True, kw_only=True)
class LocalAwsAddress:
    """The address of one running local AWS.

    Args:
        port: port on the loopback interface, which serves HTTPS as on AWS.
        folder: takes all files of the server and its clients.
        access_key: the only id that it accepts, so other users of the machine have no access.
        region: region of its instance types, zones and endpoints.
    """

    port: int
    folder: Path
    access_key: str = field(repr=False)
    region: str = REGION

    @property
    def url(self) -> str:
        """Endpoint of every service but S3."""
        return f"https://localhost:{self.port}"

    @property
    def s3_url(self) -> str:
        """Endpoint of S3: an IP address, since botocore then uses path-style addresses even where
        ParallelCluster asks for virtual hosts.
        """
        return f"https://127.0.0.1:{self.port}"

    certificate = Below("tls/certificate.pem", of="folder")
    """The server's own certificate (PEM)."""
    trust_bundle = Below("tls/bundle.pem", of="folder")
    """The public roots and the server's certificate (PEM)."""
    tmp = Below("tmp", of="folder")
    """Temporary folder of the server, its Lambda functions and its clients."""
    head_node_behaviour = Below("head-node-behaviour", of="folder")
    """File with the behaviour of head nodes: `signals` (the default), `fails`, `never signals`, or
    `ignores requests` (to the fleet).
    """

    def quota_used_up(self, resource_type: str) -> Path:
        """Return the file that, while it exists, makes the creation of resources of a type fail."""
        return self.folder / f"{resource_type.replace('::', '-')}-quota-used-up"

    head_node_shell = Below("head-node-shell.json", of="folder")
    """File with the environment (JSON) of the local Slurm; it exists while a local Slurm runs."""
    head_node_program = Below("head-node-program.json", of="folder")
    """File with the command (JSON) that handles a cluster's events; it exists in a kept rehearsal."""
    head_node_log = Below("head-node.log", of="folder")
    """File with the output of that command."""
    denied_calls = Below("denied-calls.log", of="folder")
    """File with a sentence for each call that lacked a right."""
    judged_calls = Below("judged-calls.jsonl", of="folder")
    """File with each distinct call whose rights were judged (JSON lines)."""

    def client_variables(self) -> dict[str, str]:
        """Return the environment variables with which any AWS client calls this server."""
        nothing = str(self.folder / "no-config")
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ENDPOINT_URL_S3": self.s3_url,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "LOCAL_AWS_REGION": self.region,
            "AWS_CONFIG_FILE": nothing,
            "AWS_SHARED_CREDENTIALS_FILE": nothing,
            "AWS_EC2_METADATA_DISABLED": "true",
            # Clients of AWS read this file for each connection. Public root certificates would add 18 ms.
            "AWS_CA_BUNDLE": str(self.certificate),
            "SSL_CERT_FILE": str(self.trust_bundle),
            "REQUESTS_CA_BUNDLE": str(self.trust_bundle),
            "NODE_EXTRA_CA_CERTS": str(self.certificate),
            "NO_PROXY": "localhost,127.0.0.1",
            "no_proxy": "localhost,127.0.0.1",
            "CDK_DISABLE_CLI_TELEMETRY": "1",
            "CDK_HOME": str(self.folder / "cdk-home"),
            "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
            # All local accounts share one unpacked CDK library, as with `make`: unpacking takes seconds.
            "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(ROOT / ".cache" / "jsii"),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "TMPDIR": str(self.tmp),
        }

    def client_environment(self) -> dict[str, str]:
        """Return the whole environment of a client: this process's, without the variables of a real account.

        PATH begins with Node beside this interpreter and with our `aws`; a machine may have no others.
        """
        inherited = {k: v for k, v in os.environ.items() if k not in REAL_ACCOUNT_VARIABLES}
        own = {"PATH": tools_path(), "HOME": str(self.folder / "home")}  # CDK caches in HOME/.cdk
        return inherited | self.client_variables() | own
