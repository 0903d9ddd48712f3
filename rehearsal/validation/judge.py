"""The real schema and validators, which check one cluster config after another; runs in .venv-pcluster.

Called by: rehearsal/validation/run.py, with the environment of a client of the local AWS. It reads one
JSON object per line, and writes one, both as ops/pcluster/judge_config.py has them.
"""

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
from ops.pcluster.judge_config import judge
from rehearsal.faults.inside.shared_clients import share_clients

if __name__ == "__main__":
    share_clients()
    for line in sys.stdin:
        print(json.dumps(judge(**json.loads(line))), flush=True)
