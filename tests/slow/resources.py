"""Resources that tests of the local AWS make: a database, parts of templates."""

from typing import Any

from tests.slow.account import Account


def attribute(resource: str, name: str) -> dict[str, Any]:
    """Refer to an attribute of a resource of the same template."""
    return {"Fn::GetAtt": [resource, name]}


def as_outputs(**values: Any) -> dict[str, Any]:
    """Return the Outputs of a template."""
    return {name: {"Value": value} for name, value in values.items()}


def database(account: Account, *zones: int) -> dict[str, Any]:
    """Return a template of Slurm accounting: Aurora in subnets of these zones, by number, and its secret."""
    vpc = account.network.vpc
    secret = {"GenerateSecretString": {"ExcludePunctuation": True, "PasswordLength": 40}}
    password = {"Fn::Join": ["", ["{{resolve:secretsmanager:", {"Ref": "Secret"}, ":SecretString:::}}"]]}
    subnets = {
        f"Subnet{number}": {
            "Type": "AWS::EC2::Subnet",
            "Properties": {
                "VpcId": vpc,
                "CidrBlock": f"10.0.{16 + number}.0/24",
                "AvailabilityZone": {"Fn::Select": [zone, {"Fn::GetAZs": ""}]},
            },
        }
        for number, zone in enumerate(zones)
    }
    group = {"DBSubnetGroupDescription": "Slurm accounting", "SubnetIds": [{"Ref": name} for name in subnets]}
    cluster = {
        "Engine": "aurora-mysql",
        "MasterUsername": "slurm",
        "MasterUserPassword": password,
        "ServerlessV2ScalingConfiguration": {"MinCapacity": 0, "MaxCapacity": 4},
        "DBSubnetGroupName": {"Ref": "Group"},
    }
    instance = {
        "DBClusterIdentifier": {"Ref": "Cluster"},
        "DBInstanceClass": "db.serverless",
        "Engine": "aurora-mysql",
    }
    return {
        "Resources": subnets
        | {
            "Secret": {
                "Type": "AWS::SecretsManager::Secret",
                "DeletionPolicy": "Retain",
                "Properties": secret,
            },
            "Group": {"Type": "AWS::RDS::DBSubnetGroup", "Properties": group},
            "Cluster": {"Type": "AWS::RDS::DBCluster", "DeletionPolicy": "Snapshot", "Properties": cluster},
            "Instance": {"Type": "AWS::RDS::DBInstance", "Properties": instance},
        },
        "Outputs": as_outputs(
            Host=attribute("Cluster", "Endpoint.Address"),
            Port=attribute("Cluster", "Endpoint.Port"),
            Secret={"Ref": "Secret"},
        ),
    }
