"""Hides what identifies an account in a text, so that a report can be attached anywhere."""

import ipaddress
import re

from botocore.exceptions import ClientError

from ops.account.aws_errors import DENIED
from ops.masking import mask
from ops.preflight.not_checked import not_checked
from ops.usage import OpsError

_KINDS = (
    "acl|ami|cb|cr|dopt|dra|eigw|eipalloc|eipassoc|eni|fs|fsap|fsmt|fsvol|i|igw|key|lt|nat|pcx|pg|pl|r|rtb"
    "|rtbassoc|sg|sgr|sir|snap|subnet|tgw|vgw|vol|vpc|vpce"
)
_IPV6 = re.compile(r"(?<![\w:.])[0-9a-fA-F]*(?::[0-9a-fA-F]*){2,8}(?![\w])")
# Names that CloudFormation makes for a bucket of the CDK: stack, logical id and a random part.
_BUCKET = r"\b[a-z0-9-]+bucket[0-9a-f]{8}-[a-z0-9]{12,13}\b"
_RULES = (
    (re.compile(r"\barn:aws[\w-]*:[^\s\"',)]+"), "(ARN)"),
    (re.compile(r"\bs3://[^\s\"',)]+"), "(bucket)"),
    (re.compile(_BUCKET), "(bucket)"),
    (re.compile(r"\bhttps?://[^\s\"',)]+"), "(URL)"),
    (re.compile(r"\b[\w.-]+\.amazonaws\.com(?:\.cn)?\b"), "(address)"),
    (re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+"), "(mail)"),
    (re.compile(r"\b(?:ip|ec2)-\d{1,3}(?:-\d{1,3}){3}[\w.-]*"), "(address)"),
    (re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])"), "(address)"),
    (re.compile(rf"\b(?:{_KINDS})-[0-9a-f]{{8,17}}\b"), "(id)"),
    (re.compile(r"(?<!\d)\d{12}(?!\d)"), "(account)"),
)


def hide_ids(text: str) -> str:
    """Replace keys, ARNs, buckets, URLs, addresses, resource ids and account ids."""
    for pattern, instead in _RULES:
        text = pattern.sub(instead, text)
    return mask(_IPV6.sub(_without_ipv6, text))


def _without_ipv6(match: re.Match[str]) -> str:
    """Replace an IPv6 address; keep other words with colons, such as times."""
    text = match[0]
    address = text if text.endswith("::") else text.rstrip(":")
    try:
        ipaddress.IPv6Address(address)
    except ValueError:
        return text
    return "(address)" + text[len(address) :] if address != "::" else text


def reason_without_ids(id_: str, error: Exception) -> str:
    """Return the reason why a check could not look, in one line."""
    if isinstance(error, ClientError):
        if error.response["Error"].get("Code") in DENIED:
            return not_checked(id_, error).mend
        return f"{error.operation_name}: {error.response['Error'].get('Code')}"
    first = hide_ids(str(error).partition("\n")[0])
    return first if isinstance(error, OpsError) and first else type(error).__name__
