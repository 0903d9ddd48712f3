"""`python -m tools.docs.first_deploy_page`: docs/first-deploy.md, generated from trainctl verify's checks."""

from __future__ import annotations

from collections.abc import Iterator

from ops.verify.check import Check
from ops.verify.checks import CHECKS
from ops.verify.nodes import NODE_CHECKS

_HEAD = """\
# The first real deploy

Generated from `ops/verify/` by `make docs`; a test compares the two. No rehearsal can show what is listed
here, and nothing has run on AWS yet. After `npx cdk deploy TrainingClusterStack`, with the account's
credentials:

    trainctl verify --html verify.html     # starts no node
    trainctl verify --nodes 2 --json       # also nccl-tests and ten minutes of training: nodes cost money

Each check has a verdict: `held`, `differs` or `could not look`, with what was seen and what was expected.
One that fails hides no other. The exit code is 1 if something differs, 2 without credentials. In a rehearsal,
checks of what it lacks say so. JSON and page have no account ids, ARNs, addresses or resource ids, so they
can be attached to a report. It removes what it writes (a small object in each linked folder; the runs and
checkpoints of its jobs) and cancels its jobs, also after Ctrl-C. What jobs share remains: Python environments
and prepared data. The output of a job remains where its check differs. Times are
estimates: none was measured. What a person has to look at:
[rehearsal.md](rehearsal.md#the-first-real-deploy-look-at-these).

"""


def render_first_deploy_page() -> str:
    """Render docs' page of the first deploy."""
    with_nodes = "\nWith `--nodes N`, also:\n\n"
    return _HEAD + "".join(_rows(CHECKS)) + with_nodes + "".join(_rows(NODE_CHECKS))


def _rows(checks: tuple[Check, ...]) -> Iterator[str]:
    yield "| check | claim | expected | not in a rehearsal |\n|---|---|---|---|\n"
    for check in checks:
        yield f"| {check.id} | {check.claim} | {check.expected} | {check.not_in_rehearsal} |\n"


if __name__ == "__main__":
    print(render_first_deploy_page(), end="")
