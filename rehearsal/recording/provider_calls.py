"""Calls of AWS in the provider's own source, without calls of the library that it uses (pure)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import botocore.session
from botocore import xform_name

from training_cluster.paths import ROOT

CODE = ROOT / "assets" / "cluster_provider"
# Actions that are not named as their operations are. Source: the Service Authorization Reference.
_ACTIONS = {"s3:ListObjectsV2": "s3:ListBucket"}


def provider_calls(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield file, operation and IAM action of every call, in order.

    A call is a method, or a paginator, with the name of an operation of a service for which the file has a
    client.
    """
    session = botocore.session.get_session()
    for path in sorted(folder.glob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        methods = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        called = methods | _arguments(nodes, "get_paginator")
        for service in sorted(_arguments(nodes, "client")):
            model = session.get_service_model(service)
            for operation in model.operation_names:
                if xform_name(operation) in called:
                    action = f"{model.signing_name}:{operation}"
                    yield path.name, operation, _ACTIONS.get(action, action)


def _arguments(nodes: list[ast.AST], method: str) -> set[str]:
    """Return the texts that are the first argument in calls of a method."""
    return {
        node.args[0].value
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == method
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    }
