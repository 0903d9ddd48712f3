""".github/renovate.json: it covers every version that this repository pins."""

import json
import re
from typing import Any

from tests import rooms
from training_cluster.catalog.versions import FILE, load_versions
from training_cluster.paths import ROOT

CONFIG: dict[str, Any] = json.loads((ROOT / ".github" / "renovate.json").read_text())
LOOKED_UP = {name: pin for name, pin in load_versions().pins.items() if pin.lookup}


def matches(pattern: str, path: object) -> bool:
    """Compare a path with a pattern as Renovate does: /a regular expression/."""
    return bool(re.search(pattern.removeprefix("/").removesuffix("/"), str(path)))


def test_every_pin_of_nodes_is_found() -> None:
    (manager,) = CONFIG["customManagers"]
    (file,), (pattern,) = manager["managerFilePatterns"], manager["matchStrings"]
    assert matches(file, FILE.relative_to(ROOT))
    # Renovate's engine, RE2, has no look-around.
    assert not re.search(r"\(\?<?[=!]", pattern)
    found = re.finditer(pattern.replace("(?<", "(?P<"), FILE.read_text())
    read = {pin[1]: f"{pin['currentValue']} {pin['datasource']}:{pin['packageName']}" for pin in found}
    assert read == {name: f"{pin.version} {pin.lookup}" for name, pin in LOOKED_UP.items()}


def test_rules_have_the_ceilings_of_the_pins() -> None:
    wanted = {}
    for name, pin in LOOKED_UP.items():
        if pin.ceiling:
            *first, last = pin.ceiling.split(".")
            wanted[name] = "<" + ".".join([*first, str(int(last) + 1)])
    rules = [rule for rule in CONFIG["packageRules"] if "matchDepNames" in rule]
    assert {name: rule["allowedVersions"] for rule in rules for name in rule["matchDepNames"]} == wanted


def test_every_file_of_requirements_is_read() -> None:
    pinned = re.compile(r"^[\w.-]+==", re.MULTILINE)
    files = [path for path in rooms.tracked("*requirements*.txt") if pinned.search((ROOT / path).read_text())]
    (pattern,) = CONFIG["pip_requirements"]["managerFilePatterns"]
    assert files
    assert [path for path in files if not matches(pattern, path)] == []
