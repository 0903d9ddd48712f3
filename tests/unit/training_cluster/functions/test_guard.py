"""No flag replaces what holds data: the guard refuses every update that would, proved from AWS's schemas."""

import itertools
import json
import tempfile
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args

import aws_cdk as cdk
import botocore.loaders
import pytest

from stacks.network_stack import NetworkStack
from stacks.storage_stack import StorageStack
from tests.unit.assets.functions import load
from tests.unit.resource_schemas import create_only, resource_schema, values_at
from tests.unit.stacks.app import OWN_NETWORK
from training_cluster.flags.network import NetworkFlags
from training_cluster.flags.storage import StorageFlags
from training_cluster.paths import ROOT
from training_cluster.rules.context import read_settings

DATA_TYPES = (
    "AWS::S3::Bucket",
    "AWS::FSx::FileSystem",
    "AWS::FSx::DataRepositoryAssociation",
    "AWS::EFS::FileSystem",
    "AWS::EFS::MountTarget",
    "AWS::EC2::SecurityGroup",
)

# Nested properties have no place in createOnlyProperties. These are the ones that CloudFormation's reference
# (AWS::FSx::FileSystem LustreConfiguration, "Update requires") or its older resource specification
# ("UpdateType": "Immutable") names; test_the_list_is_what_fsx_cannot_change checks it.
LUSTRE_CREATE_ONLY = frozenset(
    """
    CopyTagsToBackups DeploymentType DriveCacheType EfaEnabled ExportPath ImportPath ImportedFileChunkSize
    """.split()
)
# Replacement by the reference of AWS::FSx::FileSystem, though the registry's schema does not say so.
FILE_SYSTEM_CREATE_ONLY = ("FileSystemTypeVersion", "StorageType")

OTHER_NETWORK = {flag: id_.replace("123", "fff") for flag, id_ in OWN_NETWORK.items()}
OWN_GROUP = {"security_group_id": "sg-0123456789abcdef0"}
LUSTRE, EFS, BUCKET = (
    {"fsx_id": "fs-0123456789abcdef0"},
    {"efs_id": "fs-0123456789abcdef1"},
    {"bucket_name": "mine"},
)
EFA = {"fsx_efa": "on", "fsx_gib": "38400"}

# Every value worth a try of every flag that has no list of values, with what must go along.
SAMPLES: dict[str, list[dict[str, str]]] = {
    "bucket_name": [BUCKET, {"bucket_name": "other"}],
    "fsx_id": [LUSTRE, {"fsx_id": "fs-0123456789abcdeff"}, BUCKET | LUSTRE, BUCKET | LUSTRE | EFS],
    "fsx_gib": [{"fsx_gib": "2400"}, {"fsx_gib": "4800"}],
    "efs_id": [EFS, {"efs_id": "fs-0123456789abcdeff"}],
    "efs_mibps": [{"efs_mibps": "1"}, {"efs_mibps": "1024"}],
    "zone": [{"zone": "us-east-1c"}, {"zone": "use1-az4"}],
    "vpc_id": [OWN_NETWORK, OTHER_NETWORK],
    "public_subnet_id": [OWN_NETWORK],
    "private_subnet_id": [OWN_NETWORK],
    "security_group_id": [OWN_NETWORK | OWN_GROUP],
    "ssh_from": [{"ssh_from": "203.0.113.0/24"}],
}
# What must go along with a value of a flag that has a list.
COMPANIONS: dict[tuple[str, str], list[dict[str, str]]] = {
    ("fsx_efa", "on"): [EFA, EFA | {"fsx_mbps_per_tib": "1000"}, EFA | OWN_NETWORK | OWN_GROUP],
    ("ssh_from_anywhere", "yes"): [{"ssh_from_anywhere": "yes", "ssh_from": "0.0.0.0/0"}],
}

Flags = tuple[tuple[str, str], ...]
Template = dict[str, Any]


def _all_flags() -> Iterator[dict[str, str]]:
    """Yield flags with every value of every flag of storage and network."""
    yield {}
    for flag, info in {**StorageFlags.model_fields, **NetworkFlags.model_fields}.items():
        options = [option for option in get_args(info.annotation) if isinstance(option, str)]
        assert options or flag in SAMPLES, f"{flag}: add values of it to SAMPLES"
        for option in options:
            yield from COMPANIONS.get((flag, option), [{flag: option}])
        yield from SAMPLES.get(flag, [])


CASES = list(dict.fromkeys(tuple(sorted(flags.items())) for flags in _all_flags()))


@cache
def _template(flags: Flags) -> Template:
    """Return the template of StorageStack."""
    settings = read_settings(dict(flags))
    with tempfile.TemporaryDirectory() as folder:
        app = cdk.App(context=json.loads((ROOT / "cdk.json").read_text())["context"], outdir=folder)
        network = NetworkStack(app, "NetworkStack", settings=settings).network
        StorageStack(app, "StorageStack", settings=settings, network=network)
        template: Template = app.synth().get_stack_artifact("StorageStack").template
    return template


@cache
def _create_only(type_: str) -> frozenset[tuple[str, ...]]:
    """Return the paths of the properties whose change replaces a resource of this type."""
    paths = create_only(type_)
    if type_ == "AWS::FSx::FileSystem":
        paths |= {(name,) for name in FILE_SYSTEM_CREATE_ONLY}
        paths |= {("LustreConfiguration", name) for name in LUSTRE_CREATE_ONLY}
    return frozenset(paths)


@cache
def _holders(flags: Flags) -> dict[str, dict[str, Any]]:
    """Return create-only properties, by logical id, of resources that hold data or give access to it."""
    found = {}
    for name, resource in _template(flags)["Resources"].items():
        if resource["Type"] in DATA_TYPES:
            paths = _create_only(resource["Type"])
            lustre = resource["Properties"].get("LustreConfiguration", {})
            if lustre.get("EfaEnabled"):  # FSx's guide, "Managing provisioned throughput capacity"
                paths |= {("LustreConfiguration", "PerUnitStorageThroughput")}
            found[name] = values_at(resource["Properties"], paths)
    return found


def _replaces_or_makes(old: Flags, new: Flags) -> set[str]:
    """Return the resources that an update would create anew: empty, in place of data or beside it."""
    before, after = _holders(old), _holders(new)
    made = after.keys() - before.keys()
    return made | {name for name in after.keys() & before.keys() if before[name] != after[name]}


@cache
def _guarded(flags: Flags) -> dict[str, dict[str, str]]:
    (guard,) = (r for r in _template(flags)["Resources"].values() if r["Type"] == "Custom::Guard")
    values: dict[str, dict[str, Any]] = guard["Properties"]["Values"]
    return {
        name: {key: value if isinstance(value, str) else json.dumps(value) for key, value in kept.items()}
        for name, kept in values.items()
    }


@pytest.fixture(scope="module")
def transitions() -> Any:
    """Return the guard's own rules."""
    return load("guard")["transitions"]


@pytest.mark.slow
def test_every_update_that_makes_something_anew_is_refused(transitions: Any) -> None:
    """From every value of every flag of storage and network to every other."""
    compared = 0
    for old, new in itertools.permutations(CASES, 2):
        if replaced := _replaces_or_makes(old, new):
            compared += 1
            refused = transitions.refused_changes(_guarded(old), _guarded(new))
            assert refused, f"{dict(old)} -> {dict(new)} makes anew, and the guard lets it: {replaced}"
    assert compared > len(CASES), "some of them do"


@pytest.mark.slow
def test_what_holds_data_waits_for_its_guard(transitions: Any) -> None:
    for flags in CASES:
        resources = _template(flags)["Resources"]
        (guard,) = (name for name, r in resources.items() if r["Type"] == "Custom::Guard")
        for name, resource in resources.items():
            if resource["Type"] in DATA_TYPES:
                assert guard in resource["DependsOn"], f"{name} could be touched before the guard is asked"
        # An import is the same text whatever it imports, so the guard must receive what it becomes.
        imported = {text for each in _holders(flags).values() for text in _imports(each)}
        assert imported <= {kept["value"] for kept in _guarded(flags).values()}, dict(flags)
    for old, new in itertools.permutations(CASES, 2):
        for text in transitions.refused_changes(_guarded(old), _guarded(new)):
            assert len(text) < 600, text
            assert "{" not in text.replace('{"Fn::ImportValue"', ""), text
            assert "-c " in text, text


def _imports(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "Fn::ImportValue" in value:
            yield json.dumps(value)
        else:
            for each in value.values():
                yield from _imports(each)
    elif isinstance(value, list):
        for each in value:
            yield from _imports(each)


def test_the_guards_stay_as_first_deployed(synthesise: Any) -> None:
    """Another logical id would be a Create inside a stack that exists, which the guard refuses."""
    for stack in ("NetworkStack", "StorageStack"):
        assert set(synthesise()[stack].find_resources("Custom::Guard")) == {"GuardValues2ADEA0AF"}


def test_growing_and_adopting_pass(transitions: Any) -> None:
    def refused(old: dict[str, str], new: dict[str, str]) -> Any:
        before, after = (_guarded(tuple(sorted(flags.items()))) for flags in (old, new))
        return transitions.refused_changes(before, after)

    assert not refused({}, {"fsx_gib": "2400"})
    assert not refused({}, {"fsx_mbps_per_tib": "1000"})
    assert not refused({"fsx_mbps_per_tib": "1000"}, {"fsx_mbps_per_tib": "125"})
    assert not refused({}, {"efs_mibps": "100"})
    assert not refused({}, {"home": "efs"})
    assert not refused({}, LUSTRE)
    assert not refused({}, EFS)
    assert not refused({}, BUCKET | LUSTRE | EFS)
    assert refused({}, BUCKET), "the own file system's links would go to another bucket"
    assert refused(EFA, EFA | {"fsx_mbps_per_tib": "1000"}), "FSx changes no throughput with EFA"


def test_the_list_is_what_fsx_cannot_change() -> None:
    """UpdateFileSystem takes all of LustreConfiguration that can change in place."""
    shapes = botocore.loaders.Loader().load_service_model("fsx", "service-2")["shapes"]
    can_change = shapes["UpdateFileSystemLustreConfiguration"]["members"].keys()
    schema = resource_schema("AWS::FSx::FileSystem")
    known = schema["definitions"]["LustreConfiguration"]["properties"].keys()
    assert known - can_change == LUSTRE_CREATE_ONLY


def test_values_of_no_flag_stay_as_first_deployed() -> None:
    """The guard knows flags, not releases: another word here replaces what holds data at the next deploy."""
    holders = _holders(())
    constants = {
        name: {path: value for path, value in values.items() if isinstance(value, str | bool)}
        for name, values in holders.items()
    }
    assert constants == {
        "StorageBucket5CB7C8EA": {},
        "StorageLustreSecurityGroupC49655E1": {
            "GroupDescription": "FSx for Lustre: nodes and its own servers, on the Lustre ports"
        },
        "StorageLustreD58356E9": {
            "FileSystemType": "LUSTRE",
            "FileSystemTypeVersion": "2.15",
            "LustreConfiguration.DeploymentType": "PERSISTENT_2",
        },
        "StorageDatasets7E1731ED": {"BatchImportMetaDataOnCreate": True, "FileSystemPath": "/datasets"},
        "StorageCheckpoints37BAEAC9": {"BatchImportMetaDataOnCreate": True, "FileSystemPath": "/checkpoints"},
        "StorageEfsSecurityGroup9427CBC1": {"GroupDescription": "EFS: nodes, over NFS"},
        "StorageEfs3FF3C1A5": {"Encrypted": True},
        "StorageEfsMountTarget": {},
    }
