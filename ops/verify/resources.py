"""Checks of the head node's instance and its cost, and of the images that ImageStack built."""

from ops.account.image_stacks import is_image_stack, usual_min
from ops.account.stacks import outputs_of, stack_statuses
from ops.verify.check import Check
from ops.verify.scene import Scene
from training_cluster.catalog.charges import lustre
from training_cluster.catalog.families import instance_hour, load_base
from training_cluster.image.names import CONTENT_TAG, IMAGE_TAG
from training_cluster.stack_names import STORAGE_STACK

_SSH = 22


def _takes_imdsv2_alone(scene: Scene) -> tuple[bool, str]:
    tokens = scene.instance.get("MetadataOptions", {}).get("HttpTokens", "not set")
    return tokens == "required", f"HttpTokens: {tokens}"


def _has_no_public_ssh(scene: Scene) -> tuple[bool, str]:
    groups = [each["GroupId"] for each in scene.instance["SecurityGroups"]]
    found = scene.client("ec2").describe_security_groups(GroupIds=groups)["SecurityGroups"]
    public = [
        rule
        for group in found
        for rule in group["IpPermissions"]
        if (rule["IpProtocol"] == "-1" or rule.get("FromPort", 0) <= _SSH <= rule.get("ToPort", 0))
        and (
            any(each["CidrIp"] == "0.0.0.0/0" for each in rule.get("IpRanges", []))
            or any(each["CidrIpv6"] == "::/0" for each in rule.get("Ipv6Ranges", []))
        )
    ]
    return not public, f"{len(public)} rules that open port {_SSH} to all, in {len(found)} groups"


def _volumes_are_encrypted(scene: Scene) -> tuple[bool, str]:
    filters = [{"Name": "attachment.instance-id", "Values": [scene.head_node.instance_id]}]
    volumes = scene.client("ec2").describe_volumes(Filters=filters)["Volumes"]
    encrypted = sum(each["Encrypted"] for each in volumes)
    return bool(volumes) and encrypted == len(volumes), f"{encrypted} of {len(volumes)} volumes"


def _cost_so_far(scene: Scene) -> tuple[bool, str]:
    type_, hours = scene.instance["InstanceType"], scene.uptime_h()
    price = instance_hour(type_)
    if price is None:
        return False, f"{hours:.1f} hours; the catalog has no price of {type_}"
    usd = price.usd * hours
    shown = f"about {usd:.2f} USD: {type_} for {hours:.1f} hours"
    if ids := scene.ids(STORAGE_STACK, "AWS::FSx::FileSystem"):
        base = load_base()
        system = scene.client("fsx").describe_file_systems(FileSystemIds=ids)["FileSystems"][0]
        config = system["LustreConfiguration"]
        month = lustre(
            "Lustre",
            base.prices,
            config["DeploymentType"],
            gib=system["StorageCapacity"],
            mbps_per_tib=config.get("PerUnitStorageThroughput"),
        )
        if month.usd_per_month is not None:
            usd += month.usd / base.prices.hours_per_month * hours
            shown = f"about {usd:.2f} USD: {type_} and {system['StorageCapacity']} GiB of Lustre"
            shown += f" for {hours:.1f} hours"
    return True, f"{shown}, at list prices of us-east-1"


def _images_are_stamped(scene: Scene) -> tuple[bool, str]:
    names = [each for each in stack_statuses(scene.client("cloudformation")) if is_image_stack(each)]
    if not names:
        return True, "no ImageStack: the nodes have an official image or your own"
    faults = []
    for name in names:
        image_id = outputs_of(scene.stack(name))["ImageId"]
        images = scene.client("ec2").describe_images(ImageIds=[image_id])["Images"]
        tags = {each["Key"]: each["Value"] for image in images for each in image.get("Tags", [])}
        if [image["State"] for image in images] != ["available"]:
            faults.append(f"{name}: no available AMI")
        faults += [f"{name}: no tag {key}" for key in (IMAGE_TAG, CONTENT_TAG) if key not in tags]
    usual = ", ".join(f"{name} (usually {usual_min(name)} minutes)" for name in names)
    return not faults, "; ".join(faults) or f"stamped: {usual}"


CHECKS = (
    Check(
        id="imdsv2",
        claim="The head node accepts only version 2 of the instance metadata service.",
        expected="HttpTokens: required",
        not_in_rehearsal="The local EC2 ignores the metadata options of launch templates.",
        look=_takes_imdsv2_alone,
        only_on_aws=True,
    ),
    Check(
        id="no-public-ssh",
        claim="The internet cannot reach the head node's SSH port, unless ssh_from_anywhere allows it.",
        expected="no rule for 0.0.0.0/0 or ::/0",
        not_in_rehearsal="No packet is sent.",
        look=_has_no_public_ssh,
    ),
    Check(
        id="encrypted-volumes",
        claim="The head node's volumes are encrypted.",
        expected="all of them",
        not_in_rehearsal="The key, and the rights to it.",
        look=_volumes_are_encrypted,
        only_on_aws=True,
    ),
    Check(
        id="cost-so-far",
        claim="The catalog has the price of what runs without jobs: head node and Lustre, since its launch.",
        expected="a price; compare it with the bill, which also has nodes, NAT gateway, disks and EFS",
        not_in_rehearsal="The bill: nothing is paid.",
        look=_cost_so_far,
    ),
    Check(
        id="image-stamps",
        claim="Each ImageStack's AMI is available, and has the tags with its kind and its content's digest.",
        expected=f"the tags {IMAGE_TAG} and {CONTENT_TAG}",
        not_in_rehearsal="The build: no instance boots, and no component step runs.",
        look=_images_are_stamped,
    ),
)
