"""`python -m tools.flags_page`: docs/flags.md, generated from Settings."""

from __future__ import annotations

from pydantic.fields import FieldInfo

from training_cluster.flags import allowed_values
from training_cluster.settings import Settings

_HEAD = """\
# Context flags

Generated from `constructs/training_cluster/settings.py` by `make docs`; a test compares the two.

    cdk deploy TrainingClusterStack -c family=p4d -c nodes=4

| flag | default | allowed | meaning |
|---|---|---|---|
"""


def _default(info: FieldInfo) -> str:
    # Without a default of its own a flag's description says what is taken.
    return "" if info.default is None else f"`{info.default}`"


def render_flags_page() -> str:
    """Render the page."""
    rows = [
        f"| `{name}` | {_default(info)} | {allowed_values(name, info)} | {info.description} |"
        for name, info in Settings.model_fields.items()
    ]
    return _HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(render_flags_page(), end="")
