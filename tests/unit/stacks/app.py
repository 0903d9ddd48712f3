"""The three apps that the tests of stacks read, and the cluster config in each."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tools.synth_families import OTHERS
from training_cluster.acknowledgements import flat

Json = Any

AMI = "ami-0123456789abcdef0"
BOUNDARY = "arn:aws:iam::123456789012:policy/boundary"
SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:slurm-AbCdEf"
TEAM_POLICY = "arn:aws:iam::123456789012:policy/team"
OWN_NETWORK = {
    "vpc_id": "vpc-0123456789abcdef0",
    "public_subnet_id": "subnet-0123456789abcdef0",
    "private_subnet_id": "subnet-0123456789abcdef1",
}
OWN_STORAGE = {"bucket_name": "mine", "fsx_id": "fs-0123456789abcdef0", "efs_id": "fs-0123456789abcdef1"}
EVERYTHING = OTHERS["everything"]
# Whatever a user can bring, for a cluster with another name.
BROUGHT = {
    **OWN_NETWORK,
    **OWN_STORAGE,
    **{"cluster_name": "b", "key_name": "mine", "login_nodes": "1", "image": AMI, "os": "alinux2023"},
    **{"accounting": "db.example.com", "accounting_secret": SECRET, "permissions_boundary": BOUNDARY},
    **{"node_policies": TEAM_POLICY, "read_buckets": "data,shared/corpora", "write_buckets": "out/runs/"},
    "tags": "team=nlp, project=gpt2",
}


@dataclass(frozen=True, kw_only=True)
class App:
    """Templates by stack, and the cluster config in them, every reference in it written as a name."""

    templates: dict[str, Json]
    config: Json

    @classmethod
    def of(cls, templates: dict[str, Json]) -> "App":
        (cluster,) = (
            each["Properties"]
            for each in templates["TrainingClusterStack"]["Resources"].values()
            if each["Type"] == "Custom::TrainingCluster"
        )
        return cls(templates=templates, config=json.loads(flat(cluster["ClusterConfiguration"])))

    def resources(self, kind: str, stack: str | None = None) -> dict[str, Json]:
        """Return the properties of the resources of a type, by logical id."""
        templates = [self.templates[stack]] if stack else list(self.templates.values())
        return {
            id_: resource.get("Properties", {})
            for template in templates
            for id_, resource in template["Resources"].items()
            if resource["Type"] == kind
        }

    def only(self, kind: str, stack: str | None = None) -> Json:
        """Return the properties of the one resource of a type."""
        (found,) = self.resources(kind, stack).values()
        return found

    def exported(self, name: str) -> str:
        """Return the value of an export: a resource, as `<Id>` or `<Id.GroupId>`, or a plain id."""
        (value,) = [
            flat(output["Value"])
            for template in self.templates.values()
            for output in template.get("Outputs", {}).values()
            if flat(output.get("Export", {}).get("Name", "")) == name
        ]
        return value

    def statements(self) -> Iterator[Json]:
        """Yield every statement of every policy document in the templates."""
        for template in self.templates.values():
            yield from statements(template["Resources"])

    @property
    def queues(self) -> list[Json]:
        queues: list[Json] = self.config["Scheduling"]["SlurmQueues"]
        return queues

    @property
    def people_reach(self) -> list[Json]:
        """The head node and the pools of login nodes."""
        return [self.config["HeadNode"], *self.config.get("LoginNodes", {}).get("Pools", [])]


def statements(part: Json) -> Iterator[Json]:
    """Yield every statement of every policy document in a part of a template."""
    if isinstance(part, list):
        for each in part:
            yield from statements(each)
    elif isinstance(part, dict):
        if "Effect" in part:
            yield part
        for each in part.values():
            yield from statements(each)


def listed(value: Json) -> list[Json]:
    """Return a list as it is, and one value as a list."""
    return value if isinstance(value, list) else [value]
