"""One local AWS for the tests of the deployed stacks, with the real CDK CLI and the real library."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from rehearsal.account import LocalAccount, local_account
from rehearsal.local_aws.address import tools_path
from rehearsal.local_aws.process import LocalAws
from rehearsal.local_aws.rights.denied import refuse_denied_calls
from rehearsal.narrator import Narrator
from tests.slow.account import Account
from training_cluster.paths import ROOT

# Scripts of nodes call `aws`.
os.environ["PATH"] = tools_path()
HERE = Path(__file__).parent


@cache
def _size(module: Path) -> int:
    """Return the characters of a module and of those of tests/slow that it imports."""
    text = module.read_text()
    names = set(re.findall(r"^from (tests\.slow\.\S+) import", text, re.MULTILINE))
    return len(text) + sum(_size(ROOT.joinpath(*name.split(".")).with_suffix(".py")) for name in names)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the largest slow modules first, so that no worker ends long after the others.

    pytest-xdist keeps this order with --no-loadscope-reorder. A module's size tells its time well enough.
    """
    items.sort(key=lambda item: (HERE not in item.path.parents, -_size(item.path)))


@dataclass(frozen=True, kw_only=True)
class Cloud(LocalAccount):
    """A running local AWS, and a person's commands for it."""

    folder: Path

    def deploy(self, *flags: str, stack: str = "TrainingClusterStack") -> None:
        """Run `cdk deploy` of a stack. Raises RehearsalError if it fails."""
        context = [part for flag in flags for part in ("-c", flag)]
        deploy = ("deploy", stack, "--require-approval", "never")
        self.cdk.run(*deploy, *context, output=self.folder / "cdk.out")

    def destroy(self, *flags: str) -> None:
        """Run `cdk destroy TrainingClusterStack --force`."""
        context = [part for flag in flags for part in ("-c", flag)]
        self.cdk.run("destroy", "TrainingClusterStack", "--force", *context, output=self.folder / "cdk.out")


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """Start a local AWS, bootstrapped for the CDK; at the end, no call of a function lacked a right."""
    folder = tmp_path_factory.mktemp("aws")
    marker = ("TRAINING_CLUSTER_TEST", str(folder))
    with local_account(folder, marker=marker, narrator=Narrator()) as account:
        yield Cloud(**vars(account), folder=folder)
        refuse_denied_calls(account.address)


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """Start a local AWS without the CDK's bootstrap."""
    folder = tmp_path_factory.mktemp("aws")
    with LocalAws(folder=folder, marker=("TRAINING_CLUSTER_TEST", str(folder))) as address:
        yield Account(address)
