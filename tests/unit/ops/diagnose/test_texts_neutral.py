"""Texts of public threads that this project keeps name no person, machine or account."""

import re
from pathlib import Path

import pytest

from ops.diagnose.causes import CAUSES

HERE = Path(__file__).parent
FILES = sorted((*HERE.glob("logs/*"), *HERE.glob("threads/*.yaml"), CAUSES))
# The folders of every Linux, those of this project's clusters, those in which programs are built, and what
# only looks like a folder: log groups, parameters and paths of a registry.
_FOLDERS = (
    "bin|boot|dev|etc|lib|lib64|opt|proc|run|sys|tmp|usr|var|home|fsx|workspace|pytorch|aws|cdk-bootstrap|v2"
)
_NEUTRAL_ID = r"(?:0123456789abcdef\d|0?([0-9a-f])\1+)\b"
# Kind -> what is not neutral.
OTHERS = {
    "a user's folder": r"/(?:home|Users)/(?!user\b|ubuntu\b)[^/\s'\"]+|C:\\+Users\\+\w+",
    "a folder of one site": rf"(?<![\w./:~}}\])$*?\\-])/(?!(?:{_FOLDERS})\b)[a-z][\w-]*/[\w./-]+",
    "a conda environment": r"\w*conda\w*/(?:envs/\w+|bin/)",
    "a mail address": r"\b[\w.+-]+@(?!example\.(?:com|org)\b)[\w-]+(?:\.[\w-]+)+",
    "an address": r"(?<![\w.-])(?!10\.0\.|127\.0\.0\.1|0\.0\.0\.0)\d{2,3}(?:\.\d{1,3}){3}(?![\w.-])",
    # Hosts have no form of their own, but the lines of NCCL, srun and syslog that name one have.
    "a host": r"(?<![\w.-])(?!(?:node|gpu-dy-\w+)-\d)[\w.-]+(?=:\d+:\d+ \[\d+\] )"
    r"|(?<=failed on node )(?!node-\d|ip-10-0-)[\w.-]+"
    r"|(?<=\d\d:\d\d:\d\d )(?!node-\d|head-node|login|ip-10-0-)[\w.-]+(?= \w+\[\d+\]: )",
    "a host named by its address": r"\bip-(?!10-0-)\d+(?:-\d+){3}\b",
    "an address of IPv6": r"\bfe80::(?!1\b)[0-9a-f:]+",
    "an account": r"(?<![\w-])(?!111122223333|444455556666|123456789012)\d{12}(?![\w-])",
    "a resource": rf"\b(?:ami|cr|eni|fs|i|mi|sg|subnet|vol|vpc)-(?!{_NEUTRAL_ID})[0-9a-f]{{8,17}}\b",
    "a request": r"\b(?!0{8}-)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b",
}


@pytest.mark.parametrize("kind", OTHERS)
def test_a_kept_text_names_nobody(kind: str) -> None:
    found = {
        f"{file.name}:{number}: {match[0]}"
        for file in FILES
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        for match in re.finditer(OTHERS[kind], line)
    }
    assert not found
