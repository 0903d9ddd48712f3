"""docs/flags.md, generated from Settings."""

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from tools.docs.table import table
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


def _default(info: FieldInfo) -> str:
    # The description of a flag without a default names the value that is used.
    return "" if info.default is None else f"`{info.default}`"


def render_flags_page() -> str:
    """Render docs/flags.md: one table a group of flags."""
    return _HEAD + "".join(_group(title, group) for title, group in FLAG_GROUPS.items())


def _group(title: str, group: type[BaseModel]) -> str:
    rows = (
        (f"`{name}`", _default(info), allowed_values(info), info.description)
        for name, info in group.model_fields.items()
    )
    file = f"constructs/{group.__module__.replace('.', '/')}.py"
    heads = ("flag", "default", "allowed", "meaning")
    return f"\n## {title}\n\nDeclared in `{file}`.\n\n{table(heads, rows)}"
