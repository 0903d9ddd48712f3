"""A plain app with some of the same resources: a VPC, FSx for Lustre, a custom resource and its provider."""

import aws_cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_lambda as lambda_
from aws_cdk import custom_resources

app = aws_cdk.App()
stack = aws_cdk.Stack(app, "Plain")
vpc = ec2.Vpc(stack, "Vpc", max_azs=1, nat_gateways=1)
fsx.LustreFileSystem(
    stack,
    "Lustre",
    vpc=vpc,
    vpc_subnet=vpc.private_subnets[0],
    storage_capacity_gib=1200,
    lustre_configuration=fsx.LustreConfiguration(deployment_type=fsx.LustreDeploymentType.SCRATCH_2),
)
handler = lambda_.Function(
    stack,
    "Handler",
    runtime=lambda_.Runtime.PYTHON_3_12,
    handler="index.handler",
    code=lambda_.Code.from_inline("def handler(event, context):\n    return {}\n"),
)
provider = custom_resources.Provider(stack, "Provider", on_event_handler=handler)
aws_cdk.CustomResource(stack, "Cluster", service_token=provider.service_token)
app.synth()
