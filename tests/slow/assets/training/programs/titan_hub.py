"""Prints the files of a data set of the hub, with their splits, as JSON: HF_ENDPOINT is a hub of a test.

Usage: titan_hub.py NAME FOLDER
"""

# mypy: disable-error-code="import-not-found"
import json
import sys
from pathlib import Path

from trainkit.data.hub_text import HubDataset

name, folder = sys.argv[1:]
units = HubDataset.named(name, suffixes=(".jsonl", ".parquet")).units(Path(folder))
print(json.dumps([(unit.name, unit.split) for unit in units]))
