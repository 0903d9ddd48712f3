"""Generator of constructs/training_cluster/pcluster/slurm_keys.json: the keys that Slurm reads in slurm.conf.

They come, with the forms of their values, from the tables of Slurm's parser, in src/common/read_config.c.
FOLDER is a clone of https://github.com/SchedMD/slurm. The first tag is of the Slurm of a cluster, the second
of the one in Debian 12, the oldest with which a rehearsal runs.

    python -m tools.slurm_keys FOLDER slurm-25-11-7-1 slurm-22-05-8-1
"""

import re
import subprocess
import sys

from tools.json_text import json_text
from training_cluster.pcluster.slurm_settings import FORMS, KEYS_FILE, REMOVED, SLURM_CONF, TIME

SOURCE = "src/common/read_config.c"
_MAIN = "s_p_options_t slurm_conf_options[]"
_READ_AS_TIME = r's_p_get_string\(&\w+, "(\w+)", \w+\)(?:(?!s_p_get_)[^}])*?time_str2'
_FATAL = r'fatal\("(?:The )?(\w+)(?: option)? has been removed'
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
                f"{SOURCE} reads {key} as {form}: add the form to FORMS of {KEYS_FILE.stem}'s reader"
            )
        found.setdefault(form, []).append(key)
    return dict(sorted(found.items()))


def _lacks(older: Keys, newer: Keys) -> dict[str, list[str]]:
    """Return the keys that the older Slurm does not know."""
    found = {}
    for kind, forms in newer.items():
        known = {key.lower() for keys in older[kind].values() for key in keys}
        found[kind] = sorted(key for keys in forms.values() for key in keys if key.lower() not in known)
    return {kind: keys for kind, keys in found.items() if keys}


def main(folder: str, tag: str, local_tag: str) -> None:
    """Write slurm_keys.json."""
    keys, local = (
        read_keys(
            subprocess.run(
                ["git", "-C", folder, "show", f"{each}:{SOURCE}"], check=True, capture_output=True, text=True
            ).stdout
        )
        for each in (tag, local_tag)
    )
    content = {
        "source": f"https://github.com/SchedMD/slurm {tag} {SOURCE}",
        "tag": tag,
        "keys": keys,
        "rehearsal": {"tag": local_tag, "lacks": _lacks(local, keys)},
    }
    KEYS_FILE.write_text(json_text(content, levels=3), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
