"""Generator of constructs/training_cluster/pcluster/slurm_keys.json: the keys that Slurm reads in slurm.conf.

They come from the tables of its parser, in src/common/read_config.c. Deprecated keys are among them, since
slurmctld accepts these. FOLDER is a clone of https://github.com/SchedMD/slurm.

    python -m tools.slurm_keys FOLDER slurm-25-11-7-1
"""

import re
import subprocess
import sys

from tools.json_text import json_text
from training_cluster.pcluster.slurm_settings import KEYS_FILE, SLURM_CONF

SOURCE = "src/common/read_config.c"
_MAIN = "s_p_options_t slurm_conf_options[]"


def read_keys(source: str) -> dict[str, list[str]]:
    """Return the keys of slurm.conf, and those that may follow a key such as NodeName on its line.

    Args:
        source: text of read_config.c.
    """
    main = _table(source, source.index(_MAIN))
    lines = re.findall(r'\{"(\w+)",\s*S_P_ARRAY,\s*(_parse_\w+)', main)
    return {SLURM_CONF: _keys(main)} | {key: _keys(_table(source, _start(source, of))) for key, of in lines}


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


def _keys(table: str) -> list[str]:
    return re.findall(r'\{"(\w+)"', table)


def main(folder: str, tag: str) -> None:
    """Write slurm_keys.json."""
    asked = ["git", "-C", folder, "show", f"{tag}:{SOURCE}"]
    text = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    content = {
        "source": f"https://github.com/SchedMD/slurm {tag} {SOURCE}",
        "tag": tag,
        "keys": read_keys(text),
    }
    KEYS_FILE.write_text(json_text(content, levels=2), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
