"""trainkit.notify and notify.sh: what a webhook gets, and where its address never is."""

import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from training_cluster.paths import TRAINING

SECRET = "T000/B000/very-secret"


class Webhook:
    """A server on this machine that keeps what it gets."""

    def __init__(self) -> None:
        self.got: list[str] = []
        self.answer = 200
        webhook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                webhook.got.append(json.loads(body)["text"])
                self.send_response(webhook.answer)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_port}/services/{SECRET}"


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    made = Webhook()
    yield made
    made.server.shutdown()
    made.server.server_close()


def write(folder: Path, text: str, mode: int = 0o600) -> Path:
    file = folder / "webhook"
    file.write_text(text)
    file.chmod(mode)
    return file


def notify(file: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(TRAINING), "NOTIFY_FILE": str(file)}
    slurm = {"SLURM_JOB_ID": "17", "SLURM_JOB_NAME": "gpt2", "SLURM_JOB_USER": "ada"}
    done = subprocess.run(
        [sys.executable, "-B", "-m", "trainkit.notify", *arguments],
        env=environment | slurm,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert SECRET not in done.stdout + done.stderr
    return done


def test_a_message_names_event_job_and_user(webhook: Webhook, tmp_path: Path) -> None:
    done = notify(write(tmp_path, webhook.address + "\n"), "given up", "no checkpoint was written")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert webhook.got == ["[given up] job 17 (gpt2 of ada): no checkpoint was written"]


def test_a_check_sends_nothing(webhook: Webhook, tmp_path: Path) -> None:
    assert notify(write(tmp_path, webhook.address), "--check").returncode == 0
    assert webhook.got == []


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        (f"https://hooks.example.com/{SECRET}", 0o640, "may be read by others: chmod 600"),
        (f"http://hooks.example.com/{SECRET}", 0o600, "does not hold one https:// address"),
        (f"https://a/{SECRET} https://b", 0o600, "does not hold one https:// address"),
        ("", 0o600, "does not hold one https:// address"),
        (f"ftp://{SECRET}", 0o600, "does not hold one https:// address"),
        (f"https://[a/{SECRET}", 0o600, "does not hold one https:// address"),
    ],
)
def test_a_file_that_is_no_secret_address_is_refused(tmp_path: Path, text: str, mode: int, said: str) -> None:
    done = notify(write(tmp_path, text, mode), "--check")
    assert done.returncode == 1
    assert said in done.stderr


def test_without_the_file_a_person_reads_how_to_make_it(tmp_path: Path) -> None:
    said = notify(tmp_path / "none", "--check").stderr
    assert "cannot be read (No such file or directory); to make it: (umask 077;" in said


def test_a_webhook_that_refuses_or_is_gone_is_told_without_its_address(
    webhook: Webhook, tmp_path: Path
) -> None:
    webhook.answer = 404
    file = write(tmp_path, webhook.address)
    assert "the webhook answered 404" in notify(file, "started", "x").stderr
    gone = write(tmp_path, f"http://127.0.0.1:1/{SECRET}")
    assert "cannot be reached from this node" in notify(gone, "started", "x").stderr
    # Python's message would have the address, whose last character is none of an address.
    wrong = write(tmp_path, f"https://hooks.example.com/{SECRET}\x7f")
    assert "cannot be reached from this node" in notify(wrong, "started", "x").stderr


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("", ""),
        ("webhook", ""),
        ("mail", ""),
        ("sms", "NOTIFY is 'sms'; allowed: webhook, mail."),
        (f"https://hooks.example.com/{SECRET}", "NOTIFY holds an address, which is a secret."),
    ],
)
def test_job_settings_take_the_word_and_no_address(value: str, said: str) -> None:
    done = subprocess.run(
        ["bash", str(TRAINING / "job_settings.sh"), "gpt2"],
        env={"PATH": os.environ["PATH"], "NOTIFY": value},
        capture_output=True,
        text=True,
    )
    assert done.returncode == (1 if said else 0), done
    assert said in done.stderr
    assert SECRET not in done.stderr
