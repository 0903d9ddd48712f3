"""The causes of trainctl diagnose, tested with logs as AWS, Slurm, NCCL and our own scripts write them.

And with lines that users wrote in issue trackers.
"""

import re
import time
from collections import Counter
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel, ConfigDict

from ops.diagnose.causes import load_causes, placeholders
from ops.diagnose.diagnose import diagnose_evidence
from ops.diagnose.files import Files
from ops.diagnose.render import Diagnosis
from ops.diagnose.texts import Gathered

CORPUS = Path(__file__).parent / "logs"
THREADS = Path(__file__).parent / "threads"
LINES = (THREADS / "known.yaml", THREADS / "messages.yaml")
LOGS = sorted(CORPUS.iterdir())
NOTHING = ("unknown", "healthy")
# Outputs of jobs; torchrun, srun and mpirun write a rank's number before each of its lines.
OF_JOBS = [
    log for log in LOGS if re.search(r"job\.slurm: |\[rank\d|train\.py", log.read_text(encoding="utf-8"))
]
_OF_SLURM = re.compile(r"\d\d:\d\d:\d\d job\.slurm: |slurmstepd: |srun: ")


def expected(log: Path) -> str:
    """Return the longest cause that the log's name begins with."""
    return max((each for each in (*load_causes(), *NOTHING) if re.match(rf"{each}[-.]", log.name)), key=len)


def read(*paths: Path) -> Diagnosis:
    return diagnose_evidence(Files(paths), cluster="training")


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)
def test_each_log_has_its_cause_on_top(log: Path) -> None:
    found, wanted = read(log), expected(log)
    if wanted in NOTHING:
        assert [cause.id for cause in found.causes] == []
        return
    assert found.causes, "nothing found"
    top = found.causes[0]
    assert top.id == wanted, [(cause.id, cause.score) for cause in found.causes]
    assert not top.follows_from
    evidence = top.evidence[0]
    assert evidence.file == str(log)
    line = log.read_text(encoding="utf-8").splitlines()[evidence.line - 1]
    assert evidence.text == line.strip()
    assert top.mend
    assert not re.search(r"\{[a-z]+\}", "\n".join(top.mend))


@pytest.mark.parametrize("log", OF_JOBS, ids=lambda log: log.name)
def test_rank_prefixes_change_no_diagnosis(log: Path, tmp_path: Path) -> None:
    labelled = tmp_path / log.name
    lines = log.read_text(encoding="utf-8").splitlines()
    labelled.write_text("".join(f"{each if _OF_SLURM.match(each) else f'4095: {each}'}\n" for each in lines))
    assert [cause.id for cause in read(labelled).causes] == [cause.id for cause in read(log).causes]


def test_every_cause_has_log_mends_and_rank() -> None:
    names = Counter(map(expected, LOGS))
    of_threads = {row["cause"] for file in LINES for row in yaml.safe_load(file.read_text(encoding="utf-8"))}
    assert (set(names) - set(NOTHING)) | of_threads == set(load_causes())
    assert names["unknown"] >= 3
    assert names["healthy"] >= 3
    causes = load_causes()
    for cause in causes.values():
        assert set(cause.explains) <= set(causes), cause.id
        assert len(set(cause.explains)) == len(cause.explains), cause.id
    explained = {(cause.id, other) for cause in causes.values() for other in cause.explains}
    assert not {(one, other) for one, other in explained if (other, one) in explained or one == other}
    for cause in load_causes().values():
        groups = {"cluster"}
        for pattern in cause.patterns:
            groups |= set(re.compile(pattern.match or "").groupindex)
        assert any(placeholders(line) <= {"cluster"} for line in cause.mend), cause.id
        for line in cause.mend:
            assert placeholders(line) <= groups, f"{cause.id}: {line}"


def test_logs_of_successful_runs_have_no_cause() -> None:
    good = sorted(Path(__file__).parents[2].glob("assets/training/nccl_tests/logs/good-*.log"))
    assert good
    assert read(*good).causes == ()


@pytest.mark.slow
def test_no_pattern_is_slow_on_a_hostile_line() -> None:
    """Lines are cut at 4 kB; a pattern that backtracks without a bound takes seconds on these."""
    fillers = ["a", "a ", "1", " ", "/", "x-y ", "failed ", "'\"", "(a:", "s3://a/", "=", "calling the "]
    worst: list[tuple[float, str]] = []
    for cause in load_causes().values():
        for pattern in cause.patterns:
            matcher = re.compile(pattern.match or re.escape(pattern.has))
            # The pattern's own words again and again bring it furthest.
            words = re.sub(r"\\.|[^\w :./-]", "", pattern.match or pattern.has)
            for filler in (*fillers, f"{pattern.has} ", f"{words} "):
                line = f"{pattern.has} {filler * 4096}"[:4096]
                began = time.process_time()
                matcher.search(line)
                worst.append((time.process_time() - began, f"{cause.id}: {pattern.match}"))
    slowest = max(worst)
    assert slowest[0] < 0.5, slowest


def test_a_root_cause_precedes_its_consequences(tmp_path: Path) -> None:
    (tmp_path / "a-stack-events.json").write_text(
        '"resourceStatusReason": "WaitCondition timed out. Received 0 conditions when expecting 1"\n'
        '"resourceStatusReason": "Resource creation cancelled"\n'
    )
    (tmp_path / "cfn-init.log").write_text(
        "10:12:43 bootstrap: step 20-install-python failed after 3 s: no wheel\n"
        "Failed to execute OnNodeConfigured script 1 s3://b/bootstrap.sh, return code: 1.\n"
    )
    found = read(tmp_path)
    assert [cause.id for cause in found.causes] == ["bootstrap-step", "custom-script", "head-node-timeout"]
    step = "A step of the bootstrap failed"
    assert found.causes[1].follows_from == (step,)
    assert step in found.causes[2].follows_from
    assert "no wheel" in found.causes[0].mend[0]


def test_the_mend_names_what_the_error_itself_names() -> None:
    def mend(name: str) -> str:
        return "\n".join(read(CORPUS / name).causes[0].mend)

    assert "p4d.24xlarge in us-east-1a, us-east-1b, and none in us-east-1d" in mend("no-capacity-resume.log")
    assert "the quota is 96 vCPUs" in mend("vcpu-quota.log")
    assert "L-417A185B" in mend("vcpu-quota.log")
    assert "allow iam:CreateRole" in mend("permission-denied-stack-events.txt")
    assert "nodename=gpu-dy-p4d-2" in mend("node-unhealthy-health.log")
    assert "steps/75-install-training-scripts.sh" in mend("bootstrap-step-cfn-init.log")
    assert "--stack-name TrainingClusterStack" in mend("rollback-stuck-stacks.txt")
    assert "cluster_name=training-2" in mend("not-ours.log")


@pytest.mark.parametrize("name", ["/fsx/my data/x", "/fsx/x;id", "/fsx/$(id)", "/fsx/`id`"])
def test_names_from_logs_are_quoted_in_commands(tmp_path: Path, name: str) -> None:
    (tmp_path / "train.log").write_text(f"PermissionError: [Errno 13] Permission denied: '{name}'\n")
    assert read(tmp_path).causes[0].mend[0].startswith(f"ls -ld '{name}', and")


def test_commands_of_logs_are_not_filled_or_extended(tmp_path: Path) -> None:
    said = "PermissionError: [Errno 13] Permission denied: '/{deploy} -c a=`id`'"
    (tmp_path / "train.log").write_text(f"{said}\n")
    assert read(tmp_path).causes[0].mend[0].startswith("ls -ld '/{ deploy } -c a=`id`', and")
    said = "The fleet can be neither stopped nor started | aws dynamodb put-item --table-name a --item b"
    for more, number in (("", 1), ("; id", 0), (" $(id)", 0), (" & id", 0)):
        (tmp_path / "train.log").write_text(f"{said}{more} | then\n")
        assert len(read(tmp_path).causes) == number


@pytest.mark.parametrize("quote", ['"', r"\"", ""])
def test_an_s3_denial_names_right_and_flags(quote: str, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(
        "ClientError: An error occurred (AccessDenied) when calling the GetObject operation: "
        "User: arn:aws:sts::111122223333:assumed-role/training-RoleQueue/i-0a is not authorized to perform: "
        f"s3:GetObject on resource: {quote}arn:aws:s3:::team-data/corpus/a.bin{quote} "
        "because no identity-based policy allows the s3:GetObject action\n"
    )
    found = diagnose_evidence(Files([tmp_path]), cluster="b").causes[0]
    assert found.id == "s3-denied"
    right, flags, *_ = found.mend
    assert right == "allow s3:GetObject on arn:aws:s3:::team-data/corpus/a.bin"
    for words in ("trainctl deploy --cluster b -c read_buckets=", "-c write_buckets=", "-c node_policies="):
        assert words in flags


def test_more_lines_raise_a_cause_and_are_counted(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("CUDA out of memory.\n" * 3)
    few = read(log).causes[0]
    log.write_text("CUDA out of memory.\n" * 3 + "CUBLAS_STATUS_ALLOC_FAILED\n")
    more = read(log).causes[0]
    assert few.evidence[0].count == 3
    assert more.score > few.score
    log.write_text("CUDA out of memory. Tried to allocate 2.00 GiB\n")
    one = read(log).causes[0]
    assert len(one.evidence) == 1, "one line is shown once, whatever it says"


class Line(BaseModel):
    """A line of a thread, and the cause that a reader named."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    thread: str
    cause: str
    text: str


def lines(name: str) -> list[Line]:
    return [Line.model_validate(row) for row in yaml.safe_load((THREADS / name).read_text(encoding="utf-8"))]


def top(text: str) -> str | None:
    gathered = Gathered()
    gathered.add("job.log", text)
    causes = diagnose_evidence(gathered, cluster="training").causes
    return causes[0].id if causes else None


def test_a_known_line_has_its_cause_on_top() -> None:
    known = [*lines("known.yaml"), *lines("messages.yaml")]
    found = [(line, top(line.text)) for line in known]
    assert [(line, cause) for line, cause in found if cause != line.cause] == []


def test_most_held_out_lines_are_explained_none_wrongly() -> None:
    known, held_out = lines("known.yaml"), lines("held_out.yaml")
    assert not {each.thread for each in known} & {each.thread for each in held_out}
    held_out = lines("held_out.yaml")
    found = {line.thread: (top(line.text), line.cause) for line in held_out}
    assert len(found) >= 20
    wrong = {thread: causes for thread, causes in found.items() if causes[0] not in (None, causes[1])}
    assert wrong == {}
    explained = [causes for causes in found.values() if causes[0] == causes[1]]
    assert len(explained) >= 0.8 * len(found), found
