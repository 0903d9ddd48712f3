"""One rehearsal from end to end: local AWS, deploy, local Slurm, training, report, tear-down."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.markup import escape

from rehearsal import report
from rehearsal.bootstrap import boot, node_variables
from rehearsal.cdk import CdkCli
from rehearsal.deployed import DeployedCluster, read_deployed_cluster
from rehearsal.local_aws.address import ACCOUNT, REGION, LocalAwsAddress
from rehearsal.local_aws.process import LocalAws, LocalAwsParts
from rehearsal.local_slurm import LocalSlurm
from rehearsal.narrator import Narrator
from rehearsal.problems import RehearsalError
from rehearsal.workspace import PROJECT, Workspace
from training_cluster.families import Family
from training_cluster.settings import Settings

MAX_NODES = 8
"""More slurmd processes than that tell nothing new on one machine."""
JOB_TIMEOUT_S = 1500
_LOG_LINES_SHOWN = 25


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a person chooses: make variables FAMILY, WORKLOAD, NODES, KEEP."""

    settings: Settings
    workload: str
    keep: bool

    @property
    def family(self) -> Family:
        """The catalog's entry of the chosen family."""
        return self.settings.family_facts


def workloads(assets: Path = PROJECT / "assets" / "training") -> tuple[str, ...]:
    """The workloads that can run: folders with a train.sh."""
    return tuple(sorted(path.parent.name for path in assets.glob("*/train.sh")))


class Rehearsal:
    """Runs the steps; whatever it started, it stops, in the order that works."""

    def __init__(self, *, options: Options, workspace: Workspace, narrator: Narrator) -> None:
        self._options, self._workspace, self._narrator = options, workspace, narrator

    def run(self) -> None:
        """Rehearse. Raises RehearsalError or SlurmError; KeyboardInterrupt tears down as well."""
        self._workspace.make_anew()
        with ExitStack() as running:
            address = self._start_local_aws(running)
            cdk = CdkCli(
                project=PROJECT,
                environment=address.client_environment() | dict([self._workspace.marker]),
                logs=self._workspace.logs,
                narrator=self._narrator,
            )
            cluster = self._deploy(cdk, address)
            slurm = self._start_local_slurm(running, cluster, address)
            training = self._train(slurm)
            self._report(training)
            if self._options.keep:
                running.pop_all()
                self._leave_running(address, slurm)
                return
            with self._narrator.step(
                "Tear down",
                "cdk destroy takes the cluster's stack; network, storage and data stay, as on AWS.",
            ):
                cdk.run(
                    "destroy",
                    "TrainingClusterStack",
                    "--force",
                    *self._context(),
                    output=self._cloud_assembly,
                )
                running.close()

    @property
    def _cloud_assembly(self) -> Path:
        return self._workspace.aws / "cdk.out"

    def _context(self) -> list[str]:
        settings = self._options.settings
        return ["-c", f"family={settings.family}", "-c", f"nodes={settings.nodes}"]

    def _start_local_aws(self, running: ExitStack) -> LocalAwsAddress:
        parts = LocalAwsParts(
            lambda_python=PROJECT / ".venv-pcluster" / "bin" / "python", node_modules=PROJECT / "node_modules"
        )
        local_aws = LocalAws(folder=self._workspace.aws, parts=parts, marker=self._workspace.marker)
        with self._narrator.step(
            "Local AWS",
            "One process on one loopback port answers for CloudFormation, Lambda, S3, EC2, FSx ...",
        ):
            running.callback(local_aws.stop)
            address = local_aws.start()
            self._narrator.say(f"{address.url}, account {ACCOUNT}, {REGION}")
        return address

    def _deploy(self, cdk: CdkCli, address: LocalAwsAddress) -> DeployedCluster:
        with self._narrator.step(
            "Deploy",
            "The real CDK CLI deploys; the real ParallelCluster library validates and creates the cluster.",
        ):
            cdk.run("bootstrap", f"aws://{ACCOUNT}/{REGION}", *self._context(), output=self._cloud_assembly)
            deploy = ("deploy", "TrainingClusterStack", "--require-approval", "never")
            cdk.run(*deploy, *self._context(), output=self._cloud_assembly)
            cluster = read_deployed_cluster(address, self._options.settings.cluster_name)
            self._narrator.say(
                f"ParallelCluster's own stack: {cluster.stack_status} ({cluster.resources} resources)"
            )
        return cluster

    def _start_local_slurm(
        self, running: ExitStack, cluster: DeployedCluster, address: LocalAwsAddress
    ) -> LocalSlurm:
        with self._narrator.step(
            "Local Slurm", "A real slurmctld, with the partitions and nodes of the config that was deployed."
        ):
            actions = {"HeadNode": cluster.head_node_action, "ComputeFleet": cluster.compute_node_action}
            for node_type, action in actions.items():
                boot(
                    node_type=node_type,
                    action=action,
                    address=address,
                    workspace=self._workspace,
                    narrator=self._narrator,
                )
            slurm = LocalSlurm(
                root=self._workspace.slurm,
                partitions=cluster.partitions,
                marker=self._workspace.marker,
                max_node_processes=MAX_NODES,
            )
            running.callback(slurm.stop)
            slurm.start()
            for partition in cluster.partitions:
                self._narrator.say(
                    f"partition {partition.name}: {', '.join(partition.node_names)} (powered down)"
                )
        return slurm

    def _train(self, slurm: LocalSlurm) -> report.Training:
        nodes, workload = self._options.settings.nodes, self._options.workload
        job_script = self._workspace.shared / "training" / "job.slurm"
        with self._narrator.step(
            "Train",
            f"{nodes} nodes start on demand and train {workload}; no {self._options.family.accelerator.name}"
            " is here, so it runs on the CPU with a tiny setting.",
        ):
            self._narrator.say(f"$ sbatch --nodes {nodes} /fsx/training/job.slurm {workload}")
            variables = node_variables(self._workspace) | {
                "TRAINING_VENVS": str(self._workspace.venvs),
                "TRAINING_REHEARSAL": "1",
            }
            job_id = slurm.submit(["--nodes", str(nodes), str(job_script), workload], env=variables)
            job = slurm.wait(job_id, timeout_s=JOB_TIMEOUT_S, on_line=self._narrator.say)
            if not job.is_completed:
                said = "\n".join(job.output.read_text(errors="replace").splitlines()[-_LOG_LINES_SHOWN:])
                raise RehearsalError(f"Job {job_id} ended as {job.state}. The end of {job.output}:\n{said}")
            metrics = self._run_folder(job_id) / "metrics.jsonl"
            return report.read_training(metrics, expected_world_size=nodes)

    def _run_folder(self, job_id: int) -> Path:
        return self._workspace.shared / "runs" / self._options.workload / f"job-{job_id}"

    def _report(self, training: report.Training) -> None:
        say, settings = self._narrator.console.print, self._options.settings
        with self._narrator.step("Report", "What was measured, where it lies, and what was not real."):
            png = self._workspace.report / "loss.png"
            title = f"{self._options.workload}, {training.world_size} nodes, rehearsed {settings.family}"
            report.draw_png_curve(training.losses, title=title, path=png)
            say(escape(report.draw_terminal_curve(training.losses)))
            self._narrator.say(
                f"loss {training.first_loss:.3f} -> {training.last_loss:.3f} in {training.steps} steps, "
                f"{training.tokens_per_s:,.0f} tokens/s, world size {training.world_size}"
            )
            for name, folder in (("metrics", "runs"), ("checkpoints", "checkpoints"), ("data", "datasets")):
                self._narrator.say(
                    f"{name + ':':13}{self._workspace.shared / folder / self._options.workload}"
                )
            self._narrator.say(f"{'loss curve:':13}{png}")
            for heading, lines in (("Real here:", report.REAL), ("Emulated, so not shown:", report.EMULATED)):
                say(f"   [bold]{heading}[/]")
                for line in lines:
                    self._narrator.say(f"  - {line}")

    def _leave_running(self, address: LocalAwsAddress, slurm: LocalSlurm) -> None:
        variables = (
            address.client_variables()
            | node_variables(self._workspace)
            | {
                "SLURM_CONF": slurm.client_env()["SLURM_CONF"],
                "TRAINING_VENVS": str(self._workspace.venvs),
                "TRAINING_REHEARSAL": "1",
            }
        )
        lines = [f"export {name}={shlex.quote(value)}" for name, value in sorted(variables.items())]
        bins = f"{PROJECT / '.venv' / 'bin'}:{PROJECT / 'node_modules' / '.bin'}"
        lines.append(f"export PATH={shlex.quote(bins)}:$PATH:/usr/sbin")
        self._workspace.env_file.write_text("\n".join(lines) + "\n")
        self._narrator.console.print(
            "\n[bold]Left running[/] (KEEP=1). In a shell of your own:\n"
            f"   source {self._workspace.env_file}\n"
            "   sinfo -a; aws cloudformation describe-stacks\n"
            "   sbatch --nodes 2 $TRAINING_SHARED/training/job.slurm gpt2\n"
            "End it with: make stop"
        )


@contextmanager
def summary(narrator: Narrator) -> Iterator[None]:
    """Print how long each step took, once all have ended."""
    yield
    total = sum(narrator.seconds.values())
    steps = ", ".join(f"{title.lower()} {seconds:.0f} s" for title, seconds in narrator.seconds.items())
    narrator.console.print(f"\n[bold green]Rehearsed in {total:.0f} s[/]: {steps}")
