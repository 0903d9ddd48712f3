"""Templates of the app, synthesised once per family for the tests that read them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from training_cluster.paths import ROOT

if TYPE_CHECKING:
    from aws_cdk.assertions import Template

# ministack writes a key when it is imported, by default to /tmp.
os.environ["STATE_DIR"] = str(ROOT / ".cache" / "ministack")
Templates: TypeAlias = "dict[str, Template]"


@cache
def _synthesise(flags: tuple[tuple[str, str], ...]) -> Templates:
    # Importing the CDK takes three seconds of CPU, and most tests do not need it.
    import aws_cdk as cdk  # noqa: PLC0415
    from aws_cdk.assertions import Template  # noqa: PLC0415

    from stacks.composition import add_stacks  # noqa: PLC0415
    from training_cluster.rules.context import read_settings  # noqa: PLC0415

    context: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]
    app = cdk.App(context=context)
    stacks = add_stacks(app, read_settings(dict(flags)))
    return {stack.node.id: Template.from_stack(stack) for stack in stacks}


@pytest.fixture(scope="session")
def synthesise() -> Callable[..., Templates]:
    """Return templates by stack id, for context flags given as keywords."""
    return lambda **flags: _synthesise(tuple(sorted(flags.items())))
