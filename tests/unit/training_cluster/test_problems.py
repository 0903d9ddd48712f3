"""Messages about a wrong input: the closest of the allowed values."""

import pytest

from training_cluster.problems import did_you_mean


@pytest.mark.parametrize(
    ("word", "said"), [("p4", ' Did you mean "p4d"?'), ("p4e", ' Did you mean "p4d"?'), ("nonsense", "")]
)
def test_a_typing_error_gets_the_closest_choice(word: str, said: str) -> None:
    assert did_you_mean(word, ["g5", "p4d", "trn1"]) == said
