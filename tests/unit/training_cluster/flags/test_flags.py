"""Context flags: what is allowed, and what a person reads when one is wrong."""

import pytest

from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.flags.flag import takes_in_words
from training_cluster.flags.settings import Settings
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings


def test_defaults_are_complete() -> None:
    settings = read_settings({})
    assert (settings.family, settings.nodes, settings.min_nodes, settings.cluster_name) == (
        "p4d",
        2,
        0,
        "training",
    )


def test_keys_of_the_cdk_itself_are_not_checked() -> None:
    context = {"@aws-cdk/core:checkSecretUsage": True, "aws:cdk:bundling-stacks": ["**"], "nodes": "3"}
    assert read_settings(context).nodes == 3


@pytest.mark.parametrize("zone", ["auto", "us-east-1a", "use1-az4", "us-gov-west-1b", "apne1-az1"])
def test_a_zone_is_auto_a_name_or_an_id(zone: str) -> None:
    assert read_settings({"zone": zone}).zone == zone


@pytest.mark.parametrize(
    ("gib", "allowed"), [(1200, True), (2400, True), (4800, True), (3600, False), (100, False)]
)
def test_lustre_capacity_follows_the_rule_of_fsx(gib: int, allowed: bool) -> None:
    if allowed:
        assert read_settings({"fsx_gib": str(gib)}).fsx_gib == gib
    else:
        with pytest.raises(ConfigurationError, match=f"fsx_gib={gib}"):
            read_settings({"fsx_gib": str(gib)})


@pytest.mark.parametrize(
    ("context", "words"),
    [
        ({"family": "nonsense"}, ["family=nonsense", "allowed: g5, g6, g6e, hpc7a, m6i", "-c family=p4d"]),
        ({"family": "p44d"}, ['Did you mean "p4d"?']),
        ({"familly": "p4d"}, ["familly: no such flag", 'Did you mean "family"?', "docs/flags.md"]),
        ({"nodes": "many"}, ["nodes=many", "a whole number from 1 to 4096", "-c nodes=2"]),
        ({"nodes": "0"}, ["nodes=0", "from 1 to 4096"]),
        ({"nodes": "2.5"}, ["nodes=2.5"]),
        ({"zone": "us-east-1"}, ["zone=us-east-1", "use1-az4"]),
        ({"os": "alinux2"}, ["os=alinux2", "ubuntu2204, ubuntu2404, alinux2023"]),
        ({"fsx_gib": "3600"}, ["fsx_gib=3600", "the next is 4800"]),
        ({"fsx_mbps_per_tib": "200"}, ["fsx_mbps_per_tib=200", "125, 250, 500, 1000"]),
        ({"cluster_name": "MyTeam"}, ["type:    -c cluster_name=my-team"]),
        ({"cluster_name": "1st"}, ["cluster_name=1st", "a letter, then letters, digits and hyphens"]),
        ({"cluster_name": "trainingcluster-network"}, ["the name of another stack of this app"]),
        ({"capacity": "on-demand"}, ["capacity=on-demand", "ondemand, spot, reservation:cr-..."]),
        ({"capacity": "reservation"}, ["capacity=reservation", "reservation:cr-..."]),
        ({"capacity": "reservation:cr-12"}, ["17 hex digits"]),
        ({"image": "ami-1"}, ["image=ami-1", "official, build, an AMI id", "-c image=official"]),
        ({"head_node_type": "c7g.4xlarge"}, ["c7g.4xlarge is arm64", "-c head_node_type=c5.4xlarge"]),
        ({"head_root_gib": "8"}, ["head_root_gib=8", "from 40 to 16384", "-c head_root_gib=256"]),
        ({"cpu_queue": "yes"}, ["cpu_queue=yes", "off, on, an instance type"]),
        ({"login_nodes": "-1"}, ["login_nodes=-1", "from 0 to 10"]),
        ({"accounting": "yes"}, ["accounting=yes", "off, new, or host[:port]"]),
        ({"vpc_id": "vpc-mine"}, ["vpc_id=vpc-mine", "17 hex digits"]),
        ({"efs_mibps": "2048"}, ["efs_mibps=2048", "from 1 to 1024"]),
        ({"ssh_from": "anywhere"}, ["ssh_from=anywhere: not an IPv4 network", "-c ssh_from=203.0.113.0/24"]),
        ({"ssh_from": "203.0.113.7/24"}, ["has host bits set"]),
        ({"tags": "team"}, ['"team" is not KEY=VALUE', "-c tags=team=nlp,project=gpt2"]),
        ({"tags": "a=1,a=2"}, ['"a" is given twice']),
        ({"tags": "aws:team=1"}, ["keys that start with aws:"]),
        ({"permissions_boundary": "boundary"}, ["an ARN such as arn:aws:iam::123456789012:policy/boundary"]),
        ({"bucket_name": "My_Bucket"}, ["bucket_name=My_Bucket", "lower-case letters"]),
        ({"bucket_name": "a..b"}, ["bucket_name=a..b"]),
        ({"tags": "AWS:team=1"}, ["keys that start with aws:"]),
        ({"fsx_type": "persistent1"}, ["allowed: persistent2, scratch2"]),
        ({"home": "fsx"}, ["allowed: ebs, efs"]),
        ({"pcluster_version": "3.15.0"}, ["another version's", f"-c pcluster_version={PCLUSTER_VERSION}"]),
        (
            {"budget_usd": "0", "alarm_email": "me@example.com"},
            ["a whole number from 1", "-c budget_usd=5000"],
        ),
        ({"budget_usd": "12.50"}, ["budget_usd=12.50", "a whole number from 1"]),
        ({"alarm_email": "me"}, ["alarm_email=me", "an e-mail address", "-c alarm_email=me@example.com"]),
        ({"family": "p6", "nodes": "-1"}, ["2 problems", "family=p6", "nodes=-1"]),
    ],
)
def test_a_wrong_flag_says_what_is_wrong_and_what_is_allowed(
    context: dict[str, str], words: list[str]
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read_settings(context)
    for word in words:
        assert word in str(raised.value)


def test_another_cluster_name_is_another_stack() -> None:
    assert read_settings({}).stack_name == "TrainingClusterStack"
    assert read_settings({"cluster_name": "b"}).stack_name == "TrainingClusterStack-b"


def test_every_pattern_has_its_words_and_what_to_type() -> None:
    for name, info in Settings.model_fields.items():
        if any(getattr(each, "pattern", None) for each in info.metadata):
            assert takes_in_words(info)
            with pytest.raises(ConfigurationError, match=r"allowed: .*\n    type:    -c "):
                read_settings({name: "\t"})
