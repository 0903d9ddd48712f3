"""Reads a ParallelCluster 3 config: from a YAML file, a CloudFormation template, or a running cluster."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ops.account.session import ClientOf
from ops.plan.deployed import read_cluster_config
from ops.usage import OpsError, UsageError
from training_cluster.user_yaml import UserYamlError, parse_user_yaml

Config = dict[str, Any]
"""Cluster config with ParallelCluster's keys."""
_CONFIG = "ClusterConfiguration"
_FUNCTIONS = ("Ref", "GetAtt", "Sub", "ImportValue", "Select", "Split", "FindInMap", "Join")
_NOTHING = {"Ref": "AWS::NoValue"}
_OLDER = re.compile(r"^\[(global|aws|cluster\b[^\]]*)\]", re.MULTILINE)
"""Section of a config of ParallelCluster 2, which has the form of an INI file."""


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short functions (!Ref, !Sub) as mappings."""


def _function(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    if isinstance(node, yaml.ScalarNode):
        return {suffix: loader.construct_scalar(node)}
    if isinstance(node, yaml.SequenceNode):
        return {suffix: loader.construct_sequence(node, deep=True)}
    assert isinstance(node, yaml.MappingNode)
    return {suffix: loader.construct_mapping(node, deep=True)}


_Loader.add_multi_constructor("!", _function)


def read_config_file(file: Path) -> Config:
    """Read the config in a file: the whole file, or a resource's property ClusterConfiguration.

    Raises:
        UsageError: no such file, no YAML or JSON, a key twice, or no ParallelCluster 3 config in it.
    """
    try:
        text = file.read_text(encoding="utf-8")
        if _OLDER.search(text):
            raise UsageError(
                f"import: {file} is a config of ParallelCluster 2\n"
                f"  type:   pcluster3-config-converter --config-file {file} --output-file cluster.yaml\n"
                "          trainctl import cluster.yaml"
            )
        content = parse_user_yaml(text, _Loader, of_names=False)  # a template's list may have a Name twice
        found = [content] if _is_config(content) else list(_inside(content))
    except OSError as error:
        raise _none_in(file, error.strerror or str(error)) from None
    except UnicodeDecodeError:
        raise _none_in(file, "it is not UTF-8") from None
    except UserYamlError as error:
        raise _none_in(file, str(error)) from None
    if len(found) != 1:
        raise _none_in(file, f"{len(found)} cluster configs" if found else _what_lacks(content))
    return found[0]


def read_running_config(name: str, client: ClientOf) -> Config:
    """Read the config of a running cluster. Raises OpsError without one, and botocore's errors."""
    config = read_cluster_config(name, client)
    if config is None:
        raise OpsError(
            f"no cluster {name} in this region\n  type:   trainctl import --cluster NAME, or a file"
        )
    return dict(config)


def _is_config(content: object) -> bool:
    return isinstance(content, Mapping) and "HeadNode" in content and "Scheduling" in content


def _inside(content: object) -> Iterator[Config]:
    """Yield the configs of a template's resources; a config may be text of YAML or JSON."""
    resources = content.get("Resources") if isinstance(content, Mapping) else None
    parameters = content.get("Parameters", {}) if isinstance(content, Mapping) else {}
    for each in resources.values() if isinstance(resources, Mapping) else []:
        config = each.get("Properties", {}).get(_CONFIG) if isinstance(each, Mapping) else None
        config = resolved(config, parameters)
        text = joined_text(config)
        if text is not None:
            config = parse_user_yaml(text, _Loader, of_names=False)
        if isinstance(config, Mapping) and _is_config(config):
            yield dict(config)


def branches(value: object) -> list[Any] | None:
    """Return a condition's name and both values, None for one that is nothing; None for another value."""
    if value == _NOTHING:
        return ["AWS::NoValue", None]
    if not isinstance(value, Mapping) or not {*value} <= {"Fn::If", "If"} or not value:
        return None
    (options,) = value.values()
    return [None if each == _NOTHING else each for each in options]


def joined_text(value: object) -> str | None:
    """Return the text of a string, Fn::Sub or Fn::Join, with a reference as ${Name}."""
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping) or len(value) != 1:
        return None
    ((function, argument),) = value.items()
    name = str(function).removeprefix("Fn::")
    if name not in _FUNCTIONS:
        return None
    if name == "Sub":
        return argument if isinstance(argument, str) else str(argument[0])
    if name == "Join":
        separator, parts = argument
        return str(separator).join(joined_text(each) or "${?}" for each in parts)
    return "${" + str(argument if isinstance(argument, str) else name) + "}"


def resolved(value: Any, parameters: Mapping[str, Any]) -> Any:
    """Return a part of a template with the defaults of its parameters in place of references to them."""
    if isinstance(value, Mapping):
        if len(value) == 1 and (name := value.get("Ref")) is not None:
            default = parameters.get(str(name), {}).get("Default")
            text = str(default).lower() if isinstance(default, bool) else str(default)  # as CloudFormation's
            return value if default in (None, "") else text
        return {key: resolved(inner, parameters) for key, inner in value.items()}
    return [resolved(each, parameters) for each in value] if isinstance(value, list) else value


def _what_lacks(content: object) -> str:
    if isinstance(content, Mapping) and {"HeadNode", "Scheduling", "SharedStorage"} & {*content}:
        return a_part(content)
    return "no HeadNode and Scheduling, and no such resource"


def a_part(content: Mapping[Any, Any]) -> str:
    """Return a sentence about a config without queues, which is merged into another one."""
    return (
        f"it is a part of a config: {', '.join(map(str, content))}, without Scheduling.SlurmQueues\n"
        "  type:   its keys into the whole config; or into overrides: -c overrides=FILE (docs/overrides.md)"
    )


def _none_in(file: Path, why: str) -> UsageError:
    return UsageError(
        f"import: {file} is not a ParallelCluster 3 cluster config: {why}\n"
        "  allowed: the YAML file of pcluster create-cluster, or a CloudFormation template (cdk.out/*.json) "
        f"with a resource that has {_CONFIG}"
    )
