"""The command trainctl diagnose: what it prints, its exit codes, and its bundle."""

import json
import sys
import tarfile
from pathlib import Path

import pytest

from ops import __main__
from ops.diagnose import bundle, masking
from ops.diagnose.files import Files
from ops.diagnose.masking import mask
from tests.unit.ops.plan.test_plan import deployed

CORPUS = Path(__file__).parent / "logs"
SECRETS = {
    "AKIAIOSFODNN7EXAMPLE": "key AKIAIOSFODNN7EXAMPLE used",
    "wJalrXUtnFEMIK7MDENGbPxRfiCY": "aws_secret_access_key = wJalrXUtnFEMIK7MDENGbPxRfiCY",
    "IQoJb3JpZ2luX2VjEXAMPLE": "export AWS_SESSION_TOKEN=IQoJb3JpZ2luX2VjEXAMPLE",
    "FwoGZXIvYXdzEXAMPLE": '{"SessionToken": "FwoGZXIvYXdzEXAMPLE"}',
    "hf_abcdefghijklmnopqrstuvwxyz": "HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz",
    "0f9e8d7c6b5a": "GET https://b.s3.amazonaws.com/k?X-Amz-Signature=0f9e8d7c6b5a&X-Amz-Expires=60",
    "hunter2hunter2": "https://user:hunter2hunter2@proxy:3128",
    "MIIEvQIBADANBg": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END PRIVATE KEY-----",
    "topsecretvalue": "db_password: 'topsecretvalue'",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789": "using token ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "bXlzZWxmOmh1bnRlcjI=": "Authorization: Basic bXlzZWxmOmh1bnRlcjI=",
}


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["trainctl", "diagnose", *arguments])
    try:
        return __main__.main()
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(file: Path) -> dict[str, str]:
    with tarfile.open(file) as tar:
        return {
            member.name.removeprefix("trainctl-diagnose/"): read.read().decode()
            for member in tar
            if (read := tar.extractfile(member))
        }


@pytest.mark.parametrize("secret", SECRETS)
def test_keys_and_tokens_are_masked(secret: str) -> None:
    assert secret not in mask(SECRETS[secret])


@pytest.mark.parametrize("rule", range(len(masking._RULES)))
def test_without_a_rule_a_secret_would_appear(rule: int, monkeypatch: pytest.MonkeyPatch) -> None:
    removed = masking._RULES[rule]
    monkeypatch.setattr(masking, "_RULES", tuple(each for each in masking._RULES if each is not removed))
    assert any(secret in mask(text) for secret, text in SECRETS.items()), removed


def test_what_is_no_secret_stays() -> None:
    for line in (
        "step 100 loss 5.4 tokens/s 25387, tokens: 123456789",
        "the tokenizer has no token <|endoftext|>",
        "Unable to locate credentials",
        "arn:aws:iam::111122223333:role/parallelcluster/training",
        "s3://amzn-s3-demo-bucket/bootstrap/training/bundle-6f1e0d2c.tar.gz",
    ):
        assert mask(line) == line


def test_a_cause_is_printed_with_line_and_mend(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    log = CORPUS / "oom-killed.log"
    assert run(monkeypatch, str(log)) == 0
    said = capsys.readouterr().out
    assert said.startswith("1. The node ran out of memory")
    assert f"{log}:2" in said
    assert "slurmstepd: error: Detected 1 oom_kill event" in said
    assert "follows from: The node ran out of memory" in said
    assert list(here.iterdir()) == [], "a bundle nobody asked for"


def test_as_json_it_is_one_object(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, str(CORPUS / "cuda-oom.log"), "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["causes"][0]["id"] == "cuda-oom"
    assert said["causes"][0]["evidence"][0]["line"] == 2
    assert said["bundle"] is None


def test_an_unknown_failure_ends_with_1_without_bundle(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    log = CORPUS / "unknown-user-script.log"
    for _ in range(2):
        assert run(monkeypatch, str(log), "--cluster", "mine") == 1
        assert "No known cause found in 5 lines of 1 log(s)" in capsys.readouterr().out
    assert list(here.iterdir()) == []


def test_the_answer_precedes_the_bundle(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    said_before = []

    def mask_bytes(content: bytes) -> bytes:
        said_before.append(capsys.readouterr().out)
        return content

    monkeypatch.setattr(bundle, "mask_bytes", mask_bytes)
    log = CORPUS / "unknown-user-script.log"
    assert run(monkeypatch, str(log), "--bundle", "mine.tar.gz") == 1
    assert "No known cause found" in said_before[0]
    assert capsys.readouterr().out.startswith("Bundle: mine.tar.gz")
    made = contents(here / "mine.tar.gz")
    assert made[str(log).lstrip("/")] == log.read_text()
    assert json.loads(made["diagnosis.json"])["bundle"] == "mine.tar.gz"


def test_flags_in_a_bundle_are_masked(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    log = CORPUS / "no-capacity-resume.log"
    account = deployed(tags="wandb_api_key=topsecretvalue")
    monkeypatch.setattr("ops.account.session.account_clients", lambda: account.client)
    monkeypatch.setattr("ops.diagnose.account.gather", lambda *_, **__: Files([log]))
    assert run(monkeypatch, "--bundle", "out.tar.gz") == 0
    written = contents(here / "out.tar.gz")["diagnosis.json"]
    assert "tags=wandb_api_key=(masked)" in written
    assert json.loads(written)["causes"][0]["id"] == "no-capacity"


def test_a_bundle_is_masked_and_its_owners_alone(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    (here / "train.log").write_text("CUDA out of memory\n" + "\n".join(SECRETS.values()) + "\n")
    file = here / "out.tar.gz"
    assert run(monkeypatch, "train.log", "--bundle", "out.tar.gz") == 0
    assert file.stat().st_mode & 0o777 == 0o600
    written = contents(file)
    assert set(written) == {"diagnosis.json", "unread.txt", "train.log"}
    assert "CUDA out of memory" in written["train.log"]
    assert json.loads(written["diagnosis.json"])["causes"][0]["id"] == "cuda-oom"
    for secret in SECRETS:
        assert secret not in "".join(written.values())


def test_evidence_and_mends_that_are_shown_are_masked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    key = "AKIAIOSFODNN7EXAMPLE"
    (here / "log").write_text(f"bootstrap: step 20-install-python failed after 3 s: with {key}\n")
    for flags in ([], ["--json"]):
        assert run(monkeypatch, "log", *flags) == 0
        assert key not in capsys.readouterr().out


def test_a_bundle_never_replaces_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    file = here / "mine.tar.gz"
    file.write_text("precious")
    log = str(CORPUS / "cuda-oom.log")
    for name, words in {
        "mine.tar.gz": "already exists",
        "mine.zip": "ends with .tar.gz",
        "nowhere/a.tar.gz": "there is no folder",
    }.items():
        assert run(monkeypatch, log, "--bundle", name) == 2
        assert words in capsys.readouterr().err
    assert file.read_text() == "precious"


def test_an_interrupted_bundle_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_content: bytes) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(bundle, "mask_bytes", interrupted)
    assert run(monkeypatch, str(CORPUS / "cuda-oom.log"), "--bundle", "out.tar.gz") != 0
    assert list(here.iterdir()) == []


def test_wrong_usage_is_a_sentence_and_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, words in {
        ("nowhere.log",): "There is no file or folder nowhere.log",
        ("--job", "mine"): "give the number of a job",
        (str(CORPUS), "--job", "3"): "give one of them",
    }.items():
        assert run(monkeypatch, *arguments) == 2
        said = capsys.readouterr().err
        assert words in said
        assert "Traceback" not in said
