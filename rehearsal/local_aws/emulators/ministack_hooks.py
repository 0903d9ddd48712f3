"""Hooks into ministack, none of which is its public API."""

from rehearsal.local_aws.emulators.hooks import Hook

LAMBDA_BINARY = Hook(
    target="ministack.core.lambda_runtime:_detect_runtime_binary",
    parameters=("runtime",),
    why="Python functions run with .venv-pcluster, and /opt leads to their layers",
)
FUNCTION_CREDENTIALS = Hook(
    target="ministack.core.lambda_runtime:execution_credentials",
    parameters=("config",),
    why="each function signs with a session of its role, whose access key nobody can guess",
)
REGISTER_SESSION = Hook(
    target="ministack.services.sts:register_session",
    parameters=("access_key", "session"),
    why="sessions of functions' roles",
)
ENFORCE = Hook(
    target="ministack.core.iam_evaluator:enforce",
    parameters=("access_key_id", "iam_action", "service", "region", "resource_arn", "service_context"),
    why="judges calls by the policies of roles, boundaries and resources",
)
PRINCIPAL = Hook(
    target="ministack.core.iam_evaluator:resolve_principal",
    parameters=("access_key_id", "account_id", "credential"),
    why="the policies of a denied caller, for the message",
)
REQUEST_ORIGIN = Hook(
    target="ministack.core.iam_evaluator:pin_request_origin",
    parameters=("source_ip", "secure_transport"),
    why="conditions of buckets' policies ask for TLS",
)
REQUEST_SERVICE = Hook(
    target="ministack.core.router:detect_service",
    parameters=("method", "path", "headers", "query_params"),
    why="ministack's name of a request's service, for its rights",
)
REQUEST_ACTION = Hook(
    target="ministack.core.iam_actions:extract_iam_action",
    parameters=("service", "method", "path", "headers", "body", "query_params"),
    why="the action that a request needs",
)
REQUEST_RESOURCE = Hook(
    target="ministack.core.iam_actions:extract_resource_arn",
    parameters=tuple("service method path headers body query_params region account_id".split()),
    why="the resource that a request is for",
)
REQUEST_TAGS = Hook(
    target="ministack.core.iam_actions:request_tag_context",
    parameters=("service", "iam_action", "body", "params"),
    why="conditions on the tags of a request",
)
S3_CHECKS = Hook(
    target="ministack.core.iam_actions:s3_additional_checks",
    parameters=("method", "path", "headers", "body", "query_params"),
    why="further rights of copies and batch deletions",
)
_RESOURCE_CALLS = {
    "_provision_resource": ("resource_type", "logical_id", "props", "stack_name"),
    "_update_resource": tuple(
        "resource_type physical_id old_props new_props stack_name logical_id old_attrs".split()
    ),
    "_delete_resource": ("resource_type", "physical_id", "props", "stack_name", "logical_id"),
}
CREATE_RESOURCE, UPDATE_RESOURCE, DELETE_RESOURCE = (
    tuple(
        Hook(
            target=f"ministack.services.cloudformation.{module}:{name}",
            parameters=parameters,
            why="a stack's resources are made with the rights of its caller",
        )
        for module in ("stacks", "provisioners")
    )
    for name, parameters in _RESOURCE_CALLS.items()
)
REQUEST_KEY = Hook(
    target="ministack.core.router:extract_access_key_id",
    parameters=("headers", "query_params"),
    why="only the access key of this start is accepted",
)
SESSIONS = Hook(
    target="ministack.services.sts:_sessions",
    parameters=None,
    why="the access keys of assumed roles are accepted as well",
)
REFUSAL = Hook(
    target="ministack.core.iam_actions:access_denied_response",
    parameters=(
        "service",
        "action",
        "principal_arn",
        "request_id",
        "error_code",
        "message",
        "headers",
        "resource_arn",
        "explicit_deny",
        "resource_policy_arn",
    ),
    why="an unknown access key is refused in the service's own protocol",
)
TEMPLATE_URL = Hook(
    target="ministack.services.cloudformation.helpers:_resolve_document",
    parameters=("params", "body_key", "url_key", "label"),
    why="ParallelCluster passes TemplateURL as a virtual-host address, which ministack only documents",
)
CREATION_ORDER = Hook(
    target="ministack.services.cloudformation.stacks:_topological_sort",
    parameters=("resources", "conditions"),
    why="one resource is created at a time: a WaitCondition must not block the instance that signals it",
)
MANAGED_INSTANCES = Hook(
    target="ministack.services.ssm:_managed_instance_ids",
    parameters=(),
    why="Run Command reaches head nodes, which are moto's",
)
FINISH_INVOCATION = Hook(
    target="ministack.services.ssm:_finish_invocation",
    parameters=("command_id", "instance_id", "argv"),
    why="the local Slurm answers a head node's commands, within their limits",
)
COMMANDS = Hook(target="ministack.services.ssm:_commands", parameters=None, why="the limits of a command")
STACKS = Hook(
    target="ministack.services.cloudformation:_stacks",
    parameters=None,
    why="a stack's deletion waits for the stack's current operation",
)
DELETE_STACK = Hook(
    target="ministack.services.cloudformation.handlers:_delete_stack_async",
    parameters=("stack_name", "stack_id", "retain_resources", "force"),
    why="a stack that is deleted during its creation would be created nevertheless",
)
EXECUTE_CHANGE_SET = Hook(
    target="ministack.services.cloudformation.changesets:_deploy_stack_async",
    parameters=tuple(
        "stack_name stack_id template param_values disable_rollback tags is_update previous_stack "
        "retain_except_on_create imports".split()
    ),
    why="a stack that the CDK CLI deploys is described by its template's Description",
)
IMPORTED_EXPORTS = Hook(
    target="ministack.services.cloudformation.handlers:_imported_export_names",
    parameters=("stack", "stack_name"),
    why="the stacks that use an export",
)
STACK_OUTPUTS = Hook(
    target="ministack.services.cloudformation.stacks:_resolve_stack_outputs",
    parameters=tuple("outputs_defs conditions resources param_values mappings stack_name stack_id".split()),
    why="an export in use cannot change",
)
CREATE_CUSTOM_RESOURCE = Hook(
    target="ministack.services.cloudformation.provisioners:_custom_resource_create",
    parameters=("logical_id", "props", "stack_name", "resource_type"),
    why="a resource whose Create failed gets no Delete",
)
DELETE_CUSTOM_RESOURCE = Hook(
    target="ministack.services.cloudformation.provisioners:_custom_resource_delete",
    parameters=("physical_id", "props", "stack_name", "logical_id", "resource_type"),
    why="sends the Delete of a resource whose Create failed",
)
CUSTOM_RESOURCE_ANSWER = Hook(
    target="ministack.services.cloudformation.custom_resource:deliver_response",
    parameters=("token", "response"),
    why="the Delete carries the PhysicalResourceId of the failed answer",
)
ROLL_BACK = Hook(
    target="ministack.services.cloudformation.handlers:_roll_back_operation",
    parameters=("stack_name", "stack_id", "stack", "operation", "reason_override"),
    why="a stack that failed with rollback disabled still has to send its failed custom resources a Delete",
)
RESOURCE_HANDLERS = Hook(
    target="ministack.services.cloudformation.provisioners:_RESOURCE_HANDLERS",
    parameters=None,
    why="resource types that are backed by moto",
)
PARAMETER_VALUE = Hook(
    target="ministack.services.ssm:resolve_parameter_value",
    parameters=("name_or_arn", "version", "decrypt"),
    why="AWS's error for a missing SSM parameter has another message",
)
DATABASE_SUBNETS = Hook(
    target="ministack.services.rds:_resolve_subnet_group_members",
    parameters=("subnet_ids",),
    why="a database's subnets are moto's",
)
LOAD_BALANCERS = Hook(
    target="ministack.services.alb:_lbs", parameters=None, why="ARN and VPC of a network load balancer"
)
LOAD_BALANCER_TAGS = Hook(
    target="ministack.services.alb:_tags", parameters=None, why="the Tagging API must find load balancers"
)
LOAD_BALANCER_ATTRIBUTES = Hook(
    target="ministack.services.alb:_lb_attrs", parameters=None, why="attributes are stored by the ARN"
)
TAG_COLLECTORS = Hook(
    target="ministack.services.tagging:_COLLECTORS",
    parameters=None,
    why="ParallelCluster finds a pool's load balancer through the Tagging API",
)
SCALING_GROUPS = Hook(
    target="ministack.services.autoscaling:_asgs", parameters=None, why="a group's instances are moto's"
)
