"""Settings of slurm.conf in a cluster's config, as far as a Slurm on this machine takes them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from rehearsal.local_slurm.ports import LOOPBACK
from training_cluster.overrides.merge import SLURM_CONF
from training_cluster.pcluster.slurm_settings import files_of, lacking_in_rehearsal, line_kind

Settings = Mapping[str, object]

_ELSEWHERE = ("nodeaddr", "nodehostname", "port", "state")
"""Keys of nodes of the user's own, which this machine cannot reach."""
_NEWER = "newer than Slurm 22.05"
_NOT_HERE = {"prologflags": {"x11": "not with proctrack/linuxproc, which this machine has"}}
"""Words of settings with which this machine's slurmctld does not start."""


@dataclass(kw_only=True)
class CustomSettings:
    """Lines and ends of lines of one slurm.conf, and the settings that it leaves out."""

    has_accounting: bool
    left_out: list[str] = field(default_factory=list)
    """Settings, each with the reason."""

    def lines(self, settings: Iterable[Settings], *, ours: str) -> Iterator[str]:
        """Yield the cluster's lines; `ours` is the text of the lines before."""
        yield "\n# The cluster's own settings."
        taken = {key.lower() for key in re.findall(r"^(\w+)=", ours, re.MULTILINE)}
        for each in settings:
            kind = line_kind(each)
            if kind == SLURM_CONF:
                yield from (f"{key}={value}" for key, value in self._usable(each, kind, taken))
                continue
            begin = next(key for key in each if key.lower() == kind.lower())
            here = {key: value for key, value in each.items() if key != begin}
            own = f"{kind}={each[begin]}"
            if kind == "NodeName":  # described, but never used
                here = {key: value for key, value in here.items() if key.lower() not in _ELSEWHERE}
                own += f" NodeAddr={LOOPBACK} State=FUTURE"
            yield self.after(own, here)

    def after(self, line: str, settings: Settings) -> str:
        """Return a line of NodeName, PartitionName or the like, with more settings at its end."""
        kind = line.partition("=")[0]
        taken = {key.lower() for key in re.findall(r"(?:^| )(\w+)=", line)}
        return " ".join([line, *(f"{key}={value}" for key, value in self._usable(settings, kind, taken))])

    def _usable(self, settings: Settings, kind: str, taken: set[str]) -> Iterator[tuple[str, object]]:
        for key, given in settings.items():
            value = self._words(key, given)
            needs_database = key.lower().startswith("accountingstorage") and not self.has_accounting
            if key.lower() in lacking_in_rehearsal(kind):
                reason = _NEWER
            elif key.lower() in taken:
                reason = "this machine has its own"
            elif needs_database:
                reason = "there is no slurmdbd here"
            elif files := files_of(key, value):
                reason = f"reads {', '.join(files.values())}, which a script on the head node brings"
            else:
                if value != "" or given == "":  # any word is left
                    yield key, value
                continue
            self.left_out.append(f"{key}={value}: {reason}")

    def _words(self, key: str, value: object) -> object:
        """Return a value without the words with which this machine's slurmctld does not start."""
        reasons = _NOT_HERE.get(key.lower(), {}) | dict.fromkeys(lacking_in_rehearsal(key), _NEWER)
        words = {each: reasons.get(each.strip().lower()) for each in str(value).split(",")}
        self.left_out += [f"{key}={each.strip()}: {reason}" for each, reason in words.items() if reason]
        left = [each for each, reason in words.items() if not reason]
        return value if len(left) == len(words) else ",".join(left)
