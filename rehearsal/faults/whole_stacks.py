"""Cases with the real CDK CLI and whole stacks: a person's commands after a failure."""

import contextlib
import itertools
import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import yaml

from rehearsal import processes
from rehearsal.deployed import read_deployed_cluster
from rehearsal.faults.cases import Case
from rehearsal.faults.scene import Scene
from rehearsal.faults.verdict import Verdict, message
from rehearsal.faults.worker import BYSTANDER, Site
from rehearsal.pcluster_process import PclusterProcess
from training_cluster.catalog.workloads import SYSTEM_PYTHONS
from training_cluster.paths import ROOT
from training_cluster.stack_names import CLUSTER_STACK, NETWORK_STACK, new_key_pair

_TIMEOUT_S = 120.0


def _expect(what: str, holds: object) -> None:
    if not holds:
        raise AssertionError(what)


def _typed(scene: Scene, reasons: list[str], refusal: str, flag: str, **flags: str) -> Scene:
    """Deploy with the flag that a refusal says to type; return the scene of the deployed cluster."""
    said = next((each for each in reasons if refusal in each), "")
    found = re.search(rf"-c {flag}=([\w-]+)", said)
    assert found, f"no -c {flag} in {reasons}"
    given = {"cluster_name": scene.name, flag: found[1], **flags}
    typed = Scene(scene.site, given.pop("cluster_name"))
    _expect(f"a deploy with {found[0]}", typed.deploy(**given))
    return typed


def _head_node(behaviour: str, code: str) -> Callable[[Scene], None]:
    def act(scene: Scene) -> None:
        before = scene.saved()
        with scene.head_node(behaviour):
            _expect("a deploy whose head node fails has to fail", not scene.deploy())
        _expect(
            f"{scene.site.status(scene.name)}: the failed cluster is left",
            scene.site.status(scene.name) == "NONE",
        )
        _expect(f"no {code} in {scene.reasons()}", any(code in reason for reason in scene.reasons()))
        saved = {key.rpartition("/")[2] for key in scene.saved() - before}
        _expect(f"saved: {saved}", saved >= {"failures.json", "stack-events.json"})

    return act


def _kept(scene: Scene) -> None:
    with scene.head_node("fails"):
        _expect("it has to fail", not scene.deploy("--no-rollback"))
    _expect(f"the head node is gone: {scene.site.status(scene.name)}", scene.instances("HeadNode"))
    # Without a terminal the CLI cannot ask about a roll back first: `cdk rollback`, or this.
    _expect("the same deploy again", scene.deploy("--no-rollback"))


def _killed(scene: Scene) -> None:
    """Kill the polling function repeatedly while the cluster is being created."""
    with subprocess.Popen(["cdk", *scene.deploy_command()], **_quiet(scene)) as deploy:
        _wait_for(lambda: scene.site.status(scene.name) == "CREATE_IN_PROGRESS")
        while scene.site.status(scene.stack_name) == "CREATE_IN_PROGRESS" and scene.request() == "Create":
            _kill_functions(scene)
        _expect("a deploy whose function was killed has to fail", deploy.wait(_TIMEOUT_S))


def _quiet(scene: Scene) -> dict[str, Any]:
    cli = ROOT / "node_modules" / ".bin"
    path = f"{cli}{os.pathsep}{scene.site.environment['PATH']}"
    nothing = subprocess.DEVNULL
    environment = {**scene.site.environment, "PATH": path}
    return {"cwd": ROOT, "env": environment, "stdin": nothing, "stdout": nothing, "stderr": nothing}


def _kill_functions(scene: Scene) -> None:
    """Send SIGKILL to the provider's own functions."""
    for process in processes.find({"TMPDIR": str(scene.site.address.tmp)}):
        with contextlib.suppress(psutil.Error):
            name = process.environ().get("AWS_LAMBDA_FUNCTION_NAME", "")
            if scene.name in name and "IsComplet" in name and "framework" not in name.lower():
                process.kill()


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not condition():
        _expect("it took too long", time.monotonic() < deadline)
        time.sleep(0.02)


def _failed_update(scene: Scene) -> None:
    _expect("the first deploy", scene.deploy())
    with scene.head_node("fails"):
        _expect("it has to fail", not scene.deploy(nodes="4"))
    _expect(
        scene.site.status(scene.stack_name), scene.site.status(scene.stack_name) == "UPDATE_ROLLBACK_COMPLETE"
    )


def _impossible(scene: Scene) -> None:
    _expect("the first deploy", scene.deploy())
    deployed = read_deployed_cluster(scene.site.address, scene.name).config["Image"]["Os"]
    other = next(name for name in SYSTEM_PYTHONS if name != deployed)
    _expect("it has to fail", not scene.deploy(os=other))
    other_cluster = _typed(scene, scene.reasons(), f"={scene.name}-2", "cluster_name", os=other)
    _expect("the destroy", other_cluster.destroy(os=other))


def _forgotten(scene: Scene) -> None:
    """Leave out a flag of the last deploy: no stack changes until the deploy says that it goes."""
    mail = "me@example.com"
    _expect("the first deploy", scene.deploy(alarm_email=mail, nodes="4"))
    before, others = scene.templates(), scene.site.events(scene.stack_name)
    _expect("it has to fail", not scene.deploy(nodes="4"))
    _expect("a template has changed", scene.templates() == before)
    _expect("another stack than the first was updated", scene.site.events(scene.stack_name) == others)
    reasons = scene.reasons(NETWORK_STACK)
    _expect(f"no advice in {reasons}", any(f"had -c alarm_email={mail}, and" in each for each in reasons))
    _expect("it has to fail, too", not scene.deploy("--exclusively", nodes="4"))
    reasons = scene.reasons()
    _expect(f"no advice in {reasons}", any(f"had -c alarm_email={mail}, and" in each for each in reasons))
    _expect("a deploy that gives it up", scene.deploy(alarm_email="", nodes="4"))


def _name_left_out(scene: Scene) -> None:
    """Deploy without a name where the default's stack has the former default: no cluster's stack changes."""
    site, stacks = scene.site, (CLUSTER_STACK, BYSTANDER)
    app, before = str(site.assemblies.of({}, site.environment)), [site.events(each) for each in stacks]
    deploy = ("deploy", CLUSTER_STACK, "--app", app, "--require-approval", "never")
    _expect("it has to fail", not site.succeeds(*deploy))
    _expect("a cluster's stack was updated", [site.events(each) for each in stacks] == before)
    _expect("it has to fail, too", not site.succeeds(*deploy, "--exclusively"))
    _expect("the cluster was updated", site.events(BYSTANDER) == before[1])
    for stack in (NETWORK_STACK, CLUSTER_STACK):
        reasons, advice = scene.reasons(stack), f"Type: -c cluster_name={BYSTANDER},"
        _expect(f"no advice in {reasons}", any(advice in each for each in reasons))
    named = str(site.assemblies.of({"cluster_name": BYSTANDER}, site.environment))
    _expect("with the name", site.succeeds("deploy", CLUSTER_STACK, "--app", named, *deploy[4:]))


def _key_pair_taken(scene: Scene) -> None:
    """Make a key pair of the cluster's name, and repeat the deploy: the pair remains, and can be used."""
    _expect("the first deploy", scene.deploy())
    _expect("the destroy", scene.destroy())
    ec2, key = scene.site.client("ec2"), new_key_pair(scene.name)
    ec2.create_key_pair(KeyName=key, KeyType="ed25519")
    _expect("it has to fail", not scene.deploy())
    _typed(scene, scene.reasons(), f"A key pair named {key} exists", "key_name")
    _expect("the destroy", scene.destroy(key_name=key))
    _expect("the pair is gone", ec2.describe_key_pairs(KeyNames=[key])["KeyPairs"])
    ec2.delete_key_pair(KeyName=key)


def _second_cluster(scene: Scene) -> None:
    """Deploy a second cluster and destroy it: the first cluster, its scripts and files remain."""
    _expect("the deploy", scene.deploy())
    _expect("the destroy", scene.destroy())
    _expect("the first cluster", scene.site.status(BYSTANDER).endswith("_COMPLETE"))


def _somebody_elses(scene: Scene) -> None:
    """Deploy over a cluster of `pcluster create-cluster`: only the deploy fails."""
    config = {key: value for key, value in scene.site.config.items() if key != "Tags"}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cluster.yaml"
        file.write_text(yaml.safe_dump(config))
        scene.pcluster("create-cluster", "-n", scene.name, "-c", str(file))
    _wait_for(lambda: scene.site.status(scene.name) == "CREATE_COMPLETE")
    _expect("it has to fail", not scene.deploy())
    _expect(f"theirs is {scene.site.status(scene.name)}", scene.site.status(scene.name) == "CREATE_COMPLETE")
    # The first stack of the deploy refuses it, and after a deploy of the same cluster the cluster's own.
    reasons = scene.reasons() + scene.reasons(NETWORK_STACK)
    _expect("the destroy", _typed(scene, reasons, "was not made by", "cluster_name").destroy())
    _remove_by_hand(scene)


def _by_hand(scene: Scene) -> None:
    _expect("the first deploy", scene.deploy())
    _remove_by_hand(scene)
    _expect("a deploy after somebody deleted the cluster", scene.deploy(nodes="3"))


def _remove_by_hand(scene: Scene) -> None:
    answer = json.loads(scene.pcluster("delete-cluster", "-n", scene.name))
    _expect(f"{answer}", answer["cluster"]["clusterStatus"] == "DELETE_IN_PROGRESS")
    _wait_for(lambda: scene.site.status(scene.name) == "NONE")


def _destroyed_with_jobs(scene: Scene) -> None:
    _expect("the first deploy", scene.deploy())
    ec2 = scene.site.client("ec2")
    tags = {"cluster-name": scene.name, "node-type": "Compute"}
    network = {
        "DeviceIndex": 0,
        "SubnetId": scene.site.config["HeadNode"]["Networking"]["SubnetId"],
        "DeleteOnTermination": True,
    }
    given = [{"Key": f"parallelcluster:{key}", "Value": value} for key, value in tags.items()]
    ec2.run_instances(
        ImageId=ec2.describe_images()["Images"][0]["ImageId"],
        MinCount=1,
        MaxCount=1,
        NetworkInterfaces=[network],
        TagSpecifications=[{"ResourceType": "instance", "Tags": given}],
    )
    _expect("a node runs", scene.instances("Compute"))
    _expect("the destroy", scene.destroy())
    _expect("nodes of a destroyed cluster run", not scene.instances("Compute"))


_CASES = {
    "the head node signals FAILURE": _head_node("fails", "OnNodeConfiguredExecutionFailure"),
    "the head node never signals": _head_node("never signals", "HeadNodeBootstrapFailure"),
    "deploy --no-rollback keeps the head node": _kept,
    "the Lambda is killed in mid-poll": _killed,
    "an update fails on the head node": _failed_update,
    "a change that no cluster can take": _impossible,
    "a deploy forgets a flag of the last one": _forgotten,
    "a deploy without a name, and the former default": _name_left_out,
    "a key pair of that name exists": _key_pair_taken,
    "a second cluster comes and goes": _second_cluster,
    "another person has a cluster of that name": _somebody_elses,
    "the cluster was deleted by hand": _by_hand,
    "destroy while jobs run": _destroyed_with_jobs,
}
CASES = [Case(id=f"stacks: {name}", question={"whole": name}) for name in _CASES]


def _free_scene(site: Site) -> Scene:
    """Return a scene with the first free name; a name remains in use if its case left a stack."""
    scenes = (Scene(site, f"whole-{number}") for number in itertools.count(1))
    return next(
        each
        for each in scenes
        if {each.site.status(each.stack_name), each.site.status(each.name)} == {"NONE"}
    )


def try_out(case: Case, site: Site, process: PclusterProcess) -> Verdict:
    """Run one case, deploy again, destroy, and report what remains."""
    started = time.monotonic()
    scene = _free_scene(site)
    before = process.ask({"id": "look"})
    stuck = []
    try:
        _CASES[str(case.question["whole"])](scene)
    except Exception as error:  # the verdict reports it, and the scene is removed below
        stuck.append(message(error))
    ended, reasons = scene.site.status(scene.stack_name), scene.reasons()
    if not scene.deploy(nodes="5"):
        stuck += ["the next deploy failed", *scene.reasons()[:2]]
    then = scene.site.status(scene.stack_name)
    if then not in ("CREATE_COMPLETE", "UPDATE_COMPLETE") or scene.fleet() != "RUNNING":
        stuck.append(f"{then}, fleet {scene.fleet()}")
    if not scene.destroy():
        stuck += ["destroy failed", *scene.reasons()[:2]]
    after = process.ask({"id": "look"})
    return Verdict(
        id=case.id,
        ended=ended,
        next=then,
        stuck=stuck,
        orphans=sorted({*after["resources"]} - {*before["resources"]}),
        lost=sorted({*before["data"]} - {*after["data"]}),
        reasons=reasons,
        seconds=round(time.monotonic() - started, 1),
    )
