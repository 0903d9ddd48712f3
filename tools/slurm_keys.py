"""Generator of constructs/training_cluster/overrides/slurm_keys.json: the keys of slurm.conf.

They come, with the forms of their values and the words that values are of, from the tables and functions of
Slurm's parser, in src/common. Which values are lists, and the plugins, come from Slurm's manual.
FOLDER is a clone of https://github.com/SchedMD/slurm. The first tag is of the Slurm of a cluster, the second
of the one in Debian 12, the oldest with which a rehearsal runs.

    python -m tools.slurm_keys FOLDER slurm-25-11-7-1 slurm-22-05-8-1
"""

import re
import subprocess
import sys

from tools.json_text import json_text
from training_cluster.overrides.merge import SLURM_CONF, SLURM_KEYS
from training_cluster.pcluster.slurm_settings import FORMS, REMOVED, TIME

SOURCE = "src/common/read_config.c"
_FUNCTIONS = ("src/common/slurm_protocol_defs.c", "src/common/slurm_rlimits_info.c")
"""More sources of functions that read words."""
MANUAL = "doc/man/man5/slurm.conf.5"
_ENTRY = re.compile(r"^\.TP(?: \d+)?\n\\fB([\w/]+)\\fR\s*$", re.MULTILINE)
_IS_LIST = re.compile(r"comma\W{0,3}(separat|delimit)|separated by commas", re.IGNORECASE)
_MAIN = "s_p_options_t slurm_conf_options[]"
_READ_AS_TIME = r's_p_get_string\(&\w+, "(\w+)", \w+\)(?:(?!s_p_get_)[^}])*?time_str2'
_FATAL = r'fatal\("(?:The )?(\w+)(?: option)? has been removed'
_FUNCTION = re.compile(
    r"^(?:extern |static )?(?:\w+ )?\*?(\w+)\([^;{}]*\)\n\{\n(.*?)^\}", re.MULTILINE | re.DOTALL
)
_GET = re.compile(r's_p_get_\w+\([^"();]*"(\w+)",\s*\w+\)')
_ENDS = re.compile(r"SLURM_ERROR|fatal\(|return -1")
_COMPARED = re.compile(r'xstrn?(?:case)?cmp\(\s*\w+,\s*"([^"]+)"|\{ RLIMIT_\w+,\s*"(\w+)"')
Keys = dict[str, dict[str, list[str]]]


def read_keys(source: str) -> Keys:
    """Return the keys of slurm.conf, and those that may follow a key such as NodeName on its line, by form.

    Args:
        source: text of read_config.c.
    """
    main = _table(source, source.index(_MAIN))
    lines = re.findall(r'\{"(\w+)",\s*S_P_ARRAY,\s*(_parse_\w+)', main)
    tables = {SLURM_CONF: main} | {key: _table(source, _start(source, of)) for key, of in lines}
    special = dict.fromkeys(re.findall(_READ_AS_TIME, source), TIME)
    special |= dict.fromkeys(re.findall(_FATAL, source), REMOVED)
    return {kind: _forms(table, special) for kind, table in tables.items()}


def _start(source: str, function: str) -> int:
    """Return where the definition of a function begins, which has the table of its keys."""
    found = re.search(rf"^static int {function}\([^;{{]*\)\s*\{{", source, re.MULTILINE)
    if found is None:
        raise ValueError(f"{SOURCE} defines no {function}: Slurm's parser has changed")
    return found.end()


def _table(source: str, start: int) -> str:
    """Return the first table of keys after a place."""
    begin = source.index("[] = {", start)
    return source[begin : source.index("{NULL}", begin)]


def _forms(table: str, special: dict[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, of_table in re.findall(r'\{"(\w+)"\s*,\s*S_P_(\w+)', table):
        form = special.get(key, of_table)
        if form not in FORMS:
            raise ValueError(
                f"{SOURCE} reads {key} as {form}: add the form to FORMS of {SLURM_KEYS.stem}'s reader"
            )
        found.setdefault(form, []).append(key)
    return dict(sorted(found.items()))


def read_manual(text: str, keys: Keys) -> tuple[list[str], dict[str, list[str]]]:
    """Return the keys whose values are lists, by the first paragraph of each, and the plugins by key."""
    known = {key for each in keys[SLURM_CONF].values() for key in each}
    lists, plugins, at = set[str](), dict[str, list[str]](), ""
    entries = _ENTRY.split(text)
    for name, said in zip(entries[1::2], entries[2::2], strict=True):
        at = name if name in known else at
        if name == at and _IS_LIST.search(re.split(r"^\.(?:TP|RS)", said, flags=re.MULTILINE)[0]):
            lists.add(name)
        elif at and "/" in name:
            plugins.setdefault(at, []).append(name)
    return sorted(lists), plugins


def read_words(source: str, more: str) -> dict[str, dict[str, list[str]]]:
    """Return the words of each key's values, by the key that begins the line: with others no daemon starts.

    Args:
        source: text of read_config.c.
        more: texts of other sources of functions.
    """
    functions = dict(_FUNCTION.findall(source + more))
    known = {name: found for name, text in functions.items() if len(found := _compared(text)) > 1}
    known["parse_rlimits"] |= _compared(more[more.index("rlimits_info[]") : more.index("\nparse_rlimits")])
    of = {SLURM_CONF: "_validate_and_set_defaults", "PartitionName": "_parse_partitionname"}
    return {kind: _of_keys(functions[function], known) for kind, function in of.items()}


def _of_keys(text: str, functions: dict[str, set[str]]) -> dict[str, list[str]]:
    """Return the words of each key that a text reads: it compares them, or calls one of the functions."""
    found, after = dict[str, list[str]](), ""
    parts = _GET.split(text)
    for key, read in reversed([*zip(parts[1::2], parts[2::2], strict=True)]):
        after = after if read.strip() == "||" else read
        called = [words for name, words in functions.items() if f"{name}(" in after and _ENDS.search(after)]
        own = _compared(after) if re.search(r"else \{\s*(error|fatal)\(", after) else set[str]()
        if words := own.union(*called):
            found.setdefault(key, sorted(words, key=str.lower))
    return dict(sorted(found.items()))


def _compared(text: str) -> set[str]:
    """Return the words with which a text compares a value; one digit stands for each number."""
    words = {first or second for first, second in _COMPARED.findall(text)}
    return words | {*"0123456789"} if "atoi(name)" in text else words


def _lacks(older: Keys, newer: Keys) -> dict[str, list[str]]:
    """Return the keys, or the words of each key, that the older Slurm does not know."""
    found = {}
    for kind, forms in newer.items():
        known = {key.lower() for keys in older.get(kind, forms).values() for key in keys}
        found[kind] = sorted(key for keys in forms.values() for key in keys if key.lower() not in known)
    return {kind: keys for kind, keys in found.items() if keys}


def main(folder: str, tag: str, local_tag: str) -> None:
    """Write slurm_keys.json."""

    def show(path: str) -> str:
        command = ["git", "-C", folder, "show", path]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    source, local = show(f"{tag}:{SOURCE}"), show(f"{local_tag}:{SOURCE}")
    keys = read_keys(source)
    words, older = (
        read_words(text, "".join(show(f"{of}:{path}") for path in _FUNCTIONS))
        for of, text in ((tag, source), (local_tag, local))
    )
    of_words = ({key: {"": of} for key, of in each[SLURM_CONF].items()} for each in (older, words))
    lists, plugins = read_manual(show(f"{tag}:{MANUAL}"), keys)
    for names in plugins.values():  # older names, such as topology/default
        kind = names[0].partition("/")[0]
        compared = re.findall(rf'xstrcasecmp\([^,]+, "({kind}/\w+)"\)', source)
        names.extend(sorted({*compared} - {*names}))
    lacks = _lacks(read_keys(local), keys) | _lacks(*of_words)
    content = {
        "source": f"https://github.com/SchedMD/slurm {tag} {', '.join((SOURCE, *_FUNCTIONS, MANUAL))}",
        "tag": tag,
        "keys": keys,
        "words": words,
        "manual": {"lists": {SLURM_CONF: lists}, "plugins": {SLURM_CONF: plugins}},
        "rehearsal": {"tag": local_tag, "lacks": lacks},
    }
    SLURM_KEYS.write_text(json_text(content, levels=3), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
