"""`python -m tools.flags_page`: docs/flags.md, generated from Settings."""

from __future__ import annotations

from training_cluster.settings import Settings, allowed_values

_HEAD = """\
# Context flags

Generated from `constructs/training_cluster/settings.py` by `make docs`; a test compares the two.

    cdk deploy TrainingClusterStack -c family=p4d -c nodes=4

| flag | default | allowed | meaning |
|---|---|---|---|
"""


def render_flags_page() -> str:
    """Render the page."""
    rows = [
        f"| `{name}` | `{info.default}` | {allowed_values(name, info)} | {info.description} |"
        for name, info in Settings.model_fields.items()
    ]
    return _HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(render_flags_page(), end="")
