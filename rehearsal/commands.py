"""The commands of a rehearsal. Each runs alone, ends what it started, and returns an exit code."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

import psutil

from rehearsal import processes
from rehearsal.containers.base import check_machine
from rehearsal.head_node import MAX_NODES
from rehearsal.local_slurm import stop_processes
from rehearsal.narrator import Narrator
from rehearsal.problems import RehearsalError
from rehearsal.prove import CASES
from rehearsal.run import INTERRUPTS, Options, Rehearsal, ignore_interrupts, workloads
from rehearsal.workspace import Workspace
from training_cluster.flags.settings import Settings
from training_cluster.problems import ConfigurationError, did_you_mean
from training_cluster.rules.context import read_settings

FOLDER = Workspace().root
_WRONG_USAGE, _INTERRUPTED = 2, 130
_GRACE_S = 5.0
_LEAST_FREE = 2**20
STORES = ("cloudwatch", "prometheus")
"""Metrics stores that a rehearsal can run. Amazon Managed Service for Prometheus is not among them."""


def rehearse(
    *,
    family: str,
    workload: str,
    nodes: str,
    keep: bool,
    metrics: str = "cloudwatch",
    container: bool = False,
    folder: Path = FOLDER,
) -> int:
    """Rehearse a deploy and a training job on this machine; return the exit code."""

    def work(workspace: Workspace, narrator: Narrator) -> None:
        settings = _settings(family=family, workload=workload, nodes=nodes, metrics=metrics)
        if container:
            check_machine()
        options = Options(settings=settings, workload=workload, keep=keep, container=container)

        def run() -> None:
            Rehearsal(options=options, workspace=workspace, narrator=narrator).run()
            narrator.sum_up()

        run_alone(workspace, run, keep=keep)

    return run_command(work, folder)


def prove(*, workload: str, cases: Sequence[str], nodes: int, folder: Path = FOLDER) -> int:
    """Rehearse a deploy, and disturb trainings on its Slurm; return the exit code."""

    def work(workspace: Workspace, narrator: Narrator) -> None:
        settings = _settings(family="p4d", workload=workload, nodes=str(nodes + 1), metrics="cloudwatch")
        for case in cases:
            if case not in CASES:
                raise ConfigurationError(f"{case}: no such case.\n  allowed: {', '.join(CASES)}")
        chosen = [case for case in CASES if case in (cases or CASES)]
        if "disk" in chosen and os.geteuid():
            others = " ".join(case for case in chosen if case != "disk")
            raise ConfigurationError(
                f"disk: only root can mount a disk to fill.\n  type:    trainctl prove {workload} {others}"
            )
        options = Options(settings=settings, workload=workload, keep=False, cases=chosen)
        run_alone(workspace, Rehearsal(options=options, workspace=workspace, narrator=narrator).run)

    return run_command(work, folder)


def stop(folder: Path = FOLDER) -> int:
    """End a rehearsal that was kept or killed; return the exit code."""

    def work(workspace: Workspace, narrator: Narrator) -> None:
        running = processes.find(dict([workspace.marker]))
        _clean_up(workspace)
        narrator.console.print(f"Stopped {len(running)} processes." if running else "Nothing was running.")

    return run_command(work, folder)


def run_command(work: Callable[[Workspace, Narrator], None], folder: Path = FOLDER) -> int:
    """Call `work` with interrupts as exceptions; print a failure as one message; return the exit code."""
    # SIGINT as well: a shell's background jobs start with it ignored.
    former = {number: signal.signal(number, _interrupt) for number in INTERRUPTS}
    try:
        work(Workspace(root=folder.absolute()), Narrator())
    except KeyboardInterrupt:
        print("\nInterrupted: everything that was started is stopped.", file=sys.stderr)
        return _INTERRUPTED
    except ConfigurationError as error:
        print(f"\nRehearsal: {error}", file=sys.stderr)
        return _WRONG_USAGE
    except (RehearsalError, OSError) as error:
        fault = _fault_of(folder.absolute())
        if isinstance(error, OSError) and not fault:
            raise
        print(f"\nRehearsal: {error}{fault}", file=sys.stderr)
        return 1
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
    return 0


def run_alone(workspace: Workspace, work: Callable[[], None], *, keep: bool = False) -> None:
    """Do `work` while no other rehearsal runs, and end all processes that it started; not with `keep`.

    Raises:
        RehearsalError: another rehearsal is running.
    """
    with workspace.locked():
        _check_none_kept(workspace)
        try:
            work()
        except BaseException:
            keep = False
            raise
        finally:
            if not keep:
                _clean_up(workspace)


def _settings(*, family: str, workload: str, nodes: str, metrics: str) -> Settings:
    """Check what a person asked for; return the settings of the deploy."""
    names = workloads()
    if workload not in names:
        raise ConfigurationError(
            f"--workload {workload}: no such workload.{did_you_mean(workload, names)}\n"
            f"  allowed: {', '.join(names)}\n  type:    trainctl rehearse --workload {names[0]}"
        )
    if metrics not in STORES:
        raise ConfigurationError(
            f"--metrics {metrics}: cannot be rehearsed.\n  allowed: {', '.join(STORES)}\n"
            "  type:    trainctl rehearse --metrics prometheus"
        )
    settings = read_settings({"family": family, "nodes": nodes, "metrics": metrics})
    if settings.nodes > MAX_NODES:
        raise ConfigurationError(
            f"--nodes {settings.nodes}: too many for one machine.\n"
            f"  allowed: 1 to {MAX_NODES}\n  type:    trainctl rehearse --nodes 2"
        )
    return settings


def _check_none_kept(workspace: Workspace) -> None:
    if processes.find(dict([workspace.marker])):
        end = "make stop"
        if workspace.root != FOLDER:
            end = f"trainctl rehearse --stop --folder {shlex.quote(str(workspace.root))}"
        raise RehearsalError(f"A rehearsal that was kept or killed is still running. End it first: {end}")


def _clean_up(workspace: Workspace) -> None:
    """End all processes that have the marker. A second Ctrl-C does not interrupt this."""
    ignore_interrupts()
    marker = dict([workspace.marker])
    stop_processes(marker | {"SLURM_CONF": str(workspace.slurm / "slurm.conf")})
    processes.end(marker, grace_s=_GRACE_S)
    processes.check_none(marker)
    for each in psutil.disk_partitions(all=True):  # of `prove`
        if Path(each.mountpoint).is_relative_to(workspace.shared):
            subprocess.run(["umount", "--lazy", each.mountpoint], check=True)
    workspace.env_file.unlink(missing_ok=True)


def _fault_of(folder: Path) -> str:
    """Return a line about a file system that takes no files; empty for any other."""
    place = next(each for each in (folder, *folder.parents) if each.exists())
    shown = shlex.quote(str(place))
    if os.statvfs(place).f_flag & os.ST_RDONLY:
        return f"\n  cause:  the file system of {shown} is read-only"
    if shutil.disk_usage(place).free < _LEAST_FREE:
        return f"\n  cause:  the file system of {shown} is full\n  type:   df -h {shown}"
    return ""


def _interrupt(number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)
