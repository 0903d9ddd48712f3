"""The command trainctl diagnose: what it prints, its exit codes, and its bundle."""

import json
import tarfile
from pathlib import Path

import pytest

from ops import masking
from ops.diagnose import bundle
from ops.masking import mask
from tests.unit.ops.jobs_head_node import Call

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
    "T00000000/B00000000/XXXXXXXXXXXX": "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXX",
    "eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2ln": "got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2ln",
    "hunter3hunter3": "machine ghcr.io login me password hunter3hunter3",
    "hunter4hunter4": "+ python train.py --wandb-api-key hunter4hunter4",
    "hunter5hunter5": "DB_PWD=hunter5hunter5",
    "aHVudGVyNg==": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=aHVudGVyNg==",
    "aHVudGVyNw%3D": "https://a.blob.core.windows.net/c?sv=2024-05-04&sig=aHVudGVyNw%3D",
    "sk-proj-abcdef_ghij-0123": "key sk-proj-abcdef_ghij-0123",
    "nvapi-abcdefghijklmnopqrstuvwxyz": "key nvapi-abcdefghijklmnopqrstuvwxyz",
    "glpat-abcdefghijklmnopqrst": "key glpat-abcdefghijklmnopqrst",
    "bXlzZWxmOmh1bnRlcjI=": "Authorization: Basic bXlzZWxmOmh1bnRlcjI=",
}


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
        "PWD=/home/ubuntu/training sigma=0.123456789 design=0.123456789",
        "arn:aws:iam::111122223333:role/parallelcluster/training",
        "s3://amzn-s3-demo-bucket/bootstrap/training/bundle-6f1e0d2c.tar.gz",
    ):
        assert mask(line) == line


def test_a_cause_is_printed_with_line_and_mend(call: Call, here: Path) -> None:
    log = CORPUS / "oom-killed.log"
    code, said, _ = call("diagnose", str(log))
    assert code == 0
    assert said.startswith("1. The node ran out of memory")
    assert f"{log}:1" in said
    assert "slurmstepd: error: Detected 1 oom_kill event" in said
    assert "follows from: The node ran out of memory" in said
    assert list(here.iterdir()) == [], "a bundle nobody asked for"


def test_as_json_it_is_one_object(call: Call) -> None:
    code, output, _ = call("diagnose", str(CORPUS / "cuda-oom.log"), "--json")
    said = json.loads(output)
    assert (code, said["causes"][0]["id"], said["causes"][0]["evidence"][0]["line"]) == (0, "cuda-oom", 1)
    assert said["bundle"] is None


def test_an_unknown_failure_ends_with_1_without_bundle(call: Call, here: Path) -> None:
    log = CORPUS / "unknown-user-script.log"
    for _ in range(2):
        code, said, _ = call("diagnose", str(log), "--cluster", "mine")
        assert code == 1
        assert "No known cause found in 4 lines of 1 log(s)" in said
    assert list(here.iterdir()) == []


def test_the_answer_precedes_the_bundle(
    call: Call, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], here: Path
) -> None:
    said_before = []

    def mask_bytes(content: bytes) -> bytes:
        said_before.append(capfd.readouterr().out)
        return content

    monkeypatch.setattr(bundle, "mask_bytes", mask_bytes)
    log = CORPUS / "unknown-user-script.log"
    code, said, _ = call("diagnose", str(log), "--bundle", "mine.tar.gz")
    assert code == 1
    assert "No known cause found" in said_before[0]
    assert said.startswith("Bundle: mine.tar.gz")
    made = contents(here / "mine.tar.gz")
    assert made[str(log).lstrip("/")] == log.read_text()
    assert json.loads(made["diagnosis.json"])["bundle"] == "mine.tar.gz"


def test_a_bundle_is_masked_and_its_owners_alone(call: Call, here: Path) -> None:
    (here / "train.log").write_text("CUDA out of memory\n" + "\n".join(SECRETS.values()) + "\n")
    file = here / "out.tar.gz"
    assert call("diagnose", "train.log", "--bundle", "out.tar.gz")[0] == 0
    assert file.stat().st_mode & 0o777 == 0o600
    written = contents(file)
    assert set(written) == {"diagnosis.json", "unread.txt", "train.log"}
    assert "CUDA out of memory" in written["train.log"]
    assert json.loads(written["diagnosis.json"])["causes"][0]["id"] == "cuda-oom"
    for secret in SECRETS:
        assert secret not in "".join(written.values())


def test_evidence_and_mends_that_are_shown_are_masked(call: Call, here: Path) -> None:
    key = "AKIAIOSFODNN7EXAMPLE"
    (here / "log").write_text(f"bootstrap: step 20-install-python failed after 3 s: with {key}\n")
    for flags in ([], ["--json"]):
        code, said, _ = call("diagnose", "log", *flags)
        assert code == 0
        assert key not in said


def test_a_bundle_is_whole_or_absent(call: Call, monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    def interrupted(_content: bytes) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(bundle, "mask_bytes", interrupted)
    assert call("diagnose", str(CORPUS / "cuda-oom.log"), "--bundle", "out.tar.gz")[0] == 130
    assert list(here.iterdir()) == []
    file = here / "mine.tar.gz"
    file.write_text("precious")
    log = str(CORPUS / "cuda-oom.log")
    for name, words in {"mine.tar.gz": "already exists", "nowhere/a.tar.gz": "there is no folder"}.items():
        code, _, said = call("diagnose", log, "--bundle", name)
        assert (code, words in said) == (2, True)
    assert file.read_text() == "precious"
