"""Hides everything that looks like a key or a token: the user may send the output to others."""

import re

_HIDDEN = b"(masked)"
# Names whose values are always hidden. A bare "token" is not one of them: tokens/s are no secrets.
_NAMES = (
    rb"pass(?:word|wd|phrase)|secret|_pwd|api_?-?key|ac(?:cess|count)_?-?key|auth_?-?token|session_?-?token"
    rb"|security_?-?token|hf_token|hugging_?face_(?:hub_)?token|wandb_api_key|signature|credential|\bsig\b"
)
_RULES: tuple[tuple[re.Pattern[bytes], bytes], ...] = (
    (
        re.compile(
            rb"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.{0,20000}?"
            rb"(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
            re.DOTALL,
        ),
        _HIDDEN,
    ),
    (re.compile(rb"\b(?:AKIA|ASIA)[A-Z0-9]{12,20}\b"), _HIDDEN),
    (
        re.compile(
            rb"\b(?:gh[ops]_|github_pat_|glpat-|nvapi-|sk-(?:proj|svcacct|ant-[a-z]+\d\d)-|xox[abp]-)"
            rb"[A-Za-z0-9_-]{16,255}"
            # hf_llama_3_finetune and sk-learn-baseline-01 are names of runs.
            rb"|\b(?:hf_|sk-)(?=[a-z]*[A-Z0-9])[A-Za-z0-9]{16,255}(?![\w-])"
            rb"|\beyJ[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_.-]{8,8000}"
        ),
        _HIDDEN,
    ),
    (re.compile(rb"(\bhooks\.slack\.com/)[A-Za-z0-9/_-]{8,4000}"), rb"\1" + _HIDDEN),
    # Words of a command, and of Enroot's file of credentials.
    (
        re.compile(
            rb"(?i)((?:(?:^|[\s-])(?:password|passwd)|--[\w-]{0,40}(?:" + _NAMES + rb")) )[^\s\"']{8,4000}"
        ),
        rb"\1" + _HIDDEN,
    ),
    (
        re.compile(
            rb"(?i)((?:" + _NAMES + rb")[a-z_]{0,20}[\"']?\s{0,4}[=:]\s{0,4})([\"']?)(?!file:|secret:)"
            rb"[^\s\"',;&]{8,4000}"
        ),
        rb"\1\2" + _HIDDEN,
    ),
    (re.compile(rb"(\b(?i:bearer|basic) )(?=\S*[A-Z0-9])[A-Za-z0-9._~+/=-]{16,4000}"), rb"\1" + _HIDDEN),
    (re.compile(rb"(://[^/\s:@]{1,100}:)[^/\s@]{1,200}@"), rb"\1" + _HIDDEN + b"@"),
)


def mask_bytes(content: bytes) -> bytes:
    """Replace keys, tokens and passwords."""
    for pattern, instead in _RULES:
        content = pattern.sub(instead, content)
    return content


def mask(text: str) -> str:
    """Replace keys, tokens and passwords in a text."""
    return mask_bytes(text.encode()).decode(errors="replace")
