"""Every place where we reach into ministack and moto. None is their public API.

Both are pinned exactly; `moved()` compares each hook with what was read when it was written, so an
upgrade says which one moved instead of failing somewhere in a deploy.
"""

from __future__ import annotations

from rehearsal.local_aws.emulators.hook import Hook, HookMovedError, find, replace

__all__ = ["HOOKS", "Hook", "HookMovedError", "find", "moved", "replace"]

LAMBDA_BINARY = Hook(
    target="ministack.core.lambda_runtime:_detect_runtime_binary",
    parameters=("runtime",),
    why="Python functions run with .venv-pcluster, and /opt means their layers",
)
LAMBDA_WORKERS_END = Hook(
    target="ministack.core.lambda_runtime:invalidate_worker",
    parameters=("func_name", "qualifier", "account", "region"),
    why="a deleted function ends its process; each cluster of a long run would leave some behind",
)
FUNCTION_CREDENTIALS = Hook(
    target="ministack.core.lambda_runtime:execution_credentials",
    parameters=("config",),
    why="functions sign with the account's number, which every user of the machine knows",
)
REQUEST_KEY = Hook(
    target="ministack.core.router:extract_access_key_id",
    parameters=("headers", "query_params"),
    why="only the access key of this start is taken",
)
SESSIONS = Hook(
    target="ministack.services.sts:_sessions",
    parameters=None,
    why="the access keys of assumed roles are taken, too",
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
    why="a function whose code is not in the bucket is refused, where it would be made and never answer",
)
TEMPLATE_URL = Hook(
    target="ministack.services.cloudformation.helpers:_resolve_document",
    parameters=("params", "body_key", "url_key", "label"),
    why="ParallelCluster gives TemplateURL as a virtual-host address, which is only documented there",
)
CREATION_ORDER = Hook(
    target="ministack.services.cloudformation.stacks:_topological_sort",
    parameters=("resources", "conditions"),
    why="one resource is created at a time: a WaitCondition must not block the instance that signals it",
)
DEPENDENCIES = Hook(
    target="ministack.services.cloudformation.engine:_extract_deps",
    parameters=("resource_def", "all_resource_names"),
    why="to move what depends on a WaitCondition behind it",
)
MANAGED_INSTANCES = Hook(
    target="ministack.services.ssm:_managed_instance_ids",
    parameters=(),
    why="Run Command reaches head nodes, which are moto's",
)
FINISH_INVOCATION = Hook(
    target="ministack.services.ssm:_finish_invocation",
    parameters=("command_id", "instance_id", "argv"),
    why="the local Slurm answers what a head node is asked, within the command's limits",
)
COMMANDS = Hook(target="ministack.services.ssm:_commands", parameters=None, why="the limits of a command")
SSM_REQUESTS = Hook(
    target="ministack.services.ssm:handle_request",
    parameters=("method", "path", "headers", "body", "query_params"),
    why="CancelCommand, which it has not",
)
STACKS = Hook(
    target="ministack.services.cloudformation:_stacks",
    parameters=None,
    why="a stack's deletion waits for what the stack is at",
)
DELETE_STACK = Hook(
    target="ministack.services.cloudformation.handlers:_delete_stack_async",
    parameters=("stack_name", "stack_id", "retain_resources", "force"),
    why="a stack that is deleted while it is being made would be made all the same",
)
EXPORTS = Hook(
    target="ministack.services.cloudformation:_exports", parameters=None, why="what a stack exported before"
)
IMPORTED_EXPORTS = Hook(
    target="ministack.services.cloudformation.handlers:_imported_export_names",
    parameters=("stack", "stack_name"),
    why="whether an export is in use",
)
STACK_OUTPUTS = Hook(
    target="ministack.services.cloudformation.stacks:_resolve_stack_outputs",
    parameters=tuple("outputs_defs conditions resources param_values mappings stack_name stack_id".split()),
    why="an export in use cannot change",
)
CREATE_CUSTOM_RESOURCE = Hook(
    target="ministack.services.cloudformation.provisioners:_custom_resource_create",
    parameters=("logical_id", "props", "stack_name", "resource_type"),
    why="one whose Create failed gets no Delete",
)
DELETE_CUSTOM_RESOURCE = Hook(
    target="ministack.services.cloudformation.provisioners:_custom_resource_delete",
    parameters=("physical_id", "props", "stack_name", "logical_id", "resource_type"),
    why="to send that Delete",
)
CUSTOM_RESOURCE_ANSWER = Hook(
    target="ministack.services.cloudformation.custom_resource:deliver_response",
    parameters=("token", "response"),
    why="the Delete carries the PhysicalResourceId of the failed answer",
)
ROLL_BACK = Hook(
    target="ministack.services.cloudformation.handlers:_roll_back_operation",
    parameters=("stack_name", "stack_id", "stack", "operation", "reason_override"),
    why="a stack that failed with rollback disabled owes its failed custom resources their Delete",
)
WAIT_CONDITION = Hook(
    target="ministack.services.cloudformation.wait_conditions:wait_for",
    parameters=("token", "stack_id", "stack_name", "logical_id", "resource_type", "count", "timeout_s"),
    why="the stand-in for the head node boots when its WaitCondition starts to wait",
)
SIGNAL = Hook(
    target="ministack.services.cloudformation.wait_conditions:deliver_signal",
    parameters=("token", "payload"),
    why="the stand-in for the head node signals",
)
RESOURCE_HANDLERS = Hook(
    target="ministack.services.cloudformation.provisioners:_RESOURCE_HANDLERS",
    parameters=None,
    why="resource types that are backed by moto",
)
ASGI_APP = Hook(
    target="ministack.app:app", parameters=("scope", "receive", "send"), why="the application behind our port"
)
MOTO_MODELS = Hook(
    target="moto.cloudformation.parsing:get_model_map",
    parameters=(),
    why="moto's CloudFormation resource types",
)
MOTO_NAMES = Hook(
    target="moto.cloudformation.parsing:generate_resource_name",
    parameters=("resource_type", "stack_name", "logical_id"),
    why="names of resources whose template gives none",
)
MOTO_BLOCK_DEVICES = Hook(
    target="moto.ec2.responses.instances:InstanceResponse._validate_block_device_mapping",
    parameters=("device_mapping",),
    why="dry-run RunInstances must accept instance stores, and root volumes without a size",
)
MOTO_FILE_SYSTEM = Hook(
    target="moto.fsx.models:FileSystem.to_dict",
    parameters=("self",),
    why="DescribeFileSystems lacks lifecycle, VPC, interfaces and version",
)
MOTO_FILE_SYSTEMS = Hook(
    target="moto.fsx.models:FSxBackend.create_file_system",
    parameters=(
        "self",
        "client_request_token",
        "file_system_type",
        "storage_capacity",
        "storage_type",
        "subnet_ids",
        "security_group_ids",
        "tags",
        "kms_key_id",
        "windows_configuration",
        "lustre_configuration",
        "ontap_configuration",
        "file_system_type_version",
        "open_zfs_configuration",
    ),
    why="AWS::FSx::FileSystem",
)
MOTO_ACTION_RESULT = Hook(
    target="moto.core.responses:ActionResult",
    parameters=("result",),
    why="the answer of an action that we add",
)
MOTO_EC2_ERROR = Hook(
    target="moto.ec2.exceptions:EC2ClientError",
    parameters=("args", "kwargs"),
    why="the errors of EC2 actions that we add",
)
MOTO_EC2_ACTIONS = Hook(
    target="moto.ec2.responses:EC2Response",
    parameters=(),
    why="placement groups and capacity reservations, which moto has not; RegisterImage, which drops most",
)
MOTO_EC2_PARAMETER = Hook(
    target="moto.ec2.responses:EC2Response._get_param",
    parameters=("self", "param_name", "if_none"),
    why="the parameters of EC2 actions that we add",
)
MOTO_EC2_FILTERS = Hook(
    target="moto.ec2.responses:EC2Response._filters_from_querystring",
    parameters=("self",),
    why="the filters of EC2 actions that we add",
)
MOTO_ID_PREFIXES = Hook(
    target="moto.ec2.utils:EC2_RESOURCE_TO_PREFIX",
    parameters=None,
    why="CreateTags refuses ids of unknown types",
)
MOTO_ID_TYPES = Hook(
    target="moto.ec2.utils:EC2_PREFIX_TO_RESOURCE", parameters=None, why="DescribeTags names an id's type"
)
MOTO_EFS_BACKUP = Hook(
    target="moto.efs.models:FileSystem.backup_policy",
    parameters=None,
    why="it reads _backup, which a change of a template's BackupPolicy sets",
)
MOTO_EFS_IDS = Hook(
    target="moto.efs.models:mock_random",
    parameters=None,
    why="EFS's ids have 8 digits there; ParallelCluster's schema wants AWS's 17",
)
MOTO_IMAGE_BLOCK_DEVICES = Hook(
    target="moto.ec2.models.amis:Ami.block_device_mappings",
    parameters=None,
    why="images have 15 GiB there; ParallelCluster's have 35",
)
MOTO_IMAGE = Hook(
    target="moto.ec2.models.amis:Ami",
    parameters=None,
    why="DescribeImages lacks EnaSupport, which nodes need",
)
MOTO_JSON_ERROR = Hook(
    target="moto.core.exceptions:JsonRESTError",
    parameters=("error_type", "message", "_", "kwargs"),
    why="the errors of actions of FSx and Service Quotas that we add",
)
MOTO_FSX_ACTIONS = Hook(
    target="moto.fsx.responses:FSxResponse",
    parameters=(),
    why="data repository associations, which moto has not; unknown file systems are an error on AWS",
)
MOTO_QUOTA_ACTIONS = Hook(
    target="moto.servicequotas.responses:ServiceQuotasResponse",
    parameters=(),
    why="quotas of other services than VPC, and increases",
)
MOTO_DELETE_FILE_SYSTEM = Hook(
    target="moto.fsx.models:FSxBackend.delete_file_system",
    parameters=(
        "self",
        "file_system_id",
        "client_request_token",
        "windows_configuration",
        "lustre_configuration",
        "open_zfs_configuration",
    ),
    why="its network interfaces and associations go with it",
)
TEMPLATE_PARAMETERS = tuple(
    Hook(
        target=f"ministack.services.cloudformation.{module}:_resolve_parameters",
        parameters=("template", "provided_params", "previous_params"),
        why="the error for an SSM parameter that is not there has other words on AWS",
    )
    for module in ("changesets", "handlers")
)
DATABASE_SUBNETS = Hook(
    target="ministack.services.rds:_resolve_subnet_group_members",
    parameters=("subnet_ids",),
    why="a database's subnets are moto's",
)
DATABASE_CLUSTERS = Hook(
    target="ministack.services.rds:_clusters", parameters=None, why="DeletionProtection of a cluster"
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
    target="ministack.services.alb:_lb_attrs", parameters=None, why="they are kept by the ARN"
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
    why="the document of an Image Builder component may lie in a bucket",
)
CREATE_BUDGET = Hook(
    target="ministack.services.budgets:_create_budget", parameters=("data",), why="AWS::Budgets::Budget"
)
DELETE_BUDGET = Hook(
    target="ministack.services.budgets:_delete_budget", parameters=("data",), why="AWS::Budgets::Budget"
)

HOOKS = tuple(
    hook
    for value in list(globals().values())
    for hook in (value if isinstance(value, tuple) else (value,))
    if isinstance(hook, Hook)
)


def moved() -> list[str]:
    """Return one sentence for each hook that is not where it was."""
    sentences = []
    for hook in HOOKS:
        try:
            find(hook)
        except HookMovedError as error:
            sentences.append(str(error))
    return sentences
