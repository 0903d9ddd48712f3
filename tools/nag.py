"""`python -m tools.nag FOLDER...`: the findings of cdk-nag and of CDK's validation of templates in apps.

tools/synth_families.py writes the apps. It fails for a finding that is not acknowledged, for rules that could
not run, and for an acknowledgement in the code that none of the apps needs.
"""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks

from training_cluster.acknowledgements import PACK

# Synth does not fail, since this program reads the reports of all apps.
DO_NOT_FAIL = {"@aws-cdk/core:failSynthOnValidationErrors": False}

OWN_ADVICE = "training-cluster:"
"""Prefix of the app's own advice on flags (advice.py), which is not a finding."""

_REPORT = "validation-report.json"
_ACKNOWLEDGED = "aws:cdk:acknowledged-rules"

Acknowledgement = tuple[str, str]
"""Path of the construct, and id of the rule."""


def add_rules(app: cdk.App) -> None:
    """Make the app's synth write a report, which always includes CDK's own validation."""
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))


@dataclass
class Found:
    """The combined reports of a number of apps."""

    problems: dict[str, set[str]] = field(default_factory=dict)
    """Findings that are not acknowledged, and the apps that have each."""
    acknowledged: set[Acknowledgement] = field(default_factory=set)
    used: set[Acknowledgement] = field(default_factory=set)

    def read(self, folder: Path) -> None:
        """Add an app's report.

        Raises:
            FileNotFoundError: the app was written without one, so no rule ran.
        """
        report = json.loads((folder / _REPORT).read_text())
        for plugin in report["pluginReports"]:
            violations = plugin["violations"]
            if plugin["conclusion"] == "failure" and not violations:
                self._problem(folder, f"{plugin['pluginName']} could not run: {plugin.get('metadata')}")
            for violation in violations:
                if not violation["ruleName"].removeprefix("Annotation::").startswith(OWN_ADVICE):
                    for construct in violation["violatingConstructs"]:
                        self._problem(folder, _finding(violation, construct["constructPath"]))
            for violation in plugin.get("suppressedViolations") or ():
                self.used.add((violation["acknowledgedAt"], violation["acknowledgedId"]))
        for metadata in folder.glob("*.metadata.json"):
            self.acknowledged |= set(_acknowledgements(json.loads(metadata.read_text())))

    def _problem(self, folder: Path, text: str) -> None:
        self.problems.setdefault(text, set()).add(folder.name)

    @property
    def unused(self) -> list[Acknowledgement]:
        """Acknowledgements without a finding, whose reason is gone."""
        # CDK itself acknowledges some of its rules.
        own = {each for each in self.acknowledged if each[1].startswith(f"{PACK}::")}
        return sorted(own - self.used)


def _finding(violation: dict[str, Any], path: str) -> str:
    return f"{path}\n  {violation['ruleName']}: {violation['description']}"


def _acknowledgements(metadata: dict[str, list[dict[str, Any]]]) -> list[Acknowledgement]:
    return [
        (path.removeprefix("/"), id_)
        for path, entries in metadata.items()
        for entry in entries
        if entry["type"] == _ACKNOWLEDGED
        for id_ in entry["data"]
    ]


def main(folders: list[Path]) -> int:
    """Print every problem with the apps that have it; return 1 if there is one."""
    found = Found()
    for folder in folders:
        found.read(folder)
    for text, apps in sorted(found.problems.items()):
        print(f"{text}\n  in: {', '.join(sorted(apps))}", file=sys.stderr)
    for path, id_ in found.unused:
        print(f"{path}\n  {id_}: acknowledged, but no app has this finding", file=sys.stderr)
    if found.problems:
        print(
            f'Fix it, or give a reason to keep it: acknowledge(construct, "{PACK}-...", reason)',
            file=sys.stderr,
        )
    print(f"nag: {len(folders)} apps, {len(found.used)} acknowledged findings", file=sys.stderr)
    return 1 if found.problems or found.unused else 0


if __name__ == "__main__":
    sys.exit(main([Path(each) for each in sys.argv[1:]]))
