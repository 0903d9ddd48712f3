"""A proof about SSM parameters, which contain private keys and other teams' secrets."""

import json
from fnmatch import fnmatchcase

from tests.unit.stacks.security_proofs import App, Json, statements
from training_cluster.acknowledgements import flat

READING = tuple(f"ssm:GetParameter{rest}" for rest in ("", "s", "sByPath", "History"))


def parameters_of_others(app: App) -> list[str]:
    """List statements that read any parameter, and policies of nodes that no template contains."""
    anything = [
        f"{stack}: {json.dumps(each)}"
        for stack, template in app.templates.items()
        for each in statements(template["Resources"])
        if each["Effect"] == "Allow" and _reads_parameters(each) and _of_everybody(each)
    ]
    ours = {f"<{name.partition('/')[2]}>" for name, _ in app.resources("AWS::IAM::ManagedPolicy")}
    attached = [
        policy["Policy"]
        for node in (*app.people_reach, *app.queues)
        for policy in node["Iam"]["AdditionalIamPolicies"]
    ]
    return anything + [f"not ours: {arn}" for arn in attached if arn not in ours]


def _reads_parameters(statement: Json) -> bool:
    actions = statement.get("Action", "*")  # NotAction
    actions = [actions] if isinstance(actions, str) else actions
    return any(fnmatchcase(each, action) for each in READING for action in actions)


def _of_everybody(statement: Json) -> bool:
    # A trust policy has no resource.
    resources = statement.get("Resource", [])
    resources = resources if isinstance(resources, list) else [resources]
    return any(flat(each) == "*" or flat(each).endswith(":parameter/*") for each in resources)
