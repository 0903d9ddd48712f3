"""Lambda layer with the ParallelCluster library: AWS's own, or the one that `make layer` built."""

from pathlib import Path
from typing import Literal

from aws_cdk import Annotations, Aws
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.functions.built_layer import BUILT_LAYERS, find_built_layer

# Runtime of both layers, so of the provider's functions; built_layer.py has both as text.
RUNTIME = lambda_.Runtime.PYTHON_3_12
ARCHITECTURE = lambda_.Architecture.X86_64


def library_layer(
    scope: Construct, *, source: Literal["hosted", "build"], built_layers: Path = BUILT_LAYERS
) -> lambda_.LayerVersion:
    """Add the layer to a scope.

    Args:
        scope: parent of the layer, whose id is ParallelClusterLayer.
        source: hosted, by AWS in every region; build, by `make layer` on this machine.
        built_layers: folder of the built layers.

    Raises:
        ConfigurationError: source is build, and the layer was not built, or was built from something else.
    """
    hosted = source == "hosted"
    return lambda_.LayerVersion(
        scope,
        "ParallelClusterLayer",
        code=_hosted(scope) if hosted else lambda_.Code.from_asset(str(find_built_layer(built_layers))),
        compatible_runtimes=[RUNTIME],
        compatible_architectures=[ARCHITECTURE],
        description=f"aws-parallelcluster {PCLUSTER_VERSION}, "
        + ("as AWS publishes it" if hosted else "built from this app's locks"),
    )


def _hosted(scope: Construct) -> lambda_.Code:
    bucket = s3.Bucket.from_bucket_name(scope, "PublishedLayers", f"{Aws.REGION}-aws-parallelcluster")
    Annotations.of(bucket).acknowledge_warning(
        "@aws-cdk/aws-lambda:codeFromBucketObjectVersionNotSpecified",
        "AWS's own bucket; the key holds the version, and its content never changes",
    )
    key = f"parallelcluster/{PCLUSTER_VERSION}/layers/aws-parallelcluster/lambda-layer.zip"
    return lambda_.Code.from_bucket(bucket, key)
