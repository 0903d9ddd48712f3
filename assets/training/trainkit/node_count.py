"""`trainkit.node_count FOLDER LEAST MOST [ARGUMENT...]` prints how many nodes a workload takes at most.

The arguments are the workload's. Its `check_job` in settings.py judges each number; without one it takes any.
Exits with the sentence about the largest number if it takes none. Only the standard library.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def node_count(folder: Path, *, least: int, most: int, arguments: list[str]) -> int:
    """Return the largest number of nodes from `least` to `most` that the workload takes; dies without one."""
    if not (folder / "settings.py").is_file():
        return most
    sys.path.insert(0, str(folder))
    settings = importlib.import_module("settings")
    if not (check := getattr(settings, "check_job", None)):
        return most
    given, refused = settings.read_settings(arguments), list[SystemExit]()
    for count in range(most, least - 1, -1):
        try:
            check(given, count)
        except SystemExit as error:
            refused.append(error)
        else:
            return count
    raise refused[0]


if __name__ == "__main__":
    _, given, fewest, greatest, *words = sys.argv
    print(node_count(Path(given), least=int(fewest), most=int(greatest), arguments=words))
