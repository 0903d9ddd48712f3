"""`python -m tools.nag FOLDER...`: the acknowledgements of cdk-nag's rules that no app needs.

tools/synth_families.py writes the apps; its synth fails for a finding that is not acknowledged.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from training_cluster.acknowledgements import PACK

_ACKNOWLEDGED = "aws:cdk:acknowledged-rules"

Acknowledgement = tuple[str, str]
"""Path of the construct, and id of the rule."""


def acknowledged(folder: Path) -> Iterator[Acknowledgement]:
    """Yield the acknowledgements of an app; CDK itself makes some, of its own rules."""
    for file in folder.glob("*.metadata.json"):
        for path, entries in json.loads(file.read_text()).items():
            for id_ in (id_ for entry in entries if entry["type"] == _ACKNOWLEDGED for id_ in entry["data"]):
                if id_.startswith(f"{PACK}::"):
                    yield path.removeprefix("/"), id_


def used(folder: Path) -> Iterator[Acknowledgement]:
    """Yield those with a finding. Raises FileNotFoundError if no rule ran."""
    for plugin in json.loads((folder / "validation-report.json").read_text())["pluginReports"]:
        for violation in plugin.get("suppressedViolations") or ():
            yield violation["acknowledgedAt"], violation["acknowledgedId"]


def main(folders: list[Path]) -> int:
    """Print the acknowledgements without a finding in any app; return 1 if there is one."""
    needed = {each for folder in folders for each in used(folder)}
    unused = sorted({each for folder in folders for each in acknowledged(folder)} - needed)
    for path, id_ in unused:
        print(f"{path}\n  {id_}: acknowledged, but no app has this finding", file=sys.stderr)
    print(f"nag: {len(folders)} apps, {len(needed)} acknowledged findings", file=sys.stderr)
    return bool(unused)


if __name__ == "__main__":
    sys.exit(main([Path(each) for each in sys.argv[1:]]))
