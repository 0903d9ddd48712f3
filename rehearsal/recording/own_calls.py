"""Pure: the calls of AWS that the provider's own source makes, beside those of the library that it drives."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import botocore.session
from botocore import xform_name


def own_calls(folder: Path) -> Iterator[tuple[str, str, str]]:
    """File, service and operation of every call, in order.

    A call is a method, or a paginator, named as an operation of a service of which the file has a client.
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
                    yield path.name, model.signing_name, operation


def _arguments(nodes: list[ast.AST], method: str) -> set[str]:
    """The words that a method is called with, as its first argument."""
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
