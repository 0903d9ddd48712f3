"""`python -m tools.docs.first_deploy_page`: docs/first-deploy.md, generated from trainctl verify's checks."""

from __future__ import annotations

from collections.abc import Iterator

from ops.verify.checks import CHECKS

_HEAD = """\
# The first real deploy

Generated from `ops/verify/` by `make docs`; a test compares the two. No rehearsal can show what is listed
here, and nothing has run on AWS yet. After `npx cdk deploy TrainingClusterStack`, with the account's
credentials:

    trainctl verify             # changes nothing, starts no node
    trainctl verify --json      # without ids of the account, fit for a report

Each check has a verdict: `held`, `differs` or `could not look`, with what was seen and what was expected.
One that fails hides no other. The exit code is 1 if something differs. In a rehearsal, checks of what it
lacks say so. What a person has to look at: [rehearsal.md](rehearsal.md#the-first-real-deploy-look-at-these).

"""


def render_first_deploy_page() -> str:
    """Return the page."""
    return _HEAD + "\n".join(_rows()) + "\n"


def _rows() -> Iterator[str]:
    yield "| check | claim | expected | not in a rehearsal |"
    yield "|---|---|---|---|"
    for check in CHECKS:
        yield f"| {check.id} | {check.claim} | {check.expected} | {check.not_in_rehearsal} |"


if __name__ == "__main__":
    print(render_first_deploy_page(), end="")
