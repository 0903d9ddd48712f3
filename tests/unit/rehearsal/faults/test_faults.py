"""`make faults` types each safe way of the guards; what is wrong it shows itself when it runs."""

import re
from collections.abc import Mapping

from rehearsal.faults.safe_ways import CHANGES, steps
from tests.unit.assets.functions import load
from training_cluster.functions.guarded import Guarded
from training_cluster.network.guarded import guarded_network
from training_cluster.rules.context import read_settings
from training_cluster.storage.guarded import guarded_storage


def _guards(flags: Mapping[str, str]) -> dict[str, Guarded]:
    settings = read_settings(flags)
    ids = dict.fromkeys(("vpc_id", "subnet_id", "node_security_group_id"), "any")
    return guarded_storage(settings, **ids) | guarded_network(settings)


def _ways(guarded: Mapping[str, Guarded]) -> dict[str, str]:
    """Return the safe ways by flag, those that differ in the name of the flag alone as one."""
    return {
        flag: re.sub(rf"{flag}=({{old}}| )", r"FLAG=\1", each.safe_way)
        for flag, each in guarded.items()
        if each.safe_way
    }


def test_each_safe_way_is_typed_by_a_case() -> None:
    refused = load("guard")["transitions"].refused_changes
    known, typed = set[str](), set[str]()
    for start, *changes in CHANGES.values():
        for wanted in changes:
            old, new = (_guards(flags) for flags in (start, wanted))
            values = ({flag: each.as_property() for flag, each in kept.items()} for kept in (old, new))
            flags = [text.partition(": ")[0] for text in refused(*values)]
            known |= {*_ways(old).values(), *_ways(new).values()}
            typed |= {_ways(new)[flag] for flag in flags}
    assert known == typed, f"no case of rehearsal/faults/safe_ways.py types: {known - typed}"
    for way in typed:
        keep, move = steps(way)
        said = re.findall("trainctl|aws fsx|then deploy", way)
        assert (len(move), bool(keep or said)) == (len(said), True), f"safe_ways.py does not read: {way}"
