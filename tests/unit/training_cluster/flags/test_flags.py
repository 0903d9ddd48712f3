"""Context flags: what is allowed, and what a person reads when one is wrong."""

import subprocess

import botocore.session
import pytest

from tests.unit.sentences import assert_sentences
from training_cluster.flags.account import TAG_MARKS
from training_cluster.flags.flag import facts_of
from training_cluster.flags.settings import Settings
from training_cluster.paths import PCLUSTER_PYTHON
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings


def test_keys_of_the_cdk_itself_are_not_checked() -> None:
    context = {"@aws-cdk/core:checkSecretUsage": True, "aws:cdk:bundling-stacks": ["**"], "nodes": "3"}
    assert read_settings(context).nodes == 3


WRONG = """
family=nonsense
familly=p4d
nodes=many
zone=us-east-1
fsx_gib=3600
cluster_name=MyTeam
cluster_name=slurm-x
cluster_name=slurm-slurm-x
cluster_name=trainingcluster-network
capacity=reservation:cr-12
image=ami-1
head_node_type=c7g.4xlarge
cpu_queue=yes
accounting=yes
ssh_from=anywhere
ssh_from=203.0.113.7/24
tags=team
tags=aws:team=1
tags=AWS:team=1
tags=cost=R&D
tags=team=nlp,Name=node
permissions_boundary=boundary
permissions_boundary=arn:aws:iam::123456789012:policy/cdk-${Qualifier}-b
permissions_boundary=arn:aws:iam::123456789012:policy/NA ME
permissions_boundary=arn:aws:iam::123456789012:policy/a;b
bucket_name=My_Bucket
pcluster_version=3.15.0
alarm_email=me
"""


def test_a_wrong_flag_says_what_is_allowed() -> None:
    """IAM and the private zone, for which names of clusters are, ignore case."""
    assert_sentences(
        "flags", WRONG.strip().splitlines(), lambda flag: read_settings(dict([flag.split("=", 1)]))
    )
    with pytest.raises(ConfigurationError, match=r"(?s)2 problems.*family=p6.*nodes=-1"):
        read_settings({"family": "p6", "nodes": "-1"})


def test_tags_take_the_characters_of_iam() -> None:
    model = botocore.session.get_session().get_service_model("iam")
    marks = TAG_MARKS.replace("-", r"\-")
    assert model.shape_for("tagValueType").metadata["pattern"] == rf"[\p{{L}}\p{{Z}}\p{{N}}{marks}]*"
    assert read_settings({"tags": f"équipe=Größe 7{TAG_MARKS}"}).own_tags == {"équipe": f"Größe 7{TAG_MARKS}"}


def test_every_pattern_has_its_words() -> None:
    for name, info in Settings.model_fields.items():
        if any(getattr(each, "pattern", None) for each in info.metadata):
            assert facts_of(info).takes
            with pytest.raises(ConfigurationError, match=r"allowed: .*\n    type:    -c "):
                read_settings({name: "\t"})


def test_names_that_share_nothing_are_allowed() -> None:
    for name in ("slurm", "slurmy", "a-slurm-x", "training-2", "image"):
        assert read_settings({"cluster_name": name}).cluster_name == name


def test_parallelcluster_still_names_its_tables_so() -> None:
    """The reason of the refusal, in the library itself."""
    ask = (
        "from pcluster.constants import PCLUSTER_DYNAMODB_PREFIX as a, PCLUSTER_SLURM_DYNAMODB_PREFIX as b\n"
        "assert a + 'slurm-x' == b + 'x', (a, b)"
    )
    subprocess.run([PCLUSTER_PYTHON, "-c", ask], check=True)


def test_the_cdks_own_boundary_needs_the_flag() -> None:
    """The CDK applies it to the app's roles alone, not to those that ParallelCluster makes."""
    key, boundary = "@aws-cdk/core:permissionsBoundary", "arn:aws:iam::123456789012:policy/team/bound"
    example = "arn:aws:iam::ACCOUNT:policy/NAME"
    for given, flag in (({"arn": boundary}, boundary), ({"name": "a"}, example), ('{"name": "a"}', example)):
        with pytest.raises(ConfigurationError, match="roles that ParallelCluster makes") as raised:
            read_settings({key: given})
        assert f"-c permissions_boundary={flag} (" in str(raised.value)
        assert f"-c '{key}='" in str(raised.value), "to have none"
    assert read_settings({key: ""}).permissions_boundary is None
    taken = read_settings({key: {"arn": boundary}, "permissions_boundary": boundary})
    assert taken.permissions_boundary == boundary


def test_a_value_of_another_type_is_clear() -> None:
    """As cdk.json may have."""
    refused = 0
    values = [0, 1.5, True, None, [], ["p4d"], {"a": "b"}]
    for flag in Settings.model_fields:
        for value in values:
            try:
                read_settings({flag: value})
            except ConfigurationError as error:
                refused += 1
                assert f"-c {flag}=" in str(error) or "type: " in str(error), (flag, value)
    assert refused > len(values) * len(Settings.model_fields) / 2
