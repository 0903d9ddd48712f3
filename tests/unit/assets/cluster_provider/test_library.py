"""The one module that calls ParallelCluster, against one that answers as told (slow tests ask the real)."""

import ast
import datetime
import inspect
import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest
from awscli.shorthand import ShorthandParser  # type: ignore[import-untyped]
from botocore.exceptions import EndpointConnectionError, NoCredentialsError

from tests.unit.assets.cluster_provider.fakes.aws import client_error
from tests.unit.assets.cluster_provider.fakes.library import FakeLibrary
from tests.unit.assets.cluster_provider.fakes.library_module import ApiError, AwsError, Pcluster, because
from tests.unit.assets.cluster_provider.fakes.provider import PROVIDER, Provider

THROTTLED, DENIED = "ThrottlingException", "AccessDenied"
FOUND = {
    "clusterStatus": "UPDATE_FAILED",
    "cloudFormationStackStatus": "UPDATE_ROLLBACK_COMPLETE",
    "tags": [{"key": "team", "value": "language"}],
    "headNode": {"instanceId": "i-1"},
    "creationTime": "monday",
    "lastUpdatedTime": "tuesday",
}


def test_the_played_library_fits_the_real_one() -> None:
    tree = ast.parse((PROVIDER / "library.py").read_text())
    real = {
        node.name: [each.arg for each in (*node.args.args, *node.args.kwonlyargs)]
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }
    played = {
        name: list(inspect.signature(function).parameters)[1:]
        for name, function in inspect.getmembers(FakeLibrary, inspect.isfunction)
        if name in real
    }
    assert played == real


def test_a_cluster_is_described_if_it_is_there(provider: Provider, library: Any, pcluster: Pcluster) -> None:
    pcluster.answers = [FOUND]
    assert library.find("c") == provider.cluster_state.ClusterState(
        status="UPDATE_FAILED",
        tags={"team": "language"},
        failures=(),
        head_node_instance_id="i-1",
        stack_status="UPDATE_ROLLBACK_COMPLETE",
        created="monday",
        changed="tuesday",
    )
    pcluster.answers = [{"clusterStatus": "CREATE_COMPLETE", "creationTime": "monday"}]
    found = library.find("c")
    assert (found.changed, found.head_node_instance_id, found.tags) == ("monday", None, {})
    pcluster.answers = [ApiError(404, message="Cluster c does not exist")]
    assert library.find("c") is None


def test_another_apps_stack_is_an_unowned_cluster(library: Any, pcluster: Pcluster) -> None:
    """The library refuses to describe it, and an owned cluster of a newer version of itself."""
    foreign = ApiError(400, message="Cluster 'c' belongs to an incompatible ParallelCluster major version.")
    pcluster.answers = [foreign] * 3
    with pytest.raises(library.RefusedError, match="incompatible"):
        library.find("c")
    about = {"status": "CREATE_COMPLETE", "creation_time": "monday", "last_updated_time": "monday"}
    pcluster.stack = {"tags": [{"Key": "team", "Value": "web"}], **about}
    found = library.find("c")
    assert (found.status, found.tags) == ("CREATE_COMPLETE", {"team": "web"})
    pcluster.stack["tags"] = [{"Key": "training-cluster:stack-id", "Value": "arn"}]
    with pytest.raises(library.RefusedError, match="incompatible"):
        library.find("c")


@pytest.mark.parametrize("operation", ["check_create", "check_update"])
def test_a_dry_run_reports_changes_and_warnings(library: Any, pcluster: Pcluster, operation: str) -> None:
    change = {"parameter": "P", "current_value": "1", "requested_value": "2"}
    warning = {"level": "WARNING", "type": "T", "message": "m"}
    pcluster.answers = [ApiError(412, message="ok", change_set=[change], validation_messages=[warning])]
    would = getattr(library, operation)("c", {"Region": "r"})
    assert (would.changes, would.validation) == (("P: 1 -> 2",), ("WARNING T: m",))
    ((_, arguments),) = pcluster.asked
    assert arguments == {"cluster_name": "c", "cluster_configuration": {"Region": "r"}, "dryrun": True}


DENIED_VOLUME = (
    "You are not authorized to perform this operation. User: arn:aws:sts::123456789012:assumed-role/r/s is "
    "not authorized to perform: ec2:RunInstances on resource: arn:aws:ec2:us-east-1:123456789012:volume/* "
    "with an explicit deny in a service control policy. Encoded authorization failure message: abc"
)
OUR_TAGS = [
    {"Key": "training-cluster:cluster", "Value": "training"},
    {"Key": "training-cluster:stack-id", "Value": "arn"},
]
TAGGED = {"Region": "r", "Tags": [*OUR_TAGS, {"Key": "team", "Value": "language"}]}
LAUNCHES = ["HeadNodeLaunchTemplateValidator", "ComputeResourceLaunchTemplateValidator"]


def _denied(message: str, *validators: str) -> ApiError:
    errors = [{"level": "ERROR", "type": each, "message": message} for each in validators]
    return ApiError(400, message="Invalid cluster configuration.", configuration_validation_errors=errors)


@pytest.mark.parametrize("operation", ["check_create", "check_update"])
def test_a_policy_for_tags_of_volumes_passes(library: Any, pcluster: Pcluster, operation: str) -> None:
    warning = {"level": "WARNING", "type": "T", "message": "m"}
    passed = ApiError(412, message="ok", validation_messages=[warning])
    pcluster.answers = [_denied(DENIED_VOLUME, *LAUNCHES), passed]
    would = getattr(library, operation)("c", TAGGED)
    *said, last = would.validation
    assert last == "WARNING T: m"
    assert [each.split(":")[0] for each in said] == [f"WARNING {each}" for each in LAUNCHES]
    assert all("volume/* with an explicit deny in a service control policy" in each for each in said)
    assert "Encoded" not in "".join(said)
    (_, first), (_, second) = pcluster.asked
    assert "suppress_validators" not in first
    assert second == first | {"suppress_validators": [f"type:{each}" for each in LAUNCHES]}


@pytest.mark.parametrize(
    "refused",
    [
        _denied(DENIED_VOLUME.replace("volume/*", "instance/*"), *LAUNCHES),
        _denied(DENIED_VOLUME.replace(" with an explicit deny in a service control policy", ""), *LAUNCHES),
        _denied(DENIED_VOLUME, *LAUNCHES, "SubnetsValidator"),
        _denied("no such subnet", *LAUNCHES),
    ],
    ids=["instances", "no right at all", "more than launches", "another error"],
)
def test_another_refused_launch_stays_refused(
    provider: Provider, library: Any, pcluster: Pcluster, refused: ApiError
) -> None:
    pcluster.answers = [refused]
    with pytest.raises(provider.errors.RefusedError):
        library.check_create("c", TAGGED)
    assert len(pcluster.asked) == 1


@pytest.mark.parametrize("config", [{}, {"Tags": OUR_TAGS}], ids=["no tags", "only ours"])
def test_a_policy_against_volumes_without_tags_refuses(
    provider: Provider, library: Any, pcluster: Pcluster, config: dict[str, Any]
) -> None:
    passed = ApiError(412, message="ok", validation_messages=[])
    pcluster.answers = [_denied(DENIED_VOLUME, *LAUNCHES), passed]
    with pytest.raises(provider.errors.RefusedError):
        library.check_create("c", config)
    assert len(pcluster.asked) == 1


def test_no_changes_are_no_refusal(library: Any, pcluster: Pcluster) -> None:
    pcluster.answers = [ApiError(400, message="No changes found in your cluster configuration.")] * 2
    assert library.check_update("c", {}) is None
    assert library.update("c", {}) is False


@pytest.mark.parametrize("operation", ["check_update", "update"])
def test_a_refused_update_keeps_the_librarys_answer(
    provider: Provider, library: Any, pcluster: Pcluster, operation: str
) -> None:
    pcluster.answers = [ApiError(400, message="Update failure", update_validation_errors=[{"message": "no"}])]
    with pytest.raises(provider.errors.RefusedError) as refused:
        getattr(library, operation)("c", {})
    assert refused.value.content["update_validation_errors"] == [{"message": "no"}]


def test_a_failed_cluster_is_kept_without_validation(library: Any, pcluster: Pcluster) -> None:
    pcluster.answers = [{}, {}]
    library.create("c", {})
    assert library.update("c", {}) is True
    (_, create), (_, update) = pcluster.asked
    assert create["rollback_on_failure"] is False
    assert create["suppress_validators"] == update["suppress_validators"] == ["ALL"]


def test_starting_and_running_compute_nodes_count(library: Any, pcluster: Pcluster) -> None:
    states = ["pending", "running", "shutting-down", "terminated", "stopping", "running"]
    pcluster.answers = [{"instances": [{"state": state} for state in states]}, {}]
    assert library.running_compute_nodes("c") == 3
    assert (library.running_compute_nodes("c"), pcluster.asked[0][1]["node_type"]) == (0, "ComputeNode")


@pytest.mark.parametrize("code", [THROTTLED, DENIED])
def test_an_unknown_fleet_status_is_read_again(library: Any, pcluster: Pcluster, code: str) -> None:
    pcluster.answers = [{"status": "UNKNOWN"}, {"status": "PROTECTED"}]
    pcluster.fleet_item = AwsError("no answer", code)
    with pytest.raises(library.TransientError, match="parallelcluster-c gave no status"):
        library.fleet_status("c")
    assert library.fleet_status("c") == "PROTECTED"


def test_a_fleets_status_survives_a_lost_answer(library: Any, pcluster: Pcluster) -> None:
    pcluster.answers = [{"status": "UNKNOWN"}]
    pcluster.fleet_item = {"Item": {"Id": "COMPUTE_FLEET", "Data": {"status": "STOPPED"}}}
    assert library.fleet_status("c") == "STOPPED"


def test_a_missing_fleet_status_names_its_remedy(
    library: Any, pcluster: Pcluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for answer in (
        {},
        {"Item": {"Id": "COMPUTE_FLEET"}},
        {"Item": {"Id": "COMPUTE_FLEET", "Data": {"status": "CLOSED"}}},
        AwsError("Requested resource not found", "ResourceNotFoundException"),
    ):
        monkeypatch.setenv("AWS_REGION", "eu-west-1")
        pcluster.answers, pcluster.fleet_item = [{"status": "UNKNOWN"}], answer
        with pytest.raises(library.RefusedError) as refusal:
            library.fleet_status("c")
        assert json.dumps(str(refusal.value)) == f'"{refusal.value}"', "CloudFormation shows it so"
        words = shlex.split(str(refusal.value).partition("aws dynamodb ")[2].partition(" | ")[0])
        assert words[:5] == ["put-item", "--region", "eu-west-1", "--table-name", "parallelcluster-c"]
        item = ShorthandParser().parse(words[words.index("--item") + 1])
        at = item["Data"]["M"].pop("lastStatusUpdatedTime")["S"]
        assert datetime.datetime.fromisoformat(at).tzinfo == datetime.UTC
        assert item == {"Id": {"S": "COMPUTE_FLEET"}, "Data": {"M": {"status": {"S": "START_REQUESTED"}}}}
        # Nobody's status is written over, unless it is one that the library does not know.
        has_item = isinstance(answer, dict) and "Item" in answer
        assert words[words.index("--item") + 2 :] == (
            [] if has_item else ["--condition-expression", "attribute_not_exists(Id)"]
        )


def test_concurrent_change_of_fleet_is_repeated(provider: Provider, library: Any, pcluster: Pcluster) -> None:
    failed = ApiError(400, message="A concurrent update of the status. Please retry the operation.")
    pcluster.answers = [because(failed, client_error("ConditionalCheckFailedException"))]
    with pytest.raises(provider.errors.TransientError, match="concurrent update"):
        library.request_fleet("c", "START_REQUESTED")


def test_a_readable_config_means_existing_files(library: Any, pcluster: Pcluster, provider: Provider) -> None:
    assert library.stored_config("c") == {"Region": "r"}
    pcluster.files = because(ApiError(500, message="Unable to load"), AwsError("no such key", "NoSuchKey"))
    assert library.stored_config("c") is None
    assert pcluster.resets == ["cache", "session"] * 2
    pcluster.files = because(ApiError(500, message="Unable to load"), AwsError("slow down", "Throttling"))
    with pytest.raises(provider.errors.TransientError, match="Unable to load"):
        library.stored_config("c")


def test_each_call_clears_the_librarys_caches(library: Any, pcluster: Pcluster) -> None:
    pcluster.answers = [FOUND, FOUND]
    for _ in range(2):
        pcluster.urls["s3://bucket/bootstrap.sh"] = "no connection"
        library.find("c")
        assert pcluster.urls == {}
    assert pcluster.resets == ["cache", "session"] * 2


def test_reading_alone_is_retried(
    provider: Provider, library: Any, pcluster: Pcluster, capsys: pytest.CaptureFixture[str]
) -> None:
    throttled = AwsError("slow down", "Throttling")
    pcluster.answers = [throttled] * 4 + [FOUND]
    assert (library.find("c").status, provider.slept) == ("UPDATE_FAILED", [2, 4, 8, 16])
    assert "describe_cluster: asking again in 2 s: slow down\n" in capsys.readouterr().out
    for change in (library.create, library.update):
        pcluster.answers = [throttled] * 9
        with pytest.raises(provider.errors.TransientError):
            change("c", {})
        assert len(pcluster.answers) == 8


def test_the_end_of_a_log_is_text(library: Any, pcluster: Pcluster) -> None:
    pcluster.answers = [
        {"events": [{"timestamp": "t1", "message": "a"}, {"timestamp": "t2", "message": "b"}]}
    ]
    assert (library.log_tail("c", "s", lines=5), pcluster.asked[0][1]["limit"]) == ("t1 a\nt2 b", 5)


def test_the_library_writes_where_lambda_may(library: Any, tmp_path: Path) -> None:
    assert os.environ["HOME"] == os.environ["XDG_CACHE_HOME"] == str(tmp_path / "pcluster-home")
    assert (tmp_path / "pcluster-home").is_dir()


def _invalid(*findings: tuple[str, str]) -> ApiError:
    errors = [{"level": level, "type": "V", "message": message} for level, message in findings]
    return ApiError(400, message="Invalid cluster configuration.", configuration_validation_errors=errors)


NO_ANSWER = ("ERROR", 'Read timeout on endpoint URL: "https://fsx"')


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("Transient", AwsError("slow down", "Throttling")),
        ("Transient", because(ApiError(500, message="failed"), AwsError("slow", "RequestLimitExceeded"))),
        (
            "Transient",
            because(ApiError(400, message="Invalid cluster configuration"), client_error(THROTTLED)),
        ),
        ("Transient", because(ApiError(500, message="failed"), client_error("ExpiredToken"))),
        ("Transient", because(ApiError(500, message="failed"), client_error("503"))),
        ("Transient", AwsError('Could not connect to the endpoint URL: "https://ec2"')),
        ("Transient", EndpointConnectionError(endpoint_url="https://ec2")),
        ("Transient", because(ApiError(500, message="failed"), NoCredentialsError())),
        (
            "Transient",
            ApiError(500, message="Failed: could not retrieve compute fleet status from the table."),
        ),
        # A validator without an answer makes no config invalid.
        ("Transient", _invalid(NO_ANSWER, ("ERROR", "Rate exceeded"), ("WARNING", "old"))),
        ("Refused", _invalid(NO_ANSWER, ("ERROR", "no such subnet"))),
        ("Refused", _invalid(("WARNING", "Rate exceeded"))),
        ("Refused", ApiError(400, message="Invalid")),
        ("Refused", because(ApiError(500, message="failed"), client_error(DENIED))),
        ("Refused", AwsError("you may not", DENIED)),
        ("Refused", TypeError("endpoint URL")),
        # Of several codes of AWS, the outermost counts.
        (
            "Refused",
            because(ApiError(500, message="m"), because(AwsError("no", DENIED), client_error(THROTTLED))),
        ),
        ("ClusterNotFound", ApiError(404, message="gone")),
        ("ClusterNotFound", AwsError("Stack with id c does not exist", "Validation")),
    ],
    ids=str,
)
def test_each_error_has_its_kind(
    provider: Provider, library: Any, pcluster: Pcluster, kind: str, error: Exception
) -> None:
    pcluster.answers = [error]
    with pytest.raises(getattr(provider.errors, f"{kind}Error")):
        library.delete("c")


def test_an_unexpected_fatal_exception_is_named(provider: Provider, library: Any, pcluster: Pcluster) -> None:
    error = OSError("no space left")
    error.content = {"message": "Unexpected fatal exception. Please look at the logs"}  # type: ignore[attr-defined]
    pcluster.answers = [error]
    with pytest.raises(provider.errors.RefusedError, match="OSError: no space left"):
        library.delete("c")
