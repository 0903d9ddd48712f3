"""The form of JSON files that programs write."""

import json

from tools.json_text import json_text


def test_entries_of_outer_levels_have_a_line_each() -> None:
    value = {"a": [{"b": [1, 2]}, {}], "c": {"d": 'e "f"'}, "g": [], "h": None}
    expected = """\
{
 "a": [
  {"b": [1, 2]},
  {}
 ],
 "c": {
  "d": "e \\"f\\""
 },
 "g": [],
 "h": null
}
"""
    assert json_text(value, levels=2) == expected
    assert json.loads(json_text(value, levels=3)) == value
