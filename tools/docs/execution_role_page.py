"""docs/execution-role.md, the rights that the stacks need."""

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from rehearsal.local_aws.rights.registry_schemas import handlers
from tools.docs.table import table
from tools.synth_families import OTHERS, synth

_HEAD = """\
# CDK's execution role

`make docs` generates this page, and a test compares the two. CloudFormation creates the app's stacks
with the execution role of CDK's bootstrap. `cdk bootstrap` gives it AdministratorAccess; an organisation
that bootstraps with `--cloudformation-execution-policies` needs a policy with the actions below. They
are what the CloudFormation registry declares for creation, reading, update, deletion and tags of each
resource type in the app's stacks, whatever the flags. That is more than most deploys call, and none was
tried on AWS. What the provider needs for the cluster's own stack is its own role's:
[permissions.md](permissions.md).

The role also needs:

- `lambda:InvokeFunction` on the app's functions, for its custom resources;
- `iam:PassRole` for the roles of these stacks;
- `s3:GetObject` on the bucket and `ssm:GetParameters` on the parameter of CDK's bootstrap;
- `iam:CreateServiceLinkedRole` where the account has no such role yet: elasticfilesystem, fsx and
  s3.data-source.lustre.fsx (with `iam:AttachRolePolicy` and `iam:PutRolePolicy` on it), rds and imagebuilder
  (`.amazonaws.com`).

"""


def render_execution_role_page(types: Iterable[str]) -> str:
    """Render the page for the resource types of the app's stacks."""
    actions = defaultdict[str, set[str]](set)
    for type_ in types:
        if not type_.startswith("Custom::"):
            for action in (each for declared in handlers(type_).values() for each in declared):
                service, _, name = action.partition(":")
                actions[service].add(name)
    rows = ((service, ", ".join(sorted(names))) for service, names in sorted(actions.items()))
    return _HEAD + table(("service", "actions"), rows)


def types_of_stacks() -> set[str]:
    """Return the resource types of the apps that between them have every stack."""
    types = set[str]()
    with tempfile.TemporaryDirectory() as folder:
        for name, flags in OTHERS.items():
            synth(Path(folder), name, flags)
        for file in Path(folder).glob("*/*.template.json"):
            types |= {each["Type"] for each in json.loads(file.read_text())["Resources"].values()}
    return types
