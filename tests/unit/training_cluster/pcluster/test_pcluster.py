"""The schema of cluster configs, judged as the library judges, and the check at every synth."""

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml

from stacks.composition import add_stacks
from tests.unit.pcluster_library import library
from tests.unit.pcluster_library import refusals as library_refusals
from training_cluster.pcluster.schema import SCHEMA, schema_problems
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

CASES: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("schema_cases.yaml").read_text())
Case = dict[str, Any]

_KEYS = """
import json
from pcluster.schemas.cluster_schema import ClusterSchema
def keys(schema, above):
    for field in schema.fields.values():
        path = above + "." + field.data_key
        yield path, field.required, field.metadata["update_policy"].name
        if hasattr(field, "schema"):
            yield from keys(field.schema, path)
print(json.dumps(list(keys(ClusterSchema(cluster_name="any"), ""))))
"""


def changed(case: Case) -> dict[str, Any]:
    config = deepcopy(CASES["config"])
    *above, last = [int(part) if part.isdigit() else part for part in re.findall(r"\w+", case["path"])]
    at: Any = config
    for part in above:
        at = at[part]
    if "value" in case:
        at[last] = case["value"]
    else:
        del at[last]
    return dict(config)


@pytest.fixture(scope="module")
def refusals() -> dict[str, str | None]:
    """Return the library's refusal of every changed config, by the config's JSON."""
    configs = [changed(case) for group, cases in CASES.items() if group != "config" for case in cases]
    return dict(zip(map(json.dumps, configs), library_refusals(configs), strict=True))


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(SCHEMA.read_text())
    return loaded


def schemas_in(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    inner = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]
    inner += [schema[keyword] for keyword in ("items", "if", "then", "else") if keyword in schema]
    for one in inner:
        yield from schemas_in(one)


@pytest.mark.slow
def test_the_schema_has_the_librarys_keys(schema: dict[str, Any]) -> None:
    def keys(of: dict[str, Any], above: str) -> Iterator[list[Any]]:
        of = of | of.get("else", {})  # A custom action's script, alone or in a Sequence.
        of = schema["$defs"][of["$ref"].removeprefix("#/$defs/")] if "$ref" in of else of
        for key, inner in of.get("properties", {}).items():
            yield [f"{above}.{key}", key in of.get("required", []), inner["x-update-policy"]]
            yield from keys(inner.get("items", inner), f"{above}.{key}")

    ours, theirs = (sorted(found) for found in (keys(schema, ""), json.loads(library("-c", _KEYS))))
    assert [(path, policy) for path, _, policy in ours] == [(path, policy) for path, _, policy in theirs]
    assert len(ours) > 300, "two empty lists are equal, too"
    assert [path for (path, *rest), (_, *their) in zip(ours, theirs, strict=True) if rest != their] == [
        ".HeadNode.Dcv.Enabled",
        ".HeadNode.Image.CustomAmi",
        ".LoginNodes.Pools.Dcv.Enabled",
        ".LoginNodes.Pools.Image.CustomAmi",
        ".Scheduling.SlurmQueues.ComputeResources",
        ".Scheduling.SlurmQueues.Image.CustomAmi",
    ], "optional to the library's schema, but a TypeError without"


def test_keywords_and_rules_have_sentences_and_examples(schema: dict[str, Any]) -> None:
    said = {"additionalProperties", "required", "type", "enum", "pattern"}
    said |= {f"{side}{of}" for side in ("min", "max") for of in ("imum", "Length", "Items")}
    structure = {"$schema", "$id", "$defs", "$ref", "title", "description", "properties", "items"}
    keywords = {keyword for one in schemas_in(schema) for keyword in one if not keyword.startswith("x-")}
    assert keywords == said | structure | {"if", "then", "else"}, "schema.py says what is wrong"
    rules = {rule for one in schemas_in(schema) for rule in one.get("x-rules-in-code", [])}
    examples = {case["rule"] for case in CASES["refused_by_the_library_alone"]}
    assert rules == {rule for rule in examples if "TypeError" not in rule}


@pytest.mark.slow
def test_we_judge_as_the_library(refusals: dict[str, str | None]) -> None:
    """Each group of schema_cases.yaml says who refuses; what we refuse alone, the library would convert."""
    for group in ("taken", "refused", "refused_by_us_alone", "refused_by_the_library_alone"):
        for case in CASES[group]:
            config = changed(case)
            assert (refusals[json.dumps(config)] is None) == (group in ("taken", "refused_by_us_alone")), case
            expected = [case["says"]] if "says" in case else []
            assert [each[: len(case.get("says", each))] for each in schema_problems(config)] == expected


def test_all_problems_are_told_at_once() -> None:
    config = changed({"path": "Image.Os", "value": "windows"})
    config["HeadNode"] = {"Networking": {"Subnet": "subnet-0aaaaaaaaaaaaaaaa"}}
    assert [problem.partition(":")[0] for problem in schema_problems(config)] == [
        "HeadNode.InstanceType",
        "HeadNode.Networking.Subnet",
        "HeadNode.Networking.SubnetId",
        "Image.Os",
    ]


def test_a_refused_config_or_mount_ends_synth(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file, lustre = tmp_path / "overrides.yaml", "fs-0123456789abcdef0"
    more = f"{{Name: m, StorageType: FsxLustre, MountDir: /m, FsxLustreSettings: {{FileSystemId: {lustre}}}}}"
    file.write_text(f"SharedStorage: [{more}]")
    with pytest.raises(ConfigurationError, match=f"{lustre} is listed 2 times"):
        add_stacks(cdk.App(), read_settings({"fsx_id": lustre, "overrides": str(file)}))

    def no_scheduling(**_: object) -> dict[str, Any]:
        return {"Region": "us-east-1"}

    monkeypatch.setattr("training_cluster.pcluster.check.render_cluster_config", no_scheduling)
    with pytest.raises(
        ConfigurationError, match=r"would refuse .* cluster_configs/p5\.yaml(?s:.*)Scheduling"
    ):
        add_stacks(cdk.App(), read_settings({"family": "p5"}))
