"""Stand-in for Pyxis and Enroot in the local Slurm: an srun whose tasks run in containers.

`srun` (rehearsal/programs) calls it with srun's arguments, and each task of the step calls it on its node. It
unpacks the image's squashfs file once a job, name and node, and runs the program with that root. It has the
options that job.slurm uses. It reads image files only, and cannot reach a registry.
"""

import fcntl
import json
import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from rehearsal.containers.namespaces import enter
from rehearsal.containers.options import ContainerOptions, OptionError, split

_LOCALE = ("LANG", "LANGUAGE", "LC_ALL")  # Pyxis takes them from a job's environment
_HELP = "      --container-image=PATH  [stand-in for pyxis] the image to use for the container filesystem"


def main(real_srun: str, arguments: list[str]) -> int:
    """Replace this process by srun. Tasks in a container run this program first, which starts theirs."""
    if "--help" in arguments:
        subprocess.run([real_srun, "--help"], check=False)
        print(_HELP)
        return 0
    try:
        own, options, command = split(arguments)
    except OptionError as error:
        return _fail(str(error))
    if options.image or options.name:
        if not command:
            return _fail("there is no command")
        task = [sys.executable, "-B", "-P", "-m", "rehearsal.containers.step", "task"]
        task.append(json.dumps(vars(options)))
        arguments = [*own, *task, *command]
    return _become(real_srun, arguments, os.environ)


def run_task(options: ContainerOptions, command: list[str]) -> int:
    """Replace this process, a task of a step, by its program in the container."""
    if options.image and not options.image.startswith(("/", "./")):
        return _fail(f"failed to import docker image: {options.image}: no registry is reached from here")
    for source, _, _ in options.mounts:
        if not Path(source).exists():
            return _fail(f"--container-mounts: source path does not exist: {source}")
    try:
        root = _root(options)
        environment = _environment(root, options.env)
        enter(root, mounts=options.mounts, is_writable=options.writable, workdir=options.workdir)
    except (OSError, subprocess.CalledProcessError) as error:
        return _fail(f"container start failed: {error}")
    return _become(command[0], command[1:], environment)


def _root(options: ContainerOptions) -> Path:
    """Unpack the image unless another task or step of the job did, and return its root."""
    step = f"pyxis_{options.name or os.environ['SLURM_JOB_ID'] + '.' + os.environ['SLURM_STEP_ID']}"
    # A node has a /tmp of its own, which is emptied at its next start.
    folder = Path(tempfile.gettempdir()) / f"enroot-{os.getuid()}" / os.environ["SLURMD_NODENAME"]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    root = folder / step
    with (folder / f"{step}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.is_dir():
            print(f"pyxis: creating container filesystem: {root.name}", file=sys.stderr, flush=True)
            partial = folder / f"{step}.partial"
            unpack = ["unsquashfs", "-no-progress", "-quiet", "-no-xattrs", "-force", "-dest", str(partial)]
            subprocess.run([*unpack, options.image], check=True, stdout=subprocess.DEVNULL)
            _add_user(partial)
            partial.rename(root)
    return root


def _add_user(root: Path) -> None:
    """Give the user a name and a home in the container, as Enroot's hook 10-shadow.sh does."""
    user = pwd.getpwuid(os.getuid())
    line = f"{user.pw_name}:x:{user.pw_uid}:{user.pw_gid}::{user.pw_dir}:/bin/sh\n"
    passwd = root / "etc" / "passwd"
    if line.partition(":")[0] + ":" not in passwd.read_text(encoding="utf-8"):
        passwd.write_text(line + passwd.read_text(encoding="utf-8"), encoding="utf-8")
    (root / user.pw_dir.lstrip("/")).mkdir(parents=True, exist_ok=True)


def _environment(root: Path, kept: tuple[str, ...]) -> dict[str, str]:
    """Return the task's environment: the job's variables, overridden by the image's except the kept names."""
    job = {name: value for name, value in os.environ.items() if name not in _LOCALE or name in kept}
    lines = (root / "etc" / "environment").read_text(encoding="utf-8").splitlines()
    image = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return job | {name: value for name, value in image.items() if name not in kept or name not in job}


def _become(program: str, arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Replace this process by a program from the PATH of `environment`."""
    try:
        os.execvpe(program, [program, *arguments], environment)  # noqa: S606 - no shell is meant
    except OSError as error:
        return _fail(f"enroot-switchroot: failed to execute: {program}: {error.strerror}")


def _fail(message: str) -> int:
    print(f"pyxis: {message}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    if sys.argv[1] == "task":
        read = json.loads(sys.argv[2])
        mounts = tuple((source, target, flags) for source, target, flags in read["mounts"])
        given = ContainerOptions(**{**read, "mounts": mounts, "env": tuple(read["env"])})
        sys.exit(run_task(given, sys.argv[3:]))
    sys.exit(main(sys.argv[1], sys.argv[2:]))
