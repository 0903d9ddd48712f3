"""Words that no release may change: CloudFormation would have to replace what cannot be replaced.

It refuses to replace a resource that has a name of ours ("cannot update a stack when a custom-named resource
requires replacing"), and what another stack imports. The data's own stack: functions/test_guard.py.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.unit.resource_schemas import create_only, values_at
from tests.unit.stacks.app import App
from training_cluster.acknowledgements import flat

KEPT = Path(__file__).parent / "never_replaced.txt"
# What others stand in or keep their data in; replaced, it would collide with itself (a CIDR) or be empty.
IN_USE = (
    "AWS::EC2::VPC",
    "AWS::EC2::Subnet",
    "AWS::EC2::SecurityGroup",
    "AWS::RDS::DBCluster",
    "AWS::RDS::DBInstance",
    "AWS::RDS::DBClusterParameterGroup",
)
# Properties that give a resource a name of ours.
NAMES = ("ManagedPolicyName", "KeyName", "Budget.BudgetName", "LogGroupName", "RoleName", "FunctionName")


def _fixed(template: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return create-only values, by resource, of resources with our names or in use by others.

    Without the name itself: another name is another resource, which CloudFormation makes beside the first.
    """
    for name, resource in template["Resources"].items():
        paths = () if resource["Type"].startswith("Custom::") else create_only(resource["Type"])
        found = values_at(resource.get("Properties", {}), paths)
        names = [path for path in found if path in NAMES]
        if names or resource["Type"] in IN_USE:
            values = {path: value for path, value in found.items() if path not in names}
            if values:
                yield name, values


def _words(value: Any) -> Any:
    return value if isinstance(value, bool | list) else flat(value)


def test_what_cannot_be_replaced_stays_as_first_deployed(everything: App) -> None:
    """Another threshold is another notification: change the budget's name with it (budget.py)."""
    found = [
        json.dumps([stack, name, {path: _words(value) for path, value in values.items()}], sort_keys=True)
        for stack, template in everything.templates.items()
        if stack in ("NetworkStack", "AccountingStack", "TrainingClusterStack")
        for name, values in _fixed(template)
    ]
    text = "".join(f"{line}\n" for line in sorted(found))
    if os.environ.get("UPDATE_GOLDEN"):
        KEPT.write_text(text)
    assert text == KEPT.read_text(), "a changed value fails every update of a deployed stack: keep it"
