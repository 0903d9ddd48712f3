"""The app's cloud assemblies, one for each set of flags: a synth takes longer than all else of a deploy."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from rehearsal.cdk import CdkCli
from rehearsal.narrator import Narrator
from rehearsal.workspace import PROJECT

# What jsii unpacks stays from one run to the next; it would lie in the HOME of each local AWS.
_JSII = {"JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(PROJECT / ".cache" / "jsii")}


class Assemblies:
    """What `cdk deploy --app` and `cdk destroy --app` take; the workers share them.

    Args:
        folder: takes a folder for each; made if need be.
    """

    def __init__(self, folder: Path, narrator: Narrator) -> None:
        self._folder, self._narrator, self._lock = folder, narrator, threading.Lock()
        self._made: dict[tuple[str, ...], Path] = {}

    def of(self, flags: Mapping[str, str], environment: Mapping[str, str]) -> Path:
        """Folder of the app's assembly with these context flags.

        Args:
            environment: of a client of a local AWS; synth asks it nothing, and finds no account elsewhere.

        Raises:
            RehearsalError: the synth fails.
        """
        given = tuple(f"{flag}={value}" for flag, value in sorted(flags.items()))
        if given not in self._made:  # one that is there does not wait for the synth of another
            with self._lock:
                if given not in self._made:
                    self._made[given] = self._synth(given, environment)
        return self._made[given]

    def _synth(self, given: Sequence[str], environment: Mapping[str, str]) -> Path:
        folder = self._folder / (",".join(given) or "defaults")
        folder.mkdir(parents=True, exist_ok=True)
        cdk = CdkCli(
            project=PROJECT,
            environment={**environment, **_JSII},
            logs=folder,
            narrator=self._narrator,
        )
        context = [part for each in given for part in ("-c", each)]
        cdk.run("synth", "--quiet", *context, output=folder / "cdk.out")
        return folder / "cdk.out"
