"""`python -m rehearsal run|stop|validate|faults`: what `make rehearse`, `stop`, `validate`, `faults` call."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from rehearsal import processes
from rehearsal.faults.run import Plan, run_faults
from rehearsal.local_slurm import stop_processes
from rehearsal.narrator import Narrator
from rehearsal.problems import RehearsalError
from rehearsal.run import INTERRUPTS, MAX_NODES, Options, Rehearsal, ignore_interrupts, workloads
from rehearsal.validation.run import validate
from rehearsal.workspace import Workspace
from training_cluster.problems import ConfigurationError, did_you_mean
from training_cluster.rules.context import read_settings

_INTERRUPTED = 130
_GRACE_S = 5.0


def _options(arguments: argparse.Namespace) -> Options:
    names = workloads()
    if arguments.workload not in names:
        raise RehearsalError(
            f"WORKLOAD={arguments.workload}: no such workload.{did_you_mean(arguments.workload, names)}\n"
            f"  allowed: {', '.join(names)}\n  type:    make rehearse WORKLOAD={names[0]}"
        )
    if arguments.keep not in ("", "1"):
        raise RehearsalError(
            f"KEEP={arguments.keep}: not allowed.\n  allowed: 1, or nothing\n  type:    make rehearse KEEP=1"
        )
    settings = read_settings({"family": arguments.family, "nodes": arguments.nodes})
    if settings.nodes > MAX_NODES:
        raise RehearsalError(
            f"NODES={settings.nodes}: too many for one machine.\n"
            f"  allowed: 1 to {MAX_NODES}\n  type:    make rehearse NODES=2"
        )
    return Options(settings=settings, workload=arguments.workload, keep=arguments.keep == "1")


def _run(arguments: argparse.Namespace, workspace: Workspace, narrator: Narrator) -> None:
    options = _options(arguments)
    with workspace.locked():
        _check_none_kept(workspace)
        try:
            Rehearsal(options=options, workspace=workspace, narrator=narrator).run()
            narrator.sum_up()
        except BaseException:
            _clean_up(workspace)
            raise
        if not options.keep:
            _clean_up(workspace)


def run_alone(workspace: Workspace, work: Callable[[], None]) -> None:
    """Do `work` while no other rehearsal runs, and end what it started.

    Raises:
        RehearsalError: another one runs, or was kept or killed.
    """
    with workspace.locked():
        _check_none_kept(workspace)
        try:
            work()
        finally:
            _clean_up(workspace)


def _check_none_kept(workspace: Workspace) -> None:
    if processes.find(dict([workspace.marker])):
        raise RehearsalError("A rehearsal that was kept or killed is still running. End it first: make stop")


def _clean_up(workspace: Workspace) -> None:
    """End whatever still carries the marker, undisturbed by another Ctrl-C."""
    ignore_interrupts()
    marker = dict([workspace.marker])
    stop_processes(marker | {"SLURM_CONF": str(workspace.slurm / "slurm.conf")})
    processes.end(marker, grace_s=_GRACE_S)
    processes.check_none(marker)
    workspace.env_file.unlink(missing_ok=True)


def _stop(workspace: Workspace, narrator: Narrator) -> None:
    running = processes.find(dict([workspace.marker]))
    _clean_up(workspace)
    narrator.console.print(f"Stopped {len(running)} processes." if running else "Nothing was running.")


def _interrupt(number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)


def main() -> int:
    """Parse the command line, run, and turn every failure into one message and an exit code."""
    parser = argparse.ArgumentParser(prog="rehearsal", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Workspace().root, help="where it writes")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="rehearse a deploy and a training job on this machine")
    run.add_argument("--family", default="p4d", help="instance family (FAMILY)")
    run.add_argument("--workload", default="gpt2", help="folder of assets/training (WORKLOAD)")
    run.add_argument("--nodes", default="2", help=f"compute nodes, 1 to {MAX_NODES} (NODES)")
    run.add_argument("--keep", default="", help="1: leave it running (KEEP)")
    commands.add_parser("stop", help="end a rehearsal that was kept or killed")
    commands.add_parser("validate", help="compare our flags with the ParallelCluster library's validators")
    faults = commands.add_parser("faults", help="let AWS, head nodes and functions fail")
    faults.add_argument("--sample", type=int, default=0, help="how many cases; 0: all (SAMPLE)")
    faults.add_argument("--seed", type=int, default=1, help="which ones (SEED)")
    faults.add_argument("--only", nargs="*", default=[], help="words of which a case's name holds one (ONLY)")
    faults.add_argument("--all", default="", help="1: at the first, a middle and the last call (ALL)")
    arguments = parser.parse_args()
    # SIGINT as well: a shell's background jobs start with it ignored.
    for number in INTERRUPTS:
        signal.signal(number, _interrupt)
    narrator = Narrator()
    try:
        workspace = Workspace(root=arguments.folder.absolute())
        if arguments.command == "stop":
            _stop(workspace, narrator)
        elif arguments.command == "validate":
            run_alone(workspace, lambda: validate(workspace, narrator))
        elif arguments.command == "faults":
            if arguments.sample < 0:
                raise RehearsalError(
                    f"SAMPLE={arguments.sample}: not allowed.\n  allowed: a number of cases, or 0 for all\n"
                    "  type:    make faults SAMPLE=24"
                )
            plan = Plan(
                size=arguments.sample,
                seed=arguments.seed,
                only=tuple(arguments.only),
                everywhere=arguments.all == "1",
            )
            run_alone(workspace, lambda: run_faults(workspace, narrator, plan))
        else:
            _run(arguments, workspace, narrator)
    except KeyboardInterrupt:
        print("\nInterrupted: everything that was started is stopped.", file=sys.stderr)
        return _INTERRUPTED
    except (RehearsalError, ConfigurationError) as error:
        print(f"\nRehearsal: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
