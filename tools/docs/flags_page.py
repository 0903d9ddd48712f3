"""`python -m tools.docs.flags_page`: docs/flags.md, generated from Settings."""

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from training_cluster.flags.messages import allowed_values
from training_cluster.flags.settings import FLAG_GROUPS

_HEAD = """\
# Context flags

`make docs` generates this page from `constructs/training_cluster/flags/`, and a test compares the two.
Pass flags to the CDK with `-c`, or write them into `context` in `cdk.json`:

    npx cdk deploy TrainingClusterStack -c family=p4d -c nodes=4

A flag without a value, such as `-c nodes=`, has its default. A deploy that leaves out a flag of the last one
is refused: [keep the other flags](how-to/operate.md#keep-the-other-flags).
"""
_TABLE = """
## {title}

Declared in `{file}`.

| flag | default | allowed | meaning |
|---|---|---|---|
{rows}
"""


def _file(group: type[BaseModel]) -> str:
    return f"constructs/{group.__module__.replace('.', '/')}.py"


def _default(info: FieldInfo) -> str:
    # The description of a flag without a default names the value that is used.
    return "" if info.default is None else f"`{info.default}`"


def render_flags_page() -> str:
    """Render docs/flags.md: one table a group of flags."""
    page = _HEAD
    for title, group in FLAG_GROUPS.items():
        rows = "\n".join(
            f"| `{name}` | {_default(info)} | {allowed_values(info)} | {info.description} |"
            for name, info in group.model_fields.items()
        )
        page += _TABLE.format(title=title, file=_file(group), rows=rows)
    return page


if __name__ == "__main__":
    print(render_flags_page(), end="")
