"""Proof that everything in an app that keeps data is encrypted; resources of a new kind have to be placed."""

from collections.abc import Callable

from tests.unit.stacks.security_proofs import App, Json, denies_without_tls
from training_cluster.acknowledgements import flat


def _bucket(bucket: Json) -> bool:
    rules = bucket.get("BucketEncryption", {}).get("ServerSideEncryptionConfiguration", [])
    return any(each.get("ServerSideEncryptionByDefault", {}).get("SSEAlgorithm") for each in rules)


def _efs(system: Json) -> bool:
    return system.get("Encrypted") is True


def _lustre(system: Json) -> bool:
    # All of them are: PERSISTENT with the key aws/fsx unless another is named, SCRATCH with keys of FSx
    # (FSx for Lustre guide, "Encrypting data at rest"). Nothing turns it off: only its kind can be asked.
    kind = system.get("LustreConfiguration", {}).get("DeploymentType")
    return system.get("FileSystemType") == "LUSTRE" and kind in ("PERSISTENT_2", "SCRATCH_2")


def _database(cluster: Json) -> bool:
    return cluster.get("StorageEncrypted") is True


def _database_instance(instance: Json) -> bool:
    # Aurora's storage is the cluster's.
    return "DBClusterIdentifier" in instance or instance.get("StorageEncrypted") is True


def _image_recipe(recipe: Json) -> bool:
    # The snapshots of its images are as the disks that they are of.
    disks = recipe.get("BlockDeviceMappings", [])
    return bool(disks) and all(each.get("Ebs", {}).get("Encrypted") is True for each in disks)


STORES: dict[str, Callable[[Json], bool]] = {
    "AWS::EFS::FileSystem": _efs,
    "AWS::FSx::FileSystem": _lustre,
    "AWS::ImageBuilder::ImageRecipe": _image_recipe,
    "AWS::RDS::DBCluster": _database,
    "AWS::RDS::DBInstance": _database_instance,
    "AWS::S3::Bucket": _bucket,
}

# Encrypted whatever a template says: guides of Lambda and Step Functions, "Encryption at rest"; of CloudWatch
# Logs, "Encrypt log data"; of Secrets Manager, "Secret encryption and decryption". The private half of a key
# pair is a SecureString of Systems Manager (CloudFormation, AWS::EC2::KeyPair).
ALWAYS_ENCRYPTED = {
    *("AWS::EC2::KeyPair", "AWS::Logs::LogGroup", "AWS::SecretsManager::Secret"),
    *("AWS::Lambda::Function", "AWS::Lambda::LayerVersion", "AWS::StepFunctions::StateMachine"),
}

# They keep nothing of anybody's.
NO_STORES = {
    *("AWS::Budgets::Budget", "AWS::CloudFormation::WaitConditionHandle"),
    *("AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard"),
    *("AWS::EC2::EIP", "AWS::EC2::FlowLog", "AWS::EC2::InternetGateway", "AWS::EC2::NatGateway"),
    *("AWS::EC2::PlacementGroup", "AWS::EC2::Route", "AWS::EC2::RouteTable", "AWS::EC2::SecurityGroup"),
    *("AWS::EC2::SecurityGroupEgress", "AWS::EC2::SecurityGroupIngress", "AWS::EC2::Subnet"),
    *("AWS::EC2::SubnetRouteTableAssociation", "AWS::EC2::VPC", "AWS::EC2::VPCEndpoint"),
    *("AWS::EC2::VPCGatewayAttachment", "AWS::EFS::MountTarget", "AWS::FSx::DataRepositoryAssociation"),
    *("AWS::IAM::InstanceProfile", "AWS::IAM::ManagedPolicy", "AWS::IAM::Policy", "AWS::IAM::Role"),
    # A component is a script of this repository; what images hold is their recipe's.
    *(f"AWS::ImageBuilder::{each}" for each in ("Component", "DistributionConfiguration", "Image")),
    *(f"AWS::ImageBuilder::{each}" for each in ("ImagePipeline", "LifecyclePolicy")),
    "AWS::ImageBuilder::InfrastructureConfiguration",
    *("AWS::Lambda::Permission", "AWS::RDS::DBClusterParameterGroup", "AWS::RDS::DBSubnetGroup"),
    *("AWS::S3::BucketPolicy", "AWS::SNS::Subscription", "AWS::SNS::TopicPolicy"),
    # Passes on what alarms say, and over TLS only: a proof of its own.
    "AWS::SNS::Topic",
}


def topics_in_the_clear(app: App) -> list[str]:
    """List the topics that accept messages without TLS."""
    safe = {
        flat(topic)
        for _, policy in app.resources("AWS::SNS::TopicPolicy")
        for topic in policy["Topics"]
        if any(denies_without_tls(statement) for statement in policy["PolicyDocument"]["Statement"])
    }
    return [name for name, _ in app.resources("AWS::SNS::Topic") if f"<{name.partition('/')[2]}>" not in safe]


def unencrypted(app: App) -> list[str]:
    """List stores in the templates, and disks and mounts in the cluster config, that are not encrypted."""
    return [*_in_templates(app), *_in_config(app.config)]


def _in_templates(app: App) -> list[str]:
    found = []
    for kind in sorted({each["Type"] for t in app.templates.values() for each in t["Resources"].values()}):
        if kind in STORES:
            found += [
                f"{name} is not encrypted"
                for name, properties in app.resources(kind)
                if not STORES[kind](properties)
            ]
        elif not (kind in ALWAYS_ENCRYPTED or kind in NO_STORES or kind.startswith("Custom::")):
            found.append(
                f"{kind}: say in encryption_proofs.py whether it keeps data, and how that is encrypted"
            )
    return found


def _in_config(config: Json) -> list[str]:
    disks = {"HeadNode": config["HeadNode"].get("LocalStorage", {})}
    for queue in config["Scheduling"]["SlurmQueues"]:
        disks[queue["Name"]] = queue.get("ComputeSettings", {}).get("LocalStorage", {})
    found = [name for name, disk in disks.items() if disk.get("RootVolume", {}).get("Encrypted") is not True]
    for pool in config.get("LoginNodes", {}).get("Pools", []):
        # The library gives them an encrypted one, and takes no word on it (cluster/config.py: LoginNodes).
        if "LocalStorage" in pool:
            found.append(pool["Name"])
    for storage in config["SharedStorage"]:
        settings = storage.get(f"{storage['StorageType']}Settings", {})
        # One without an id would be ParallelCluster's to make.
        if "FileSystemId" not in settings or (
            storage["StorageType"] == "Efs" and settings.get("EncryptionInTransit") is not True
        ):
            found.append(storage["Name"])
    return [f"{each} of the cluster config is not encrypted" for each in found]
