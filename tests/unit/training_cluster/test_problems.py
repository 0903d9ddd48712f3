"""Messages about a wrong input: the closest of the allowed values."""

from training_cluster.problems import did_you_mean


def test_a_typing_error_gets_the_closest_choice() -> None:
    for word, said in (("p4", ' Did you mean "p4d"?'), ("p4e", ' Did you mean "p4d"?'), ("nonsense", "")):
        assert did_you_mean(word, ["g5", "p4d", "trn1"]) == said
