"""Small faults of shell: a condition is negated, or a command does not run."""

import re
from collections.abc import Iterator

_CONDITIONS = (
    re.compile(r"\b(?:if|while|until) (?P<it>.+?); (?:then|do)\b"),
    re.compile(r"^ *(?P<it>\[\[ .+? \]\]|\(\(.+?\)\)) (?:\|\||&&)"),
)
# Keywords, messages, labels of case, and lines that the next one continues.
_NO_COMMAND = re.compile(
    r"(local|readonly|declare|if|elif|else|fi|for|while|until|do|done|case|esac|return|log|say|environment_log)\b"
    r"|[^\w$]|.*[|&\\({]$|.*;;$|.*then$|[^ (]+\)( |$)"
)


def shell_faults(source: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield function, fault, the source that it replaces, and the whole text with the fault."""
    lines = source.split("\n")
    function = end = before = ""
    for number, line in enumerate(lines):
        text = line.strip()
        if end:
            end = "" if text == end else end
            continue
        if begins := re.match(r"(\w+)\(\) [{(]", line):
            function = begins[1]
        elif line in {"}", ")"}:
            function = ""
        if heredoc := re.search(r"<<-?['\"]?([A-Z]+)", line):
            end = heredoc[1]
        is_whole = line.startswith("  ") and not re.search(r"[|&\\({]$", before) and not end
        before = text
        if line.count("'") % 2 or line.count('"') % 2:  # a string of several lines
            continue
        found = [("negate", each.span("it"), "! {{ {}; }}") for p in _CONDITIONS for each in p.finditer(line)]
        if text and is_whole and not _NO_COMMAND.match(text):
            found.append(("drop", (line.index(text), len(line)), ":"))
        for fault, (start, stop), instead in found:
            planted = line[:start] + instead.format(line[start:stop]) + line[stop:]
            yield (
                function,
                fault,
                line[start:stop],
                "\n".join([*lines[:number], planted, *lines[number + 1 :]]),
            )
