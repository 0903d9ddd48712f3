"""Every `aws` command that we tell people to type is taken by AWS CLI v2, which README names.

Its parser and its check of parameters are asked; no call gets further than a closed port of this machine.
"""

import gzip
import os
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import botocore
import pytest

from tests.printed_aws_commands import printed_aws_commands

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

_VERSION = re.compile(r"^aws-cli/(?P<version>2(?:\.\d+)+) ")
_WRONG_USAGE = 252
# Of a newer AWS CLI than a distribution may have.
_SINCE = {"aws login": (2, 32)}
_MODELS_OF = {"s3api": "s3"}
_CLOSED = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def cli() -> tuple[str, tuple[int, ...]]:
    """The first AWS CLI v2 of the PATH, and its version."""
    for folder in os.environ["PATH"].split(os.pathsep):
        program = Path(folder) / "aws"
        if not os.access(program, os.X_OK):
            continue
        said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
        if found := _VERSION.match(said):
            return str(program), tuple(int(part) for part in found["version"].split("."))
    pytest.skip("no AWS CLI v2 is installed here; on Debian: apt-get install awscli")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """No account; the files that commands name; boto3's models, newer than a distribution's CLI."""
    folder = tmp_path_factory.mktemp("aws")
    for name in re.findall(r"file://([\w.-]+)", " ".join(printed_aws_commands())):
        (folder / name).write_text("x")
    data = Path(botocore.__file__).parent / "data"
    for service in {command.split()[1] for command in printed_aws_commands()}:
        for model in (data / _MODELS_OF.get(service, service)).glob("*/service-2.json.gz"):
            target = folder / "models" / model.parent.relative_to(data) / "service-2.json"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(gzip.decompress(model.read_bytes()))
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "AWS_DATA_PATH": str(folder / "models"),
        **dict.fromkeys(names, "none"),
        **{"AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1"},
        **{"AWS_MAX_ATTEMPTS": "1", "AWS_EC2_METADATA_DISABLED": "true", "AWS_PAGER": ""},
    }


def complaint(command: str, program: str, environment: dict[str, str]) -> str | None:
    """Return the CLI's objection to a command; None if it would call AWS with it."""
    words = shlex.split(command)
    done = subprocess.run(
        [program, *words[1:], "--endpoint-url", _CLOSED],
        env=environment,
        cwd=environment["HOME"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    names_an_operation = len(words) <= 3 and "the following arguments are required" in done.stderr
    if done.returncode != _WRONG_USAGE or names_an_operation:
        return None
    return done.stderr.strip().splitlines()[-1]


def test_every_printed_command_exists_in_aws_cli_v2(
    cli: tuple[str, tuple[int, ...]], environment: dict[str, str]
) -> None:
    program, version = cli
    commands = {
        command: file
        for command, file in printed_aws_commands().items()
        if version >= _SINCE.get(command, version)
    }
    assert len(commands) > 80, "the commands are not found any more"
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        said = pool.map(lambda command: complaint(command, program, environment), commands)
        wrong = {
            command: (commands[command], why) for command, why in zip(commands, said, strict=True) if why
        }
    assert wrong == {}
