"""Hooks into ministack, none of which is its public API; above each, what it is for."""

from rehearsal.local_aws.emulators.hooks import Hook

# Python functions run with .venv-pcluster, and /opt leads to their layers.
LAMBDA_BINARY = Hook("ministack.core.lambda_runtime:_detect_runtime_binary(runtime)")
# Each function signs with a session of its role, whose access key nobody can guess.
FUNCTION_CREDENTIALS = Hook("ministack.core.lambda_runtime:execution_credentials(config)")
# Sessions of functions' roles.
REGISTER_SESSION = Hook("ministack.services.sts:register_session(access_key, session)")
# Judges calls by the policies of roles, boundaries and resources.
ENFORCE = Hook(
    "ministack.core.iam_evaluator:enforce(access_key_id, iam_action, service, region, resource_arn, "
    "service_context)"
)
# The policies of a denied caller, for the message.
PRINCIPAL = Hook("ministack.core.iam_evaluator:resolve_principal(access_key_id, account_id, credential)")
# Conditions of buckets' policies ask for TLS.
REQUEST_ORIGIN = Hook("ministack.core.iam_evaluator:pin_request_origin(source_ip, secure_transport)")
# The name that ministack gives to a request's service, for its rights.
REQUEST_SERVICE = Hook("ministack.core.router:detect_service(method, path, headers, query_params)")
# The action that a request needs.
REQUEST_ACTION = Hook(
    "ministack.core.iam_actions:extract_iam_action(service, method, path, headers, body, query_params)"
)
# The resource that a request is for.
REQUEST_RESOURCE = Hook(
    "ministack.core.iam_actions:extract_resource_arn(service, method, path, headers, body, query_params, "
    "region, account_id)"
)
# Conditions on the tags of a request.
REQUEST_TAGS = Hook("ministack.core.iam_actions:request_tag_context(service, iam_action, body, params)")
# Further rights of copies and batch deletions.
S3_CHECKS = Hook("ministack.core.iam_actions:s3_additional_checks(method, path, headers, body, query_params)")
# A stack's resources are made with the rights of its caller.
CREATE_RESOURCE, UPDATE_RESOURCE, DELETE_RESOURCE = (
    tuple(
        Hook(f"ministack.services.cloudformation.{module}:{called}") for module in ("stacks", "provisioners")
    )
    for called in (
        "_provision_resource(resource_type, logical_id, props, stack_name)",
        "_update_resource(resource_type, physical_id, old_props, new_props, stack_name, logical_id, "
        "old_attrs)",
        "_delete_resource(resource_type, physical_id, props, stack_name, logical_id)",
    )
)
# Only the access key of this start is accepted.
REQUEST_KEY = Hook("ministack.core.router:extract_access_key_id(headers, query_params)")
# The access keys of assumed roles are accepted as well.
SESSIONS = Hook("ministack.services.sts:_sessions")
# An unknown access key is refused in the service's own protocol.
REFUSAL = Hook(
    "ministack.core.iam_actions:access_denied_response(service, action, principal_arn, request_id, "
    "error_code, message, headers, resource_arn, explicit_deny, resource_policy_arn)"
)
# ParallelCluster passes TemplateURL as a virtual-host address, which ministack only documents.
TEMPLATE_URL = Hook(
    "ministack.services.cloudformation.helpers:_resolve_document(params, body_key, url_key, label)"
)
# One resource is created at a time: a WaitCondition must not block the instance that signals it.
CREATION_ORDER = Hook("ministack.services.cloudformation.stacks:_topological_sort(resources, conditions)")
# Run Command reaches head nodes, which are moto's.
MANAGED_INSTANCES = Hook("ministack.services.ssm:_managed_instance_ids()")
# The local Slurm answers a head node's commands, within their limits.
FINISH_INVOCATION = Hook("ministack.services.ssm:_finish_invocation(command_id, instance_id, argv)")
# The limits of a command.
COMMANDS = Hook("ministack.services.ssm:_commands")
# A stack's deletion waits for the stack's current operation.
STACKS = Hook("ministack.services.cloudformation:_stacks")
# A stack that is deleted during its creation would be created nevertheless.
DELETE_STACK = Hook(
    "ministack.services.cloudformation.handlers:_delete_stack_async(stack_name, stack_id, "
    "retain_resources, force)"
)
# A stack that the CDK CLI deploys is described by its template's Description.
EXECUTE_CHANGE_SET = Hook(
    "ministack.services.cloudformation.changesets:_deploy_stack_async(stack_name, stack_id, template, "
    "param_values, disable_rollback, tags, is_update, previous_stack, retain_except_on_create, imports)"
)
# The stacks that use an export.
IMPORTED_EXPORTS = Hook(
    "ministack.services.cloudformation.handlers:_imported_export_names(stack, stack_name)"
)
# An export in use cannot change.
STACK_OUTPUTS = Hook(
    "ministack.services.cloudformation.stacks:_resolve_stack_outputs(outputs_defs, conditions, "
    "resources, param_values, mappings, stack_name, stack_id)"
)
# A resource whose Create failed gets no Delete.
CREATE_CUSTOM_RESOURCE = Hook(
    "ministack.services.cloudformation.provisioners:_custom_resource_create(logical_id, props, "
    "stack_name, resource_type)"
)
# Sends the Delete of a resource whose Create failed.
DELETE_CUSTOM_RESOURCE = Hook(
    "ministack.services.cloudformation.provisioners:_custom_resource_delete(physical_id, props, "
    "stack_name, logical_id, resource_type)"
)
# The Delete carries the PhysicalResourceId of the failed answer.
CUSTOM_RESOURCE_ANSWER = Hook(
    "ministack.services.cloudformation.custom_resource:deliver_response(token, response)"
)
# A stack that failed with rollback disabled still has to send its failed custom resources a Delete.
ROLL_BACK = Hook(
    "ministack.services.cloudformation.handlers:_roll_back_operation(stack_name, stack_id, stack, "
    "operation, reason_override)"
)
# Resource types that are backed by moto.
RESOURCE_HANDLERS = Hook("ministack.services.cloudformation.provisioners:_RESOURCE_HANDLERS")
# AWS's error for a missing SSM parameter has another message.
PARAMETER_VALUE = Hook("ministack.services.ssm:resolve_parameter_value(name_or_arn, version, decrypt)")
# A database's subnets are moto's.
DATABASE_SUBNETS = Hook("ministack.services.rds:_resolve_subnet_group_members(subnet_ids)")
# ARN and VPC of a network load balancer.
LOAD_BALANCERS = Hook("ministack.services.alb:_lbs")
# The Tagging API must find load balancers.
LOAD_BALANCER_TAGS = Hook("ministack.services.alb:_tags")
# Attributes are stored by the ARN.
LOAD_BALANCER_ATTRIBUTES = Hook("ministack.services.alb:_lb_attrs")
# ParallelCluster finds a pool's load balancer through the Tagging API.
TAG_COLLECTORS = Hook("ministack.services.tagging:_COLLECTORS")
# A group's instances are moto's.
SCALING_GROUPS = Hook("ministack.services.autoscaling:_asgs")
# The resource type of a group's members, which ministack reads from their ARNs.
GROUPED_TYPE = Hook("ministack.services.resource_groups:_resource_type_from_arn(arn)")
