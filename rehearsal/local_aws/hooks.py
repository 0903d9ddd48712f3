"""Every place where we reach into ministack and moto. None is their public API.

Both are pinned exactly; `moved()` compares each hook with what was read when it was written, so an
upgrade says which one moved instead of failing somewhere in a deploy.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Hook:
    """One attribute of theirs that we read or replace."""

    target: str
    """`module:attribute.path`"""
    parameters: tuple[str, ...] | None
    """Names of its parameters; None for what is no function."""
    why: str


class HookMovedError(Exception):
    """A hook is not where it was: the emulator's version changed."""


LAMBDA_BINARY = Hook(
    target="ministack.core.lambda_runtime:_detect_runtime_binary",
    parameters=("runtime",),
    why="Python functions run with .venv-pcluster, and /opt means their layers",
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

HOOKS = tuple(value for value in list(globals().values()) if isinstance(value, Hook))


def _owner(hook: Hook) -> tuple[Any, str]:
    module, _, path = hook.target.partition(":")
    *parents, name = path.split(".")
    owner = importlib.import_module(module)
    for parent in parents:
        owner = getattr(owner, parent)
    return owner, name


def find(hook: Hook) -> Any:
    """Return what the hook names.

    Raises:
        HookMovedError: it is not there, or takes other parameters.
    """
    try:
        owner, name = _owner(hook)
        found = getattr(owner, name)
    except (ImportError, AttributeError) as error:
        raise HookMovedError(f"{hook.target} is gone ({error}); we need it: {hook.why}") from None
    if hook.parameters is not None:
        parameters = tuple(inspect.signature(inspect.unwrap(found)).parameters)
        if parameters != hook.parameters:
            raise HookMovedError(f"{hook.target} takes {parameters}, not {hook.parameters}; {hook.why}")
    return found


def replace(hook: Hook, make: Callable[[Any], Any]) -> None:
    """Put `make(original)` in the hook's place."""
    original = find(hook)
    owner, name = _owner(hook)
    was_static = isinstance(inspect.getattr_static(owner, name), staticmethod)
    replacement = make(original)
    setattr(owner, name, staticmethod(replacement) if was_static else replacement)


def moved() -> list[str]:
    """Return one sentence for each hook that is not where it was."""
    sentences = []
    for hook in HOOKS:
        try:
            find(hook)
        except HookMovedError as error:
            sentences.append(str(error))
    return sentences
