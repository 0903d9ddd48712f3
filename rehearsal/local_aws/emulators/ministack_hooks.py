"""Hooks into ministack, none of which is its public API."""

from rehearsal.local_aws.emulators.hook import Hook

LAMBDA_BINARY = Hook(
    target="ministack.core.lambda_runtime:_detect_runtime_binary",
    parameters=("runtime",),
    why="Python functions run with .venv-pcluster, and /opt leads to their layers",
)
LAMBDA_WORKERS_END = Hook(
    target="ministack.core.lambda_runtime:invalidate_worker",
    parameters=("func_name", "qualifier", "account", "region"),
    why="a deleted function's process has to end; in a long run each cluster would leave some behind",
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
REQUEST_PARAMETERS = Hook(
    target="ministack.app:_routing_params",
    parameters=("method", "path", "headers", "body", "query_params"),
    why="parameters of a request, for its rights",
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
ROLES = Hook(target="ministack.services.iam:_roles", parameters=None, why="a role's path and boundary")
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
LAMBDA_CODE = Hook(
    target="ministack.services.lambda_svc:_fetch_code_from_s3",
    parameters=("bucket", "key", "version_id"),
    why="a function without its code in the bucket is refused; it would be created and never answer",
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
SSM_REQUESTS = Hook(
    target="ministack.services.ssm:handle_request",
    parameters=("method", "path", "headers", "body", "query_params"),
    why="it lacks CancelCommand",
)
TABLES = Hook(
    target="ministack.services.dynamodb:_tables",
    parameters=None,
    why="CloudFormation would delete a table that is protected against deletion",
)
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
EXPORTS = Hook(
    target="ministack.services.cloudformation:_exports", parameters=None, why="a stack's former exports"
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
WAIT_CONDITION = Hook(
    target="ministack.services.cloudformation.wait_conditions:wait_for",
    parameters=("token", "stack_id", "stack_name", "logical_id", "resource_type", "count", "timeout_s"),
    why="the emulated head node boots when its WaitCondition starts to wait",
)
SIGNAL = Hook(
    target="ministack.services.cloudformation.wait_conditions:deliver_signal",
    parameters=("token", "payload"),
    why="the emulated head node signals",
)
RESOURCE_HANDLERS = Hook(
    target="ministack.services.cloudformation.provisioners:_RESOURCE_HANDLERS",
    parameters=None,
    why="resource types that are backed by moto",
)
ASGI_APP = Hook(
    target="ministack.app:app", parameters=("scope", "receive", "send"), why="the application behind our port"
)
TEMPLATE_PARAMETERS = tuple(
    Hook(
        target=f"ministack.services.cloudformation.{module}:_resolve_parameters",
        parameters=("template", "provided_params", "previous_params"),
        why="AWS's error for a missing SSM parameter has another message",
    )
    for module in ("changesets", "handlers")
)
DATABASE_SUBNETS = Hook(
    target="ministack.services.rds:_resolve_subnet_group_members",
    parameters=("subnet_ids",),
    why="a database's subnets are moto's",
)
DATABASE_CLUSTERS = Hook(
    target="ministack.services.rds:_clusters", parameters=None, why="a cluster's DeletionProtection"
)
SECRETS = Hook(
    target="ministack.services.secretsmanager:_secrets", parameters=None, why="a secret's name by its ARN"
)
SECRET_STRING = Hook(
    target="ministack.services.cloudformation.provisioners:_sm_secret_string",
    parameters=("props",),
    why="ExcludePunctuation and the like are ignored",
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
TARGETS = Hook(
    target="ministack.services.alb:_targets", parameters=None, why="login nodes are their pool's targets"
)
TAG_COLLECTORS = Hook(
    target="ministack.services.tagging:_COLLECTORS",
    parameters=None,
    why="ParallelCluster finds a pool's load balancer through the Tagging API",
)
SCALING_GROUPS = Hook(
    target="ministack.services.autoscaling:_asgs", parameters=None, why="a group's instances are moto's"
)
LIFECYCLE_HOOKS = Hook(
    target="ministack.services.autoscaling:_hooks",
    parameters=None,
    why="LifecycleHookSpecificationList is ignored",
)
LIFECYCLE_HOOK = Hook(
    target="ministack.services.autoscaling:_hook_record",
    parameters=("asg_name", "hook_name", "fields"),
    why="LifecycleHookSpecificationList is ignored",
)
PUT_PARAMETER = Hook(
    target="ministack.services.ssm:_put_parameter",
    parameters=("data",),
    why="Image Builder publishes an AMI's id",
)
INSTANCE_PROFILES = Hook(
    target="ministack.services.iam:_instance_profiles",
    parameters=None,
    why="Image Builder's instances have one",
)
OBJECT_DATA = Hook(
    target="ministack.services.s3:_get_object_data",
    parameters=("bucket_name", "key", "version_id"),
    why="the document of an Image Builder component may be in a bucket",
)
CREATE_BUDGET = Hook(
    target="ministack.services.budgets:_create_budget", parameters=("data",), why="AWS::Budgets::Budget"
)
DELETE_BUDGET = Hook(
    target="ministack.services.budgets:_delete_budget", parameters=("data",), why="AWS::Budgets::Budget"
)
LOG_GROUPS = Hook(
    target="ministack.services.cloudwatch_logs:_log_groups",
    parameters=None,
    why="CloudFormation refuses a function's log group that exists",
)
