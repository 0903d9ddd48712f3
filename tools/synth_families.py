"""`python -m tools.synth_families FOLDER`: the templates of every family, for checks that read templates.

Network and storage are the same for all (a test compares them), so they are written once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import aws_cdk as cdk

from stacks.composition import add_stacks
from training_cluster.families import family_names
from training_cluster.settings import Settings

# Beside one cluster a family: one with everything that a flag can add.
_EVERYTHING = {"cpu_queue": "on", "login_nodes": "2", "accounting": "new", "efs_mibps": "64"}
_OWN_NETWORK = {
    "vpc_id": "vpc-0123456789abcdef0",
    "public_subnet_id": "subnet-0123456789abcdef0",
    "private_subnet_id": "subnet-0123456789abcdef1",
}


def synth(folder: Path, name: str, flags: dict[str, str]) -> None:
    """Synthesise the app with flags into a folder of its own."""
    context = json.loads(Path("cdk.json").read_text())["context"]
    app = cdk.App(context=context, outdir=str(folder / name), analytics_reporting=False)
    add_stacks(app, Settings.from_context(flags))
    app.synth()


def main(folder: Path) -> None:
    """Synthesise every family, and two apps with other stacks."""
    synth(folder, "everything", _EVERYTHING)
    synth(folder, "own-network", _OWN_NETWORK)
    for name in family_names():
        synth(folder, name, {"family": name})
        for same in ("NetworkStack", "StorageStack"):
            if name != family_names()[0]:
                (folder / name / f"{same}.template.json").unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
