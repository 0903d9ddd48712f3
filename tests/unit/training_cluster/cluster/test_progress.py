"""The parameter of the provider's notes: one for each stack of ours, also where two want one cluster."""

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Match, Template

from training_cluster.cluster.cluster import Cluster
from training_cluster.cluster.progress import progress_parameter


@pytest.mark.parametrize("stack_name", ["TrainingClusterStack", "Renamed"])
def test_both_functions_and_the_role_have_the_parameter_of_their_stack(stack_name: str) -> None:
    stack = cdk.Stack(cdk.App(), "Stack", stack_name=stack_name)
    bucket = s3.Bucket(stack, "Bucket")
    Cluster(
        stack,
        "Cluster",
        cluster_name="training",
        config={},
        scripts_bucket=bucket,
        on_busy="fail",
        layer="hosted",
    )
    template, parameter = Template.from_stack(stack), progress_parameter(stack_name)
    environment = {"Variables": Match.object_like({"PROGRESS_PARAMETER": parameter})}
    template.resource_properties_count_is("AWS::Lambda::Function", {"Environment": environment}, 2)
    resource = {"Fn::Join": ["", Match.array_with([f":parameter{parameter}"])]}
    statement = {"Sid": "ProgressParameter", "Resource": resource}
    document = {"PolicyDocument": {"Statement": Match.array_with([Match.object_like(statement)])}}
    policies = dict(template.find_resources("AWS::IAM::Policy"))
    policies |= template.find_resources("AWS::IAM::ManagedPolicy")
    kind = next(each["Type"] for each in policies.values() if "ProgressParameter" in str(each))
    template.has_resource_properties(kind, document)
