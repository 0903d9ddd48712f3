"""One throttled call is asked again, for half a minute; what is refused is told at once."""

import pytest

from tests.unit.assets.cluster_provider.fakes.provider import Provider


class Throttled:
    """Answers after so many errors."""

    def __init__(self, provider: Provider, times: int) -> None:
        self._provider, self._left, self.calls = provider, times, 0

    def __call__(self) -> str:
        self.calls += 1
        self._left -= 1
        if self._left >= 0:
            raise self._provider.throttled()
        return "answer"


@pytest.mark.parametrize(("times", "slept"), [(0, []), (1, [2]), (4, [2, 4, 8, 16])])
def test_a_call_is_made_until_it_is_answered(provider: Provider, times: int, slept: list[float]) -> None:
    assert provider.retry.retry("training", Throttled(provider, times)) == "answer"
    assert provider.slept == slept


def test_the_last_error_is_reported_after_30_s(provider: Provider) -> None:
    call = Throttled(provider, 9)
    with pytest.raises(provider.errors.TransientError, match="Rate exceeded"):
        provider.retry.retry("training", call)
    assert (call.calls, sum(provider.slept)) == (5, 30)


def test_what_is_refused_is_told_at_once(provider: Provider) -> None:
    def refuse() -> str:
        raise provider.refused("no")

    with pytest.raises(provider.errors.RefusedError):
        provider.retry.retry("training", refuse)
    assert provider.slept == []


def test_repeated_calls_are_in_the_functions_log(
    provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    provider.retry.retry("describe_cluster", Throttled(provider, 1))
    assert capsys.readouterr().out == "describe_cluster: asking again in 2 s: Rate exceeded\n"
