"""Hides what identifies an account in a text, so that a report can be attached anywhere."""

from __future__ import annotations

import re

from botocore.exceptions import ClientError

from ops.account.aws_errors import DENIED
from ops.diagnose.masking import mask
from ops.preflight.not_checked import not_checked
from ops.usage import OpsError

_KINDS = (
    "ami|cr|dra|eipalloc|eni|fs|fsap|fsmt|fsvol|i|igw|lt|nat|pg|r|rtb|sg|sgr|snap|subnet|vol|vpc|vpce|cb|acl"
)
_RULES = (
    (re.compile(r"\barn:aws[\w-]*:[^\s\"',)]+"), "(ARN)"),
    (re.compile(r"\bs3://[^\s\"',)]+"), "(bucket)"),
    (re.compile(r"\bhttps?://[^\s\"',)]+"), "(URL)"),
    (re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+"), "(mail)"),
    (re.compile(r"\b(?:ip|ec2)-\d{1,3}(?:-\d{1,3}){3}[\w.-]*"), "(address)"),
    (re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])"), "(address)"),
    (re.compile(r"\b(?:[0-9a-fA-F]{1,4}:){3,7}[0-9a-fA-F]{1,4}\b"), "(address)"),
    (re.compile(rf"\b(?:{_KINDS})-[0-9a-f]{{8,17}}\b"), "(id)"),
    (re.compile(r"(?<!\d)\d{12}(?!\d)"), "(account)"),
)


def hide_ids(text: str) -> str:
    """Replace keys, ARNs, buckets, URLs, addresses, resource ids and account ids."""
    for pattern, instead in _RULES:
        text = pattern.sub(instead, text)
    return mask(text)


def reason_without_ids(id_: str, error: Exception) -> str:
    """Return the reason why a check could not look, in one line."""
    if isinstance(error, ClientError):
        if error.response["Error"].get("Code") in DENIED:
            return not_checked(id_, error).mend
        return f"{error.operation_name}: {error.response['Error'].get('Code')}"
    first = hide_ids(str(error).partition("\n")[0])
    return first if isinstance(error, OpsError) and first else type(error).__name__
