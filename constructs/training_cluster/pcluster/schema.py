"""Check of a cluster config against ParallelCluster's own schema, at synth and offline.

The library cannot be installed with the app (docs/mechanisms/flag-to-node.md), so the app has its schema:
pcluster_config.schema.json, which `make schema` exports. It has keys, types and the rules of single values.
Rules between keys are code in the library ("x-rules-in-code"), which checks them itself;
tests/unit/training_cluster/pcluster/schema_cases.yaml has an example of each.
"""

import copy
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator

from training_cluster.problems import did_you_mean

SCHEMA = Path(__file__).with_name("pcluster_config.schema.json")

# In the order of the search, since JSON Schema takes an integer as a number, too.
_TYPES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "nothing",
    "number": "a number",
    "object": "keys with values",
    "string": "text",
}


@cache
def _validator() -> Validator:
    return Draft202012Validator(json.loads(SCHEMA.read_text()))


def _dotted(path: Iterable[str | int]) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def _shown(value: object) -> str:
    return json.dumps(value, default=str)


def _found(value: object) -> str:
    is_type = Draft202012Validator.TYPE_CHECKER.is_type
    words = next((words for name, words in _TYPES.items() if is_type(value, name)), type(value).__name__)
    return words if isinstance(value, list | dict | None) else f"{words} ({_shown(value)})"


def _limits(schema: Mapping[str, Any], of: str) -> str:
    """Return "at least 1", "at most 128", "1" or "2 to 5": the keywords min<of> and max<of>."""
    low, high = schema.get(f"min{of}"), schema.get(f"max{of}")
    if high is None:
        return f"at least {low}"
    if low is None:
        return f"at most {high}"
    return f"{low}" if low == high else f"{low} to {high}"


def _complaint(error: ValidationError) -> str:
    """Describe the mistake in one value, and the allowed values."""
    value, rule, schema = error.instance, error.validator_value, error.schema
    match error.validator:
        case "type":
            allowed = [rule] if isinstance(rule, str) else rule
            return f"expected {' or '.join(_TYPES[name] for name in allowed)}, found {_found(value)}"
        case "enum":
            hint = did_you_mean(value, map(str, rule)) if isinstance(value, str) else ""
            return f"{_shown(value)} is not allowed.{hint} Allowed: {', '.join(map(str, rule))}"
        case "pattern":
            return f"{_shown(value)} is not {schema.get('x-allowed', f'of the form {rule}')}"
        case "minimum" | "maximum":
            return f"{value} is not allowed. Allowed: {_limits(schema, 'imum')}"
        case "minLength" | "maxLength":
            return f"{len(value)} characters. Allowed: {_limits(schema, 'Length')}"
        case "minItems" | "maxItems":
            return f"{len(value)} entries. Allowed: {_limits(schema, 'Items')}"
    raise NotImplementedError(f"{error.validator}: the exported schema never used this keyword")


def _sentences(error: ValidationError) -> Iterator[str]:
    """Yield one sentence for each key or value of an error."""
    where, schema = list(error.absolute_path), error.schema
    match error.validator:
        case "additionalProperties":
            known = schema["properties"]
            allowed = schema.get("x-allowed", ", ".join(sorted(known)))
            for key in error.instance:
                if key not in known:
                    hint = did_you_mean(str(key), known)
                    yield f"{_dotted([*where, key])}: no such key.{hint} Allowed: {allowed}"
        case "required":
            for key in error.validator_value:
                if key not in error.instance:
                    yield f"{_dotted([*where, key])}: required, but missing"
        case "type" if "enum" in schema:
            pass  # The error about the choices reports it.
        case _:
            yield f"{_dotted(where) or 'The config'}: {_complaint(error)}"


def with_types(config: Mapping[str, object]) -> dict[str, Any]:
    """Return a config with numbers and truth values in place of text such as "8", as the library reads it."""
    typed = copy.deepcopy(dict(config))
    for path, text, schema in misread(config):
        value = _read(text, schema.get("type"))
        if value is not None:
            *parents, key = path
            within: Any = typed
            for each in parents:
                within = within[each]
            within[key] = value
    return typed


def misread(config: Mapping[str, object]) -> list[tuple[list[str | int], str, Mapping[str, Any]]]:
    """Return path, text and schema of each text where the schema takes another type or form of value."""
    return [
        (list(error.absolute_path), error.instance, error.schema)
        for error in _validator().iter_errors(dict(config))
        if isinstance(error.instance, str) and error.schema.get("type") not in ("object", "array")
    ]


def is_valid(value: object, schema: Mapping[str, Any]) -> bool:
    """Return True for a value that a part of the schema takes."""
    return bool(Draft202012Validator(schema).is_valid(value))


def _read(text: str, kind: object) -> bool | float | None:
    """Return the value that marshmallow reads from a text for a type of the schema; None if it reads none."""
    try:
        match kind:
            case "integer":
                return int(text)
            case "number":
                return float(text)
            case "boolean":
                return {"true": True, "false": False}[text.lower()]
    except (ValueError, KeyError):
        pass
    return None


def schema_problems(config: Mapping[str, object]) -> list[str]:
    """Return one sentence for each key or value that ParallelCluster's schema refuses, sorted by path.

    It is stricter than the library in one way: a value must have its type, so "5" is not a whole number.
    """
    errors = sorted(_validator().iter_errors(dict(config)), key=lambda error: list(error.absolute_path))
    # Each missing key of an object is a separate error, and each such error yields all of the keys.
    return list(dict.fromkeys(sentence for error in errors for sentence in _sentences(error)))
