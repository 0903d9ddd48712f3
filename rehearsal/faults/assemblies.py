"""The app's cloud assemblies, one for each set of flags, since synth takes most of a deploy's time."""

import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from rehearsal.cdk import CdkCli
from rehearsal.narrator import Narrator
from training_cluster.paths import ROOT

# Keeps jsii's unpacked files between runs; by default they would be in the HOME of each local AWS.
_JSII = {"JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(ROOT / ".cache" / "jsii")}


class Assemblies:
    """Assemblies for `cdk deploy --app` and `cdk destroy --app`, shared by the workers.

    Args:
        folder: takes a folder for each; created if missing.
    """

    def __init__(self, folder: Path, narrator: Narrator) -> None:
        self._folder, self._narrator, self._lock = folder, narrator, threading.Lock()
        self._made: dict[tuple[str, ...], Path] = {}

    def of(self, flags: Mapping[str, str], environment: Mapping[str, str]) -> Path:
        """Return the folder of the app's assembly with these context flags; synthesise it at first use.

        Args:
            environment: variables of a client of a local AWS, so that synth finds no other account.

        Raises:
            RehearsalError: the synth fails.
        """
        given = tuple(f"{flag}={value}" for flag, value in sorted(flags.items()))
        if given not in self._made:  # an existing assembly does not wait for another synth
            with self._lock:
                if given not in self._made:
                    self._made[given] = self._synth(given, environment)
        return self._made[given]

    def _synth(self, given: Sequence[str], environment: Mapping[str, str]) -> Path:
        folder = self._folder / (re.sub(r"[^\w.,=-]", "-", ",".join(given)) or "defaults")
        folder.mkdir(parents=True, exist_ok=True)
        cdk = CdkCli(project=ROOT, environment={**environment, **_JSII}, logs=folder, narrator=self._narrator)
        context = [part for each in given for part in ("-c", each)]
        cdk.run("synth", "--quiet", *context, output=folder / "cdk.out")
        return folder / "cdk.out"
