"""overrides/reserved.tsv: the keys that flags set, by the renderer of today."""

from tools.docs.reserved_keys import reserved_rows
from training_cluster.overrides.reserved import reserved_reason, table


def test_the_table_is_the_generated_one() -> None:
    rows = reserved_rows()
    assert [row for rows in table().values() for row in rows] == rows, "python -m tools.docs.reserved_keys"
    for row in rows:
        assert row.path.endswith(".Networking.SubnetIds") or reserved_reason(row.rendered, row.path), row
