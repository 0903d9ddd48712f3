"""docs/first-deploy.md, generated from trainctl verify's checks."""

from ops.verify.check import Check
from ops.verify.checks import CHECKS
from ops.verify.gpu import GPU_CHECKS
from ops.verify.nodes import NODE_CHECKS
from tools.docs.table import table

_HEAD = """\
# The first real deploy

`make docs` generates this page from `ops/verify/`, and a test compares the two. The page lists what no
rehearsal can show. Nothing has run on AWS yet. After `npx cdk deploy TrainingClusterStack`, type with the
account's credentials:

    trainctl verify --html verify.html     # starts no node
    trainctl verify --nodes 2 --json       # also nccl-tests and ten minutes of training: nodes cost money
    trainctl verify --gpu --json           # only one GPU node, against recorded figures of its family

Each check prints a verdict (`held`, `differs` or `could not look`), the value that it found and the value
that it expected. If a check fails, the others still run. The exit code is 1 if something differs, and 2
without credentials. In a rehearsal, a check of something that a rehearsal lacks says so.

The JSON and the page contain no account ids, ARNs, addresses or resource ids, so you can attach them to a
report. The command removes what it writes (a small object in each linked folder, and the runs and checkpoints
of its jobs) and cancels its jobs, also after Ctrl-C. Python environments and prepared data remain, because
other jobs share them. If the check of a job differs, the job's output remains as well.

The times are estimates; none was measured. Some checks need a person:
[the first real deploy](rehearsal.md#the-first-real-deploy-look-at-these) lists them.

"""

_GPU = """
With `--gpu` only these, on one node of the first queue with NVIDIA GPUs. The command as a whole has not run
on a GPU. The figures of the p5 family are of one H100, which was not on AWS, and of earlier versions of the
programs.

"""


def render_first_deploy_page() -> str:
    """Render docs' page of the first deploy."""
    with_nodes = "\nWith `--nodes N`, also:\n\n"
    return _HEAD + _table(CHECKS) + with_nodes + _table(NODE_CHECKS) + _GPU + _table(GPU_CHECKS)


def _table(checks: tuple[Check, ...]) -> str:
    rows = ((each.id, each.claim, each.expected, each.not_in_rehearsal) for each in checks)
    return table(("check", "claim", "expected", "not in a rehearsal"), rows)
