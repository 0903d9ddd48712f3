"""trainkit.notify: what a webhook and `aws` get, and where an address never is."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from trainkit import notify

from tests.unit.assets.training.webhook import SECRET, Webhook, webhook_server

CALLER = '{"Arn": "arn:aws-cn:sts::123456789012:assumed-role/node/i-1"}'
Notify = Callable[..., str]


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with webhook_server() as running:
        yield running


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Notify:
    """Runs trainkit.notify of Ada's job 17; what it says, which is nothing if it succeeds."""
    slurm = {"SLURM_JOB_ID": "17", "SLURM_JOB_NAME": "gpt2", "SLURM_JOB_USER": "ada", "NOTIFY": "webhook"}
    for name, value in (slurm | {"NOTIFY_FILE": str(tmp_path / "webhook")}).items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["notify.py", *arguments])
        code, said = notify.main(), capsys.readouterr()
        assert (code, bool(said.err), said.out) in {(0, False, ""), (1, True, "")}
        assert SECRET not in said.err
        return said.err

    return run


def write(folder: Path, text: str, mode: int = 0o600) -> None:
    file = folder / "webhook"
    file.write_text(text)
    file.chmod(mode)


def test_a_message_names_event_job_and_user(webhook: Webhook, run: Notify, tmp_path: Path) -> None:
    write(tmp_path, webhook.address + "\n")
    assert (run("--check"), webhook.got) == ("", [])
    assert run("given up", "no <!channel> was written") == ""
    assert webhook.got == ["[given up] job 17 (gpt2 of ada): no &lt;!channel&gt; was written"]


def test_a_file_without_a_secret_address_is_refused(run: Notify, tmp_path: Path) -> None:
    made = "cannot be read (No such file or directory); to make it: (umask 077;"
    assert made in run("--check")
    no_address = "does not hold one https:// address"
    for text, mode, said in (
        (f"https://hooks.example.com/{SECRET}", 0o640, "may be read by others: chmod 600"),
        (f"http://hooks.example.com/{SECRET}", 0o600, no_address),
        (f"https://a/{SECRET} https://b", 0o600, no_address),
        ("", 0o600, no_address),
        (f"ftp://{SECRET}", 0o600, no_address),
        (f"https://[a/{SECRET}", 0o600, no_address),
    ):
        write(tmp_path, text, mode)
        assert said in run("--check")


def test_a_failed_webhook_shows_no_address(webhook: Webhook, run: Notify, tmp_path: Path) -> None:
    webhook.answer = 404
    write(tmp_path, webhook.address)
    assert "the webhook answered 404" in run("started", "x")
    # Python's message would have the second address, whose last character is none of an address.
    for address in (f"http://127.0.0.1:1/{SECRET}", f"https://hooks.example.com/{SECRET}\x7f"):
        write(tmp_path, address)
        assert "cannot be reached from this node" in run("started", "x")


@pytest.fixture
def aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A node with an `aws` command that keeps its arguments, and runs a script."""
    mails = {"NOTIFY": "mail", "JOB_TOPIC": "TrainingCluster_training_Jobs", "AWS_REGION": "cn-north-1"}
    for name, value in (mails | {"PATH": f"{tmp_path}:/usr/bin:/bin"}).items():
        monkeypatch.setenv(name, value)

    def says(script: str) -> None:
        file, kept = tmp_path / "aws", f'printf "%s\\0" "$@" >"{tmp_path}/$5-$6"'
        file.write_text(f"#!/bin/bash\n{kept}\n{script}\n")
        file.chmod(0o755)

    says(f"printf '%s' '{CALLER}'")
    return says


def test_a_mail_goes_to_the_topic(
    run: Notify, aws: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY", "mail")
    assert run("--check") == ""
    assert not (tmp_path / "sns-publish").exists()
    text = "naïve\nsecond line " + "x" * 200
    assert run("started", text) == ""
    words = (tmp_path / "sns-publish").read_text().split("\0")[6:-1]
    sent = dict(zip(words[::2], words[1::2], strict=True))
    assert sent["--topic-arn"] == "arn:aws-cn:sns:cn-north-1:123456789012:TrainingCluster_training_Jobs"
    assert sent["--message"] == f"[started] job 17 (gpt2 of ada): {text}"
    assert json.loads(sent["--message-attributes"]) == {"user": {"DataType": "String", "StringValue": "ada"}}
    # What SNS takes.
    assert len(sent["--subject"]) == 99
    assert sent["--subject"].startswith("[started] job 17 (gpt2 of ada): na?ve?second line x")


def test_a_job_without_mail_says_why(
    run: Notify, aws: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY", "mail")
    monkeypatch.setattr(notify, "_CFNCONFIG", tmp_path / "cfnconfig")
    aws(f"[[ $5 == sts ]] && printf '%s' '{CALLER}' && exit; echo AuthorizationError >&2; exit 254")
    assert run("started", "x") == "notify.py: aws sns publish: AuthorizationError\n"
    for name, value, said in (
        ("AWS_REGION", "", f"the region is unknown: {tmp_path}/cfnconfig does not have it"),
        ("PATH", "/nowhere", "this node has no aws command"),
        ("JOB_TOPIC", "", "this cluster has no address for mail; to add one, an administrator types: "),
    ):
        monkeypatch.setenv(name, value)
        assert run("started", "x").startswith(f"notify.py: {said}")
