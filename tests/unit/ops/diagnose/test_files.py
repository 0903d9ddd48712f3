"""trainctl diagnose on files, folders and archives, whatever is in them."""

import gzip
import io
import os
import tarfile
from pathlib import Path

import pytest

from ops.diagnose import files
from ops.diagnose.diagnose import diagnose_evidence
from ops.diagnose.files import Files
from ops.diagnose.render import Diagnosis
from ops.usage import UsageError

FULL = "OSError: [Errno 28] No space left on device\n"


def read(*paths: Path) -> Diagnosis:
    return diagnose_evidence(Files(paths), cluster="training")


def packed(into: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(into, "w:gz") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return into


def test_compressed_logs_of_any_name_are_read(tmp_path: Path) -> None:
    logs = "training-logs-202611051010/cloudwatch-logs/ip-10-0-0-9.i-0a"
    file = packed(
        tmp_path / "training-logs.tar.gz",
        {
            f"{logs}.clustermgtd": b"one\ntwo\n",
            f"{logs}.slurmctld/000000.gz": gzip.compress(f"one\n{FULL}".encode()),
        },
    )
    found = read(file)
    assert (found.texts, found.lines, found.unread) == (2, 4, {})
    evidence = found.causes[0].evidence[0]
    assert (evidence.file, evidence.line) == (f"{file}:{logs}.slurmctld/000000.gz", 2)
    file = tmp_path / "train.log.1"
    file.write_bytes(gzip.compress(FULL.encode()))
    assert [cause.id for cause in read(file).causes] == ["disk-full"]


def test_no_file_of_an_archive_is_written(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    file = packed(inside / "evil.tar.gz", {"../../outside.log": FULL.encode(), "/etc/outside.log": b"x\n"})
    with tarfile.open(tmp_path / "links.tar", "w") as tar:
        link = tarfile.TarInfo("passwd")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    before = sorted(tmp_path.rglob("*"))
    found = read(file, tmp_path / "links.tar")
    assert found.causes[0].id == "disk-full"
    assert found.unread == {f"{tmp_path}/links.tar:passwd": "is not a regular file"}
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.slow
def test_large_unpacked_files_are_cut_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_UNPACKED_BYTES", 2 << 20)
    bomb = tmp_path / "bomb.gz"
    bomb.write_bytes(gzip.compress(b"\n" * (64 << 20)))
    found = read(bomb)
    assert found.unread == {str(bomb): "cut at 2 MiB"}
    assert found.lines <= 4 << 20


def test_a_header_of_gigabytes_is_refused_unread(tmp_path: Path) -> None:
    header = tarfile.TarInfo("././@PaxHeader")
    header.type, header.size = tarfile.XHDTYPE, 3 << 30
    file = tmp_path / "header.tar.gz"
    file.write_bytes(gzip.compress(header.tobuf(tarfile.USTAR_FORMAT) + b"\0" * 4096))
    assert "broken: a header is larger than" in read(file).unread[str(file)]


def test_broken_files_are_reported_and_hide_no_others(tmp_path: Path) -> None:
    whole = gzip.compress(os.urandom(1 << 20).hex().encode())
    (tmp_path / "a.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "b.bin").write_bytes(b"\x7fELF\0\0\0")
    (tmp_path / "c.log").write_text(FULL)
    (tmp_path / "d.log").symlink_to(tmp_path / "c.log")
    found = read(tmp_path)
    assert "broken from here on" in found.unread[f"{tmp_path}/a.gz"]
    assert found.unread[f"{tmp_path}/b.bin"] == "is not text"
    assert [each.file for each in found.causes[0].evidence] == [f"{tmp_path}/c.log"]


def test_a_pipe_is_wrong_usage(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="neither a file nor a folder"):
        Files([tmp_path / "pipe"])


def test_line_numbers_are_right_after_long_lines(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    filler = "".join(f"step {step} loss {step / 7:.4f}\n" for step in range(200_000))
    log.write_text(f"{'x' * (3 << 20)} {FULL}{filler}{FULL}")
    found = read(log)
    evidence = found.causes[0].evidence[0]
    assert (evidence.line, evidence.count) == (200_002, 1), "what stands behind 4 kB of a line is passed over"
    assert found.lines == 200_002
