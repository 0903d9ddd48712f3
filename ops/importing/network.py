"""Network of a cluster config: subnets, groups, SSH and login nodes."""

from ops.importing.flags import take
from ops.importing.translation import Config, Translation, nodes_of

_UNSET_VPC = "vpc-00000000"


def take_network(config: Config, to: Translation) -> None:
    """Take subnets, security groups, the network that reaches port 22, and login nodes."""
    _subnets(config, to)
    _groups(config, to)
    _ssh(config, to)
    _login(config, to)


def _subnets(config: Config, to: Translation) -> None:
    head = config["HeadNode"].get("Networking", {})
    queues = config["Scheduling"].get("SlurmQueues", [])
    subnets = [each for queue in queues for each in queue.get("Networking", {}).get("SubnetIds", [])]
    path = "HeadNode.Networking.SubnetId"
    if head.get("SubnetId") in subnets:
        to.carry(path)
        to.flags["public_access"], public = "off", True
    else:
        public = take(to, "public_subnet_id", head.get("SubnetId"), path)
    private = bool(subnets) and take(
        to, "private_subnet_id", subnets[0], "Scheduling.SlurmQueues[].Networking.SubnetIds"
    )
    if public and private:
        to.flags["vpc_id"] = _UNSET_VPC
        to.fill.append(
            f"vpc_id: no cluster config has it: aws ec2 describe-subnets --subnet-ids {subnets[0]} "
            "--query Subnets[0].VpcId"
        )
    else:
        for flag in ("public_subnet_id", "private_subnet_id", "public_access"):
            to.flags.pop(flag, None)


def _ssh(config: Config, to: Translation) -> None:
    """Take the network that reaches port 22, and say what is open there and here."""
    head, path = config["HeadNode"], "HeadNode.Ssh.AllowedIps"
    allowed, dcv = head.get("Ssh", {}).get("AllowedIps"), head.get("Dcv", {}).get("Enabled")
    to.carry(path)
    if "SecurityGroups" in head.get("Networking", {}):
        if allowed:
            to.replaced.append(f"{path}: {allowed}: left out: without effect with SecurityGroups")
        return
    if dcv:
        to.replaced.append(
            "HeadNode.Dcv.AllowedIps: the app's security group does not open the port of DCV: forward it "
            "through Session Manager, or add a group of your own (AdditionalSecurityGroups)"
        )
    if allowed is None:
        to.replaced.append(
            f"{path}: ParallelCluster opens port 22 of head and login nodes to 0.0.0.0/0; here it is closed: "
            "connect with trainctl connect, or type -c ssh_from=YOUR.ADDRESS/32"
        )
    elif take(to, "ssh_from", allowed, path):
        to.replaced.append(f"{path}: {allowed}: -c ssh_from opens port 22 of compute nodes, too")
        if str(allowed).endswith("/0"):
            to.flags["ssh_from_anywhere"] = "yes"


def _groups(config: Config, to: Translation) -> None:
    """Take one group of all nodes as a flag; other groups become additional ones."""
    to.carry(*(f"{path}.Networking.SecurityGroups" for path, _ in nodes_of(config)))
    groups = {tuple(node.get("Networking", {}).get("SecurityGroups", ())) for _, node in nodes_of(config)}
    (named, *others) = groups
    if not others and len(named) == 1:
        take(to, "security_group_id", named[0], "")
        return
    for path, node in nodes_of(config):
        networking = node.get("Networking", {})
        if given := networking.get("SecurityGroups"):
            more = [*given, *networking.get("AdditionalSecurityGroups", [])]
            networking["AdditionalSecurityGroups"] = list(dict.fromkeys(more))
            to.replaced.append(
                f"{path}.Networking.SecurityGroups: {', '.join(given)} in addition to our group, in which "
                "the nodes reach each other"
            )


def _login(config: Config, to: Translation) -> None:
    pools = config.get("LoginNodes", {}).get("Pools", [])
    head = config["HeadNode"]
    ssh = head.get("Ssh", {}).get("AllowedIps")
    for index, pool in enumerate(pools):
        path = f"LoginNodes.Pools[{pool.get('Name')}]"
        if not index:
            take(to, "login_nodes", pool.get("Count", 1), f"{path}.Count")
        to.carry(f"{path}.Name")
        if pool.get("Networking", {}).get("SubnetIds") == [head.get("Networking", {}).get("SubnetId")]:
            to.carry(f"{path}.Networking.SubnetIds")
        own = pool.get("Ssh", {}).get("AllowedIps")
        to.carry(f"{path}.Ssh")
        if own not in (None, ssh) and "SecurityGroups" not in pool.get("Networking", {}):
            words = "-c ssh_from is one network for all nodes, HeadNode.Ssh.AllowedIps"
            to.lose(f"{path}.Ssh.AllowedIps", own, words)
