"""Tables that are written into pages: the bootstrap's steps, the variables of jobs."""

from __future__ import annotations

from tools.docs import steps_table, variables_table


def test_the_readmes_table_is_that_of_the_steps() -> None:
    assert steps_table.render() in steps_table.README.read_text(), "run: python -m tools.docs.steps_table"


def test_the_pages_table_is_that_of_the_variables() -> None:
    assert variables_table.render() in variables_table.PAGE.read_text(), "run: make docs"
