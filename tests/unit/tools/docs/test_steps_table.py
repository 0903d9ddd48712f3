"""The README's table of the bootstrap steps."""

from tools.docs import steps_table


def test_the_readmes_table_is_that_of_the_steps() -> None:
    assert steps_table.render() in steps_table.README.read_text(), "run: python -m tools.docs.steps_table"
