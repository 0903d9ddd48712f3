"""Data sets of the Hugging Face hub as texts: ORGANISATION/NAME[/CONFIGURATION][@REVISION].

The hub's package `datasets` finds the files of each split. They are downloaded, kept, and read like those of
a folder, so a data set is prepared once, at the commit of its first preparation.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from trainkit.data import hub
from trainkit.data.documents import kind_of
from trainkit.data.fetch import FetchError
from trainkit.data.hub_text import Download, HubText
from trainkit.data.shards import ShardError

WORD = r"\w[\w.-]*"
NAME = re.compile(
    rf"(?P<repository>{WORD}/{WORD})(?:/(?P<configuration>{WORD}))?(?:@(?P<revision>{WORD}))?", re.ASCII
)
HELD_BACK = ("validation", "test")
"""Splits that are read for validation, the first that there is."""
SHOWN, SHOWN_CHARACTERS = 5, 300


@dataclass(frozen=True, kw_only=True)
class HubDataset(HubText):
    """A data set of the hub, of which the split `train` is read, and one of HELD_BACK for validation.

    Without one of those, documents of `train` are for validation, as in a folder.
    """

    folder: str = ""
    configuration: str | None
    suffixes: Collection[str]
    """Kinds of files that are read, as documents.kind_of returns them."""
    task: str = ""
    """A task whose own splits precede others: train_sft, test_prefs."""

    @classmethod
    def named(cls, name: str, *, suffixes: Collection[str], task: str = "") -> HubDataset:
        """Return the data set of a name that NAME matches."""
        found = NAME.fullmatch(name)
        assert found
        return cls(
            title=name,
            name=f"hub--{name.replace('/', '--')}",
            repository=found["repository"],
            revision=found["revision"] or "main",
            configuration=found["configuration"],
            suffixes=suffixes,
            task=task,
        )

    @property
    def less(self) -> str:
        """What to do if the file system has too little space."""
        return f"stream it (DATA=hf:{self.title})"

    @property
    def fingerprint(self) -> str:
        """The name alone: shards remain when the repository gets another commit."""
        return self.title

    def units(self, data: Path) -> tuple[Download, ...]:
        """List its files on the hub.

        Raises:
            ShardError: the hub does not answer, has no such data set, or one that cannot be read.
        """
        try:
            commit = hub.commit_of("datasets", self.repository, self.revision)
            files = {file.path: file for file in hub.all_files("datasets", self.repository, commit)}
        except FetchError as error:
            raise self._missing(error.reason, data) from error
        splits = self._splits(commit, data)
        train, val = (self._chosen(splits, names) for names in (("train",), HELD_BACK))
        if not train:
            raise ShardError(
                f"{self.title} has the splits {', '.join(splits)}, and none is train: download what you want "
                "into a folder of datasets/, and name that."
            )
        chosen = {train: "train" if val else "", **({val: "val"} if val else {})}
        print(f"data: {self.title} is {self.repository} at {commit}, splits {', '.join(chosen)}")
        paths = [(path, called) for split, called in chosen.items() for path in sorted(splits[split])]
        others = [path for path, _ in paths if path not in files or kind_of(Path(path)) not in self.suffixes]
        if others:
            raise ShardError(
                f"{self.title} has {', '.join(others[:SHOWN])}, and what is read is "
                f"{', '.join(f'*{each}' for each in self.suffixes)}: convert it into a folder of datasets/."
            )
        return self.downloads(((files[path], called) for path, called in paths), data)

    def _chosen(self, splits: Collection[str], names: Collection[str]) -> str:
        """Return the first split of some names, of the task before others; "" if there is none."""
        wanted = [f"{name}{end}" for end in (f"_{self.task}", "") for name in names]
        return next((name for name in wanted if name in splits), "")

    def _splits(self, commit: str, data: Path) -> dict[str, list[str]]:
        """Return the paths of the files of each split at a commit."""
        from datasets import load_dataset_builder  # noqa: PLC0415 (seconds; and not every environment has it)

        try:
            found = load_dataset_builder(self.repository, self.configuration, revision=commit)
        except Exception as error:  # of the hub, the network or the data set's own format
            raise self._missing(" ".join(str(error).split())[:SHOWN_CHARACTERS], data) from error
        root = f"hf://datasets/{self.repository}@{commit}/"
        return {
            str(split): [url.removeprefix(root) for url in urls]
            for split, urls in (found.config.data_files or {}).items()
        }

    def _missing(self, why: str, data: Path) -> ShardError:  # noqa: ARG002
        return ShardError(
            f"DATA={self.title} cannot be read ({why}): compare its name and CONFIGURATION, give HF_TOKEN if "
            "it is gated, and give the nodes access to the hub (NAT, or HF_ENDPOINT)."
        )
