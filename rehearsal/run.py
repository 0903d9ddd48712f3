"""One rehearsal from end to end: local AWS, deploy, local Slurm, training, report, tear-down."""

import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ops.report.record import Run
from rehearsal.bootstrap import SHIMS, job_files, job_variables
from rehearsal.cdk import CdkCli
from rehearsal.containers.compare import compare_losses, same_text
from rehearsal.containers.image import make_image
from rehearsal.deployed import DeployedCluster, read_deployed_cluster
from rehearsal.head_node import MAX_NODES, follow_deploys, new_slurm, open_shell, run_node_actions
from rehearsal.keep_running import leave_running, next_steps
from rehearsal.local_aws.address import ACCOUNT, REGION, LocalAwsAddress
from rehearsal.local_aws.process import LocalAws
from rehearsal.local_aws.rights.denied import refuse_denied_calls
from rehearsal.local_slurm import LocalSlurm
from rehearsal.local_slurm.ports import find_ports
from rehearsal.monitoring.boards import ask_until_complete, without_data
from rehearsal.monitoring.prometheus import Monitoring
from rehearsal.monitoring.scene import Scene
from rehearsal.narrator import Narrator
from rehearsal.problems import RehearsalError, tail
from rehearsal.prove import Proof, mount_disk, prove
from rehearsal.report import read_checked, show_report
from rehearsal.workspace import IMAGES, VENVS, Workspace
from training_cluster.catalog.family import Family
from training_cluster.flags.settings import Settings
from training_cluster.paths import ROOT

JOB_TIMEOUT_S = 1500
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOG_LINES_SHOWN = 25

# Title and explanation of each step, in the README's words.
_LOCAL_AWS = (
    "Local AWS",
    "One process on one port answers for CloudFormation, Lambda, S3, EC2, FSx and more.",
)
_DEPLOY = (
    "Deploy",
    "The real CDK CLI deploys; the real ParallelCluster library validates and creates the cluster.",
)
_LOCAL_SLURM = ("Local Slurm", "A real Slurm with the partitions and nodes of the config that was deployed.")
_METRICS = (
    "Metrics",
    "A real Prometheus asks a real node_exporter for each node; the nodes' own programs write.",
)
_REPORT = ("Report", "The measurements, their files, and what was emulated.")
_TEAR_DOWN = ("Tear down", "cdk destroy removes the cluster; network, storage and data remain, as on AWS.")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a rehearsal: the options of `trainctl rehearse`."""

    settings: Settings
    workload: str
    keep: bool
    container: bool = False
    """Train in a container, with an image that is made here."""
    cases: Sequence[str] = ()
    """Cases of `trainctl prove` instead of one training; they leave a node as a spare."""


def ignore_interrupts() -> None:
    """Ignore a second Ctrl-C or a SIGTERM after it, so that the clean-up is complete."""
    for number in INTERRUPTS:
        signal.signal(number, signal.SIG_IGN)


def workloads(assets: Path = ROOT / "assets" / "training") -> tuple[str, ...]:
    """List the workloads that can run: folders with a train.sh."""
    return tuple(sorted(path.parent.name for path in assets.glob("*/train.sh")))


def region_of(family: Family) -> str:
    """Return a region that has the family; us-east-1 if it has it, or if no region is known."""
    regions = sorted(family.zones, key=lambda region: (not region.startswith("us-"), region))
    return REGION if REGION in regions or not regions else regions[0]


class Rehearsal:
    """The steps of a rehearsal, which stops everything that it started, in the right order."""

    def __init__(self, *, options: Options, workspace: Workspace, narrator: Narrator) -> None:
        self._options, self._workspace, self._narrator = options, workspace, narrator
        self._metrics_since = 0.0

    def run(self) -> None:
        """Run all steps. Raises RehearsalError or SlurmError; KeyboardInterrupt stops everything as well."""
        self._workspace.make_anew()
        with ExitStack() as running:
            try:
                self._steps(running)
            except BaseException:
                ignore_interrupts()
                self._narrator.console.print("\nStopping what was started ...")
                raise

    def _steps(self, running: ExitStack) -> None:
        with ExitStack() as synthesis:
            address, cdk = self._start_local_aws(running, synthesis)
            cluster = self._deploy(cdk, address, synthesis)
        if "disk" in self._options.cases:  # before the nodes start
            mount_disk(self._workspace.shared / "checkpoints" / self._options.workload / "disk")
        slurm = self._start_local_slurm(running, cluster, address)
        scene = (
            self._start_monitoring(running, slurm) if self._options.settings.metrics == "prometheus" else None
        )
        if self._options.cases:
            self._prove(slurm, address)
        else:
            self._report(self._train(slurm, address))
        if scene:
            self._report_metrics(scene)
        if self._options.keep:
            running.pop_all()
            follow_deploys(address, self._workspace)
            settings = self._options.settings
            steps = next_steps(
                workspace=self._workspace,
                workload=self._options.workload,
                nodes=settings.nodes,
                metrics_url=scene.url if scene else None,
            )
            leave_running(
                workspace=self._workspace, address=address, slurm=slurm, steps=steps, narrator=self._narrator
            )
            return
        with self._narrator.step(*_TEAR_DOWN):
            self._cdk(cdk, address, "destroy", "TrainingClusterStack", "--force", "--app", self._assembly)
            running.close()

    @property
    def _assembly(self) -> str:
        """The folder of the cloud assembly, as a user types it."""
        return os.path.relpath(self._workspace.aws / "cdk.out", ROOT)

    @property
    def _flags(self) -> list[str]:
        settings = self._options.settings
        flags = ["-c", f"family={settings.family}", "-c", f"nodes={settings.nodes}"]
        if settings.metrics != "cloudwatch":
            flags += ["-c", f"metrics={settings.metrics}"]
        return flags

    @staticmethod
    def _cdk(cdk: CdkCli, address: LocalAwsAddress, *arguments: str) -> None:
        """Run a command of the CDK CLI; a call that lacked a right fails it, even if the command succeeds."""
        try:
            cdk.run(*arguments)
        finally:
            refuse_denied_calls(address)

    def _start_local_aws(self, running: ExitStack, synthesis: ExitStack) -> tuple[LocalAwsAddress, CdkCli]:
        """Start the local AWS, and meanwhile the synth, which needs no account."""
        local_aws = LocalAws(
            folder=self._workspace.aws,
            marker=self._workspace.marker,
            region=region_of(self._options.settings.family_facts),
        )
        with self._narrator.step(*_LOCAL_AWS):
            running.callback(local_aws.stop)
            address = local_aws.launch()
            cdk = CdkCli(
                project=ROOT,
                environment=address.client_environment() | dict([self._workspace.marker]),
                logs=self._workspace.logs,
                narrator=self._narrator,
                server_log=local_aws.log,
            )
            synthesis.enter_context(cdk.synthesis(*self._flags, output=self._workspace.aws / "cdk.out"))
            local_aws.wait()
            self._narrator.say(f"{address.url}, account {ACCOUNT}, {address.region}")
        return address, cdk

    def _deploy(self, cdk: CdkCli, address: LocalAwsAddress, synthesis: ExitStack) -> DeployedCluster:
        with self._narrator.step(*_DEPLOY):
            self._cdk(cdk, address, "bootstrap", f"aws://{ACCOUNT}/{address.region}")
            synthesis.close()  # waits for the synth
            deploy = ("deploy", "TrainingClusterStack", "--require-approval", "never")
            self._cdk(cdk, address, *deploy, "--app", self._assembly)
            cluster = read_deployed_cluster(address, self._options.settings.cluster_name)
            self._narrator.say(f"ParallelCluster's own stack: {cluster.stack_status}")
            if self._options.settings.node_image == "build":
                image_id = cluster.config["Scheduling"]["SlurmQueues"][0]["Image"]["CustomAmi"]
                self._narrator.say(
                    f"{image_id}: the image of ImageStack, a record for which no build step ran"
                )
        return cluster

    def _start_local_slurm(
        self, running: ExitStack, cluster: DeployedCluster, address: LocalAwsAddress
    ) -> LocalSlurm:
        with self._narrator.step(*_LOCAL_SLURM):
            run_node_actions(
                cluster,
                cluster.head_node_action,
                address=address,
                workspace=self._workspace,
                say=self._narrator.say,
            )
            slurm = new_slurm(cluster, self._workspace)
            running.callback(slurm.stop)
            slurm.start()
            if not slurm.has_separate_nodes:
                self._narrator.say("nodes share /tmp and /dev/shm here, since only root can separate them")
            open_shell(slurm, address, self._workspace)
            for each in slurm.left_out:
                self._narrator.say(f"not in this slurm.conf: {each}")
            for partition in cluster.partitions:
                self._narrator.say(f"partition {partition.name}: {', '.join(partition.node_names)}")
        return slurm

    def _start_monitoring(self, running: ExitStack, slurm: LocalSlurm) -> Scene:
        workspace, settings = self._workspace, self._options.settings
        bundle = workspace.node / "root" / "opt" / "training-cluster" / "bundles" / "current"
        scene = Scene(
            folder=workspace.metrics,
            bootstrap=bundle / "bootstrap",
            slurm=workspace.slurm,
            job_files=job_files(workspace),
            shared=workspace.shared,
            prices=bundle / "prices",
            cluster=settings.cluster_name,
            first_port=find_ports(MAX_NODES * 4),
            budget_usd=settings.budget_usd or 1000,
        )
        with self._narrator.step(*_METRICS):
            self._metrics_since = time.time()
            monitoring = Monitoring(scene, slurm.client_env())
            running.callback(monitoring.stop)
            monitoring.start()
            self._narrator.say(scene.url)
        return scene

    def _report_metrics(self, scene: Scene) -> None:
        """Run all boards' queries; print those without data."""
        with self._narrator.step("Boards", "Each query of each board runs on this Prometheus."):
            asked = ask_until_complete(scene.url, timeout_s=0, since=self._metrics_since)
            say = self._narrator.say
            say(f"{sum(each.series > 0 for each in asked)} of {len(asked)} queries have data here")
            hardware = [each for each in asked if not each.series and each.needs]
            say(f"{len(hardware)} need a GPU, Trainium, EFA or Lustre: docs/how-to/monitoring.md")
            for each in without_data(asked):
                say(f"no data: {each.board}, {each.panel}")

    def _prove(self, slurm: LocalSlurm, address: LocalAwsAddress) -> None:
        options, workspace = self._options, self._workspace
        variables, marker = job_variables(workspace, address), dict([workspace.marker])
        nodes = options.settings.nodes - 1
        proof = Proof(slurm, marker, workspace.shared, variables, options.workload, nodes)
        prove(proof, options.cases, self._narrator)

    def _train(self, slurm: LocalSlurm, address: LocalAwsAddress) -> Run:
        nodes, workload = self._options.settings.nodes, self._options.workload
        accelerator = self._options.settings.family_facts.accelerator
        lacking = "" if accelerator.kind == "none" else f", without the real nodes' {accelerator.name}"
        script = self._workspace.shared / "training" / "job.slurm"
        with self._narrator.step(
            "Train", f"{nodes} nodes start on demand and run a tiny {workload} on this CPU{lacking}."
        ):
            variables = job_variables(self._workspace, address)
            more: dict[str, str] = {}
            outside: Path | None = None
            if self._options.container:
                more, outside = self._outside(slurm, variables)
                more |= {"CONTAINER_IMAGE": str(self._image()), "CONTAINER_MOUNTS": f"{SHIMS}:{SHIMS}:ro"}
            shown = "".join(f"{name}={value} " for name, value in more.items())
            self._narrator.say(f"$ {shown}sbatch --nodes {nodes} {script} {workload}")
            job_id = self._job(slurm, ["--nodes", str(nodes), str(script), workload], variables | more)
            run_folder = self._workspace.shared / "runs" / workload / f"job-{job_id}"
            run = read_checked(run_folder, world_size=nodes)
            if outside:
                self._narrator.say(compare_losses(outside, run_folder / "metrics.jsonl"))
            return run

    def _job(self, slurm: LocalSlurm, argv: Sequence[str], variables: Mapping[str, str]) -> int:
        """Run a job to its end, and return its id. Raises RehearsalError if it fails."""
        job_id = slurm.submit(argv, env=variables)
        job = slurm.wait(job_id, timeout_s=JOB_TIMEOUT_S, on_line=self._narrator.say)
        if not job.is_completed:
            said = tail(job.output, lines=_LOG_LINES_SHOWN)
            raise RehearsalError(f"Job {job_id} ended as {job.state}. The end of {job.output}:\n{said}")
        return job_id

    def _outside(self, slurm: LocalSlurm, variables: Mapping[str, str]) -> tuple[dict[str, str], Path | None]:
        """Train outside of a container first; return the variables of the same training, and its metrics.

        The job also makes the environment whose packages the image gets. A workload without text only
        prepares.
        """
        shared, name = self._workspace.shared, self._options.workload
        script, nodes = shared / "training" / "job.slurm", str(self._options.settings.nodes)
        same = same_text(script.parent / name, shared / "datasets" / name)
        if not same:
            self._narrator.say(
                f"$ PREPARE_ONLY=1 sbatch --nodes 1 {script} {name}    for the image's packages"
            )
            prepared = {"PREPARE_ONLY": "1", "RUN_NAME": "prepare-image"}
            self._job(slurm, ["--nodes", "1", str(script), name], {**variables, **prepared})
            return {}, None
        shown = "".join(f"{key}={value} " for key, value in same.items())
        self._narrator.say(
            f"$ {shown}sbatch --nodes {nodes} {script} {name}    without a container, to compare"
        )
        job_id = self._job(slurm, ["--nodes", nodes, str(script), name], {**variables, **same})
        return same, shared / "runs" / name / f"job-{job_id}" / "metrics.jsonl"

    def _image(self) -> Path:
        """Make an image with the packages of the workload's environment."""
        name = self._options.workload
        made = [*VENVS.glob(f"{name}/requirements.sha256"), *VENVS.glob(f"{name}-*/requirements.sha256")]
        return make_image(IMAGES, environment=made[0].parent if made else None, say=self._narrator.say)

    def _report(self, run: Run) -> None:
        with self._narrator.step(*_REPORT):
            show_report(
                run,
                workspace=self._workspace,
                narrator=self._narrator,
                container=self._options.container,
            )
