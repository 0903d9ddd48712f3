"""The guard's values, which `trainctl plan` reads without the CDK."""

import subprocess
import sys

from training_cluster.paths import ROOT


def test_plan_imports_no_cdk() -> None:
    """Importing the CDK takes seconds, and starts Node."""
    program = "import sys, ops.plan.plan; sys.exit('aws_cdk' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == 0
