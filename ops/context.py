"""Reads the context flags from the same sources as the CDK CLI."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from training_cluster.flags.file import with_flags_file
from training_cluster.paths import ROOT
from training_cluster.problems import ConfigurationError


def read_context(pairs: Iterable[str], *, folder: Path = ROOT, home: Path | None = None) -> dict[str, Any]:
    """Merge the file of flags, ~/.cdk.json, cdk.context.json, cdk.json and FLAG=VALUE pairs; later ones win.

    Raises:
        ConfigurationError: a pair without "=", a file that is not JSON, or an unusable file of flags.
    """
    context: dict[str, Any] = {}
    context |= _json((home or Path.home()) / ".cdk.json").get("context", {})
    context |= _json(folder / "cdk.context.json")
    context |= _json(folder / "cdk.json").get("context", {})
    for pair in pairs:
        flag, equals, value = pair.partition("=")
        if not (flag and equals):
            raise ConfigurationError(f'"{pair}" is not FLAG=VALUE\n  type:   -c {flag or "family"}=...')
        context[flag] = value
    return with_flags_file(context)


def _json(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ConfigurationError(f"{path}: not valid JSON: {error}") from None
    return read if isinstance(read, dict) else {}
