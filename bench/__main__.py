"""`python -m bench [--only NAME ...]`: what `make bench` calls.

Each benchmark writes its raw figures to bench/results/NAME.json. docs/benchmarks.md is made from all files of
that folder, earlier runs' included.
"""

import argparse
import importlib
import signal
import sys
import time
from pathlib import Path

from bench.measuring import page
from bench.measuring.machine import describe_machine
from bench.measuring.programs import BaselineError
from rehearsal.problems import RehearsalError
from training_cluster.problems import did_you_mean

NAMES = "synth rehearsal training_cpu training_gpu restarts soak scale".split()
"""The benchmarks, in the order of the page; each a module here with `TITLE` and `measure() -> Result`."""
_FAILED, _USAGE, _INTERRUPTED = 1, 2, 130


def main() -> int:
    """Run the chosen benchmarks. A benchmark that fails is reported, and the others still run."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument(
        "--only", nargs="*", default=[], metavar="NAME", help=f"benchmarks to run: {', '.join(NAMES)}"
    )
    only = parser.parse_args().only
    # SIGTERM acts as Ctrl-C, so that a local Slurm and the measured programs are ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for name in only:
        if name not in NAMES:
            print(
                f"ONLY={name}: no such benchmark.{did_you_mean(name, NAMES)}\n  allowed: {', '.join(NAMES)}\n"
                f"  type:    make bench ONLY={NAMES[0]}",
                file=sys.stderr,
            )
            return _USAGE
    failed = []
    try:
        for name in only or NAMES:
            if not _one(name):
                failed.append(name)
    except KeyboardInterrupt:
        print("\nInterrupted: what was measured so far is kept in bench/results.", file=sys.stderr)
        return _INTERRUPTED
    page.write(NAMES)
    print(f"wrote {page.PAGE.relative_to(Path.cwd())}" if page.PAGE.is_relative_to(Path.cwd()) else "wrote")
    if failed:
        print(
            f"failed: {', '.join(failed)}; their rows are from an earlier run, or missing",
            file=sys.stderr,
        )
    return _FAILED if failed else 0


def _one(name: str) -> bool:
    module = importlib.import_module(f"bench.{name}")
    print(f"{name}: {module.TITLE} ...", flush=True)
    began = time.monotonic()
    try:
        result = module.measure()
    except (BaselineError, RehearsalError) as error:
        print(f"  failed: {error}", file=sys.stderr)
        return False
    page.keep(name, module.TITLE, result, machine=describe_machine(), seconds=time.monotonic() - began)
    for row in result.rows:
        print(
            f"  {row.name}: {row.measured}{f' ({row.goal}: {row.verdict})' if row.goal else ''}", flush=True
        )
    return True


if __name__ == "__main__":
    sys.exit(main())
