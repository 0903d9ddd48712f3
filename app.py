#!/usr/bin/env python3
"""The CDK app: context flags -> Settings -> stacks. `cdk synth` runs it; it makes no call of AWS."""

import os
import sys
from pathlib import Path

# aws_cdk runs Node: prefer the one beside this interpreter (`make setup` puts Node 24 there).
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"

import aws_cdk as cdk

from stacks.composition import add_stacks
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings


def main() -> int:
    """Build and synthesise the stacks. Return 1, after one clear message, when a flag is wrong."""
    app = cdk.App()
    try:
        add_stacks(app, read_settings(app.node.get_all_context()))
    except ConfigurationError as error:
        print(f"\nTraining Cluster: {error}\n", file=sys.stderr)
        return 1
    app.synth()
    return 0


if __name__ == "__main__":
    sys.exit(main())
