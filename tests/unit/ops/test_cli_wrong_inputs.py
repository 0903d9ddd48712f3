"""Wrong inputs of trainctl: each ends with 2 and one message that names the input and what is allowed."""

import re
import shlex
from pathlib import Path

import pytest
from botocore.exceptions import NoRegionError

from tests.unit.ops.jobs_head_node import Call

# Files of the folder {d}, by name.
_FILES = {
    "list.yaml": b"- a\n",
    "open.yaml": b"a: [1, 2",
    "bytes": b"\xff\xfe\x00",
    "folder/a": b"",
}

WRONG = {
    # trainctl itself
    "nosuch": "No such command 'nosuch'",
    "status --watch --json": "give one of them",
    "destroy": "trainctl destroy --plan",
    "prefligt": "Did you mean 'preflight'?",
    "--regio us-east-1 status": "No such option: --regio (Possible options: --region",
    "jobs 5": "unexpected extra argument(s) (5)",
    "preflight family=p4d": "unexpected extra argument(s) (family=p4d)",
    "destroy training --plan": "unexpected extra argument(s) (training)",
    "--as 'Bob!' jobs": '--as "Bob!": not the name of a user. allowed: letters, digits and _ . -',
    # flags
    "preflight -c": "Option '-c' requires an argument",
    "preflight -c family": '"family" is not FLAG=VALUE type: -c family=...',
    "preflight -c =p4d": '"=p4d" is not FLAG=VALUE',
    "preflight -c famly=p4d": 'famly: no such flag. Did you mean "family"?',
    "preflight -c overrides=none.yaml": "none.yaml: No such file or directory allowed: a YAML file",
    "plan --diff=yes": "Option '--diff' does not take a value",
    "image-plan": "Missing argument 'FAMILY'",
    "image-plan p4": 'Did you mean "p4d"?',
    "image-plan p4d -c workloads=nonsense": "is not a workload with an environment",
    # price
    "price nosuch": 'nothing is known about the speed of "nosuch". allowed: titan',
    "price titan --set SIZE": '--set "SIZE" is not KEY=VALUE',
    "price titan --tokens-per-s 5": "the speed of a workload is estimated",
    "price --tokens-per-s 5 --run x.json": "give one of them",
    "price gpt2": "allowed: titan",
    "price titan --set MODEL=deepseek_v3 --set SIZE=16B --set EP=3": "EP is 3 and",
    "price titan --set INIT_FROM=a/b": "give MODEL and SIZE",
    "price titan -c family=m6i": "give a family that has them",
    "price --tokens-per-s 0": "Invalid value for '--tokens-per-s'",
    "price --tokens-per-s inf --offline": "Invalid value for '--tokens-per-s'",
    "price --dataset-tokens nan --offline": "Invalid value for '--dataset-tokens'",
    "price --run {d}/none": "{d}/none does not exist",
    "price --run {d}/folder": "{d}/folder is not a run",
    "capacity --family= --nodes 2": "capacity: --family is empty",
    "capacity --family p9": "capacity: --family p9: no such instance family.",
    "capacity --family p5.50xlarge": "type: --family p4d.24xlarge",
    "capacity --family p5 --nodes 5000": "capacity: --nodes 5000: not allowed",
    # import, lint, new-workload, rehearse
    "import": "give a file, or --cluster NAME type: trainctl import config.yaml",
    "import {d}/none.yaml": "{d}/none.yaml is not a ParallelCluster 3 cluster config: No such file",
    "import {d}/open.yaml": "config: line 1: expected ',' or ']', but got '<stream end>' allowed:",
    "import {d}/bytes": "it is not UTF-8 allowed: the YAML file of pcluster create-cluster",
    "lint": "Missing argument",
    "lint {d}/none.sh": "There is no file {d}/none.sh.",
    "lint {d}/folder": "{d}/folder is a folder: name the scripts in it",
    "lint {d}/bytes": "{d}/bytes is not text",
    "new-workload 9lives": '"9lives" cannot name a workload. allowed: a lower-case letter',
    "new-workload trainkit": "it means the package that all trainers use",
    "new-workload none": "it means -c workloads=none",
    "new-workload ../evil": '"../evil" cannot name a workload',
    "new-workload mine --from nosuch": 'no workload "nosuch" in',
    "new-workload mine --from gtp2": 'Did you mean "gpt2"?',
    "new-workload mine --into {d}/none": "{d}/none has no job.slurm",
    "rehearse --nodes 9": "--nodes 9: too many for one machine. allowed: 1 to 8",
    "rehearse --workload nosuch": "--workload nosuch: no such workload. allowed: bert-trainium",
    "rehearse --metrics amp": "--metrics amp: cannot be rehearsed. allowed: cloudwatch, prometheus",
    "prove nosuch": "nosuch: no such workload. allowed: bert-trainium",
    "prove gpt2 kil": "kil: no such case. allowed: kill",
    "prove gpt2 --nodes 1": "Invalid value for '--nodes'",
    # users
    "users list --file {d}/none.yaml": "{d}/none.yaml: No such file or directory",
    "users list --file {d}/list.yaml": "the file has no key users",
    "users add Alice --file {d}/new.yaml": "users={d}/new.yaml cannot be used, nothing was done: line 2",
    "users add alice --key nokey --file {d}/new.yaml": '"nokey" is not a line of a public key',
    "users remove alice": "No such command 'remove'",
    # jobs
    "submit gpt2": "Missing option '--nodes'",
    "submit gpt2 --nodes 0": '--nodes "0" is not a number of nodes.',
    "submit gpt2 --nodes 1 --set 1X=2": '--set "1X=2" is not KEY=VALUE',
    "submit gpt2 --nodes 1 --set LR": '--set "LR" is not KEY=VALUE',
    "submit gpt2 --nodes 1 --set 'LR=1\n2'": "--set LR: the value contains a control character",
    "submit gpt2 --nodes 1 --set MAX_STPES=1": 'Did you mean "MAX_STEPS"?',
    "submit gpt2 --nodes 1 --follow --dry-run": "give one of them",
    "submit gpt2 --nodes 1 --env 'A B=2'": '--env "A B=2" is not KEY=VALUE',
    "submit gpt2 --nodes 1 --after soon": '"soon" is not a job id. allowed: a number',
    "submit gpt2 --nodes 1 --time 5x": "--time 5x: not a time limit. allowed: minutes, hours:minutes:seconds",
    "submit gpt2 --nodes 1 --name a/b": '"a/b" cannot name a run',
    "submit gpt2 --nodes 1 --name a --set RUN_NAME=b": "--name a and --set RUN_NAME=b: give one of them",
    "submit gpt2 --nodes 1 --container ''": "--container: no image is given",
    "submit gpt2 --nodes 1 --follow --json": "give one of them",
    "logs 1 --lines -1": "Invalid value for '--lines'",
    "logs 1 2": "unexpected extra argument(s) (2)",
    "cancel 1 x": '"x" is not a job id',
    "check-nodes gpu-[1-": '"gpu-[1-" is not a list of nodes. allowed: names of sinfo --Node',
    "check-nodes 'gpu; rm -rf /'": '"gpu; rm -rf /" is not a list of nodes',
    # A shell's unset variable means no node, and not all.
    "check-nodes ''": '"" is not a list of nodes',
    "check-nodes --yes": "--yes requires --drain",
    "check-nodes --drain --json": "--json asks no questions: give --yes, too",
    # the rest
    "verify --quick --nodes 2": "--quick starts no node, --nodes some, --gpu one: give one of them",
    "verify --html {d}/none/a.html": "there is no folder {d}/none. type: mkdir -p",
    "verify --html {d}/folder": "{d}/folder is a folder. type: --html {d}/folder/verify.html",
    "top --every 0": "Invalid value for '--every'",
    "top --every nan": "Invalid value for '--every'",
    "top --every inf": "Invalid value for '--every'",
    "top --url ''": "--url takes an address such as http://127.0.0.1:9090, not ''",
    "top --url 127.0.0.1:9090": "such as http://127.0.0.1:9090",
    "top --url file:///etc/passwd": "such as http://127.0.0.1:9090",
    "top --url http://": "such as http://127.0.0.1:9090",
    "top --url http://a:port": "such as http://127.0.0.1:9090",
    "dashboards --port 80": "Invalid value for '--port'",
    "dashboards --export ''": "--export takes a folder, such as boards",
    "dashboards --json": "--json is for --export",
    "sync sideways a b": "Invalid value for 'up|down': 'sideways' is not one of 'up', 'down'",
    "sync up {d}/none datasets/a": "{d}/none does not exist. type: trainctl sync up FOLDER datasets/NAME",
    "sync up {d}/folder ../a": '"../a" is not a path in the bucket. allowed: datasets/NAME',
    "sync up {d}/bytes datasets/a": "{d}/bytes is not a folder: give the folder that holds it",
    "sync up {d}/folder bootstrap": "a deploy writes the scripts of nodes there",
    "sync up {d}/folder bootstrap/training": "Users must not write below bootstrap/",
    "sync up {d}/folder logs/training": "leave their logs there",
    "sync up {d}/folder checkpoints/a": "Users must not write below checkpoints/",
    "sync up {d}/folder /fsx/checkpoints/a": "copy the files that a training starts from below datasets/",
    "sync up {d}/folder training/gpt2": "put them into assets/training/",
    "sync up {d}/folder datasets/../bootstrap": "not a path in the bucket",
    "sync up {d}/folder s3://other/datasets": "not a path in the bucket",
    "sync up {d}/folder datasets/a --delete": "No such option: --delete",
    "sync down datasets/a {d}/bytes": "{d}/bytes is not a folder",
    "connect --print -- ls": "remove them, or the command",
    "connect --ssh -- ls": "remove them, or the command",
    "registry logn nvcr.io": 'no such action. Did you mean "login"?',
    "registry login": "no host is given",
    "registry login https://nvcr.io": "'https://nvcr.io' is not a host name",
    "registry login docker.io": "--user is missing",
    "registry login docker.io --user 'a b; id'": "--user 'a b; id': no name of a user",
    "registry login nvcr.io --user me": "--user: registry login nvcr.io takes none.",
    "registry list docker.io": "it lists all registries",
    "connect -i key": "-i is for --ssh",
    "secret set ../a": "'../a': not a name. allowed: letters, digits and _ . -",
    "usage --by month": "Invalid value for '--by': 'month' is not one of 'user', 'account', 'week'",
    "usage --since 2026-13-01": '--since "2026-13-01" is not a date: type --since 2026-11-01',
    "usage --since 2026-11-02 --until 2026-11-01": "--since 2026-11-02 is not before --until 2026-11-01",
    "report": "Missing argument",
    "report {d}/folder --html {d}/none/run.html": "there is no folder {d}/none",
    "report {d}/none": "{d}/none does not exist",
    "report {d}/bytes": "{d}/bytes is not a folder. allowed: FOLDER/runs/WORKLOAD/RUN",
    "report {d}/folder": "{d}/folder is not a run: it has neither metrics.jsonl nor starts",
    "export run --checkpoint newest": "Invalid value for '--checkpoint'",
    "diagnose {d}/none.log": "There is no file or folder {d}/none.log. type: ls {d}",
    "diagnose {d}/nothing": "{d}/nothing has no file to read. type: ls -lR {d}/nothing",
    "diagnose {d}/bytes --job 3": "give one of them",
    "diagnose --job mine": "give the number of a job",
    "diagnose --bundle x.zip": "--bundle x.zip: the name of a bundle ends with .tar.gz",
}
"""A part of the message for each command line; white space and frames do not count."""


def _files(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*"))


@pytest.mark.parametrize("line", WRONG)
def test_wrong_input_is_one_message(
    line: str, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("ops.account.session.account_clients", lambda: _no_client)
    for name, content in _FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "nothing").mkdir()
    before = _files(tmp_path)
    code, out, err = call(*(word.replace("{d}", str(tmp_path)) for word in shlex.split(line)))
    assert (code, out) == (2, "")
    said = " ".join(re.sub("[╭─╮│╰╯]", " ", err).split())
    assert WRONG[line].replace("{d}", str(tmp_path)) in said
    assert line.startswith("report") or not said.startswith("report: "), "another command's name"
    assert len(err.strip().splitlines()) <= 8, "one message"
    assert _files(tmp_path) == before, "nothing is made"


def _no_client(service: str) -> None:
    raise AssertionError(f"{service} was asked before the input was checked")


def test_error_names_subcommand_wherever_options_stand(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise NoRegionError

    monkeypatch.setattr("ops.account.session.account_clients", fail)
    monkeypatch.setattr("ops.cli.choose_account", lambda **_: None)
    for words in ("--as alice jobs", "jobs --profile prod", "--profile=prod jobs", "jobs --as a --profile b"):
        assert call(*words.split())[2].startswith("jobs: no AWS region is given")
