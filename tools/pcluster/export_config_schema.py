"""`make schema`: print ParallelCluster's own marshmallow schema as a JSON Schema.

It runs on .venv-pcluster and imports no module of the app: that cannot import the library
(docs/mechanisms/flag-to-node.md), but `cdk synth` has to refuse what the library would refuse. apispec is
not used, since it drops unknown-key rules, `And`, functions as validators and the update policies. An unknown
kind of field or rule is an error.

    .venv-pcluster/bin/python -m tools.pcluster.export_config_schema
"""

import json
import re
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from typing import Any

from marshmallow import RAISE, Schema, fields, validate
from pcluster.schemas.cluster_schema import ClusterSchema, OneOrManyCustomActionField
from pcluster.schemas.common_schema import ALLOWED_VALUES, is_cidr_or_prefix_list
from pcluster.validators.slurm_settings_validator import SLURM_SETTINGS_DENY_LIST

from tools.json_text import json_text

JsonSchema = dict[str, Any]

_TYPES: dict[type[fields.Field], str | list[str]] = {
    fields.String: "string",
    fields.Integer: "integer",
    fields.Float: "number",
    fields.Boolean: "boolean",
    fields.Dict: "object",
    # Any type except null, which marshmallow always refuses.
    fields.Raw: ["array", "boolean", "number", "object", "string"],
}

# Keys that the schema leaves optional, but without which the library raises a TypeError.
_NEEDED = {
    "DcvSchema": "Enabled",
    "HeadNodeImageSchema": "CustomAmi",
    "LoginNodesImageSchema": "CustomAmi",
    "QueueImageSchema": "CustomAmi",
    "SlurmQueueSchema": "ComputeResources",
}


def anchored(regex: str) -> str:
    """Convert a pattern for `re.match`, which starts at the first character, to one for a search."""
    # Each alternative needs an anchor. Alternatives in groups do not, but an extra anchor changes nothing.
    return regex if all(part.startswith("^") for part in regex.split("|")) else f"^(?:{regex})"


def _rules(validator: Any, *, of_list: bool) -> JsonSchema:
    """Return the keywords for the rules of one validator."""
    match validator:
        case validate.OneOf():
            rules: JsonSchema = {"enum": list(validator.choices)}
        case validate.Regexp() if validator.regex.flags == re.UNICODE:
            rules = {"pattern": anchored(validator.regex.pattern)}
        case validate.Range(min_inclusive=True, max_inclusive=True):
            rules = _present(minimum=validator.min, maximum=validator.max)
        case validate.Length():
            exact, unit = validator.equal, "Items" if of_list else "Length"
            low, high = (validator.min, validator.max) if exact is None else (exact, exact)
            rules = _present(**{f"min{unit}": low, f"max{unit}": high})
        case _ if validator is is_cidr_or_prefix_list:
            either = "|".join(anchored(ALLOWED_VALUES[name]) for name in ("cidr", "prefix-list"))
            rules = {"pattern": either, "x-allowed": "a CIDR (10.0.0.0/16) or a prefix list (pl-0123abcd)"}
        case _:
            raise NotImplementedError(f"{validator!r}: teach tools/pcluster/export_config_schema.py about it")
    return rules


def _flat(validators: Iterable[Any]) -> Iterator[Any]:
    for validator in validators:
        if isinstance(validator, validate.And):
            yield from _flat(validator.validators)
        else:
            yield validator


def _present(**keywords: Any) -> JsonSchema:
    return {key: value for key, value in keywords.items() if value is not None}


class Exporter:
    """One export, which collects each nested schema once, under $defs."""

    def __init__(self) -> None:
        self.defs: dict[str, JsonSchema] = {}
        self._names: dict[type[Schema], str] = {}

    def ref(self, schema: Schema) -> JsonSchema:
        """Return a reference to a schema's class, exported at its first use."""
        kind = type(schema)
        if kind not in self._names:
            name = kind.__name__.replace("Schema", "")
            # Two classes share the name ImdsSchema. Fields keep their order, so names do too.
            while name in self._names.values():
                name += "2"
            self._names[kind] = name
            self.defs[name] = self.object(schema)
        return {"$ref": f"#/$defs/{self._names[kind]}"}

    def object(self, schema: Schema) -> JsonSchema:
        """Export the keys of one schema, and the names of its rules in code."""
        if schema.unknown != RAISE or schema.only or schema.exclude:
            raise NotImplementedError(f"{schema!r}: expected a schema of all its keys that refuses others")
        keys = {field.data_key: field for field in schema.fields.values()}
        needed = _NEEDED.get(type(schema).__name__)
        required = sorted(key for key, field in keys.items() if field.required or key == needed)
        hooks = [*schema._hooks["validates"], *schema._hooks["validates_schema"]]
        rules = sorted({method for method, *_ in hooks})
        return {
            "type": "object",
            "additionalProperties": False,
            "properties": {key: self.field(field) for key, field in keys.items()},
            **_present(**{"required": required or None, "x-rules-in-code": rules or None}),
        }

    def field(self, field: fields.Field) -> JsonSchema:
        """Export one key: type, rules, and ParallelCluster's policy for its update."""
        exported = self._type(field)
        if field.allow_none:
            raise NotImplementedError(f"{field!r}: null is allowed")
        for validator in _flat(field.validators):
            rules = _rules(validator, of_list=isinstance(field, fields.List))
            if exported.keys() & rules.keys():
                raise NotImplementedError(f"{field!r}: two rules of one kind")
            exported |= rules
        if "update_policy" in field.metadata:
            exported["x-update-policy"] = field.metadata["update_policy"].name
        if "update_key" in field.metadata:
            exported["x-update-key"] = field.metadata["update_key"]
        return exported

    def _type(self, field: fields.Field) -> JsonSchema:
        match field:
            case OneOrManyCustomActionField():
                return self._custom_action(field)
            case fields.Nested() if field.many:
                return {"type": "array", "items": self.ref(field.schema)}
            case fields.Nested():
                return self.ref(field.schema)
            case fields.List():
                return {"type": "array", "items": self.field(field.inner)}
        if type(field) not in _TYPES:
            raise NotImplementedError(f"{field!r}: teach tools/pcluster/export_config_schema.py about it")
        return {"type": _TYPES[type(field)]}

    def _custom_action(self, field: OneOrManyCustomActionField) -> JsonSchema:
        """Export one script or a Sequence of scripts as if/else, since errors of oneOf are unreadable."""
        script = self.ref(field.schema)
        sequence = {"Sequence": {"type": "array", "items": script}}
        return {
            "type": "object",
            "if": {"type": "object", "required": ["Sequence"]},
            "then": {
                "additionalProperties": False,
                "properties": sequence,
                "x-allowed": "Script (with Args) or Sequence, never both",
            },
            "else": script,
        }


def export() -> JsonSchema:
    """Return the JSON Schema of the installed library's cluster config."""
    exporter, release = Exporter(), version("aws-parallelcluster")
    cluster = exporter.object(ClusterSchema(cluster_name="any"))
    return cluster | {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:aws-parallelcluster:{release}:cluster-config",
        "title": f"AWS ParallelCluster {release}",
        "description": "Generated by tools/pcluster/export_config_schema.py: run `make schema`.",
        "$defs": exporter.defs,
        "x-denied-slurm-settings": SLURM_SETTINGS_DENY_LIST,
    }


if __name__ == "__main__":
    print(json_text(json.loads(json.dumps(export(), sort_keys=True)), levels=2), end="")
