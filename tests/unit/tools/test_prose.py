"""Banned phrases are found in prose, and nowhere else."""

from tools.prose import findings

BANNED = """\
AWS stops what it is at.
on a cluster that stands
The parameter lies under /x.
a VPC of one's own
killed, for want of memory
Besides, it is slow.
It did not come to its end, it came to an end.
Nothing of it has run.
It joins all the same.
it goes on where it was
It goes on from step 4.
policies beside ours
a stack of ours
'7x' is no number.
how to mend it
It waits for ever.
a bucket that is there already
"""
ALLOWED = """\
OLD stands for the old region.
a stand-in
another one's cluster
It relies on Slurm.
There is no file x.
| not | but |
|---|---|
| It stands. | It exists. |
"""


def test_banned_phrases_are_found() -> None:
    assert {number for number, _, _ in findings(BANNED)} == set(range(1, len(BANNED.splitlines()) + 1))


def test_other_uses_and_contributings_examples_pass() -> None:
    assert list(findings(ALLOWED)) == []
