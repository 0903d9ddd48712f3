"""Sequences of a validation, which neither ranks, batches nor SEED change."""

import pytest
from trainkit.validation import batches_of_rank


@pytest.mark.parametrize(("ranks", "size"), [(1, 1), (1, 16), (3, 5), (8, 4), (64, 8)])
@pytest.mark.parametrize(("sequences", "wanted"), [(1000, 50), (40, 50), (2, 50)])
def test_any_ranks_and_batches_read_the_same_sequences(
    sequences: int, wanted: int, ranks: int, size: int
) -> None:
    shares = [batches_of_rank(sequences, wanted, rank=rank, ranks=ranks, size=size) for rank in range(ranks)]
    read = [each for share in shares for batch in share for each in batch]
    ((whole,),) = [batches_of_rank(sequences, wanted, rank=0, ranks=1, size=1000)]
    assert (sorted(read), len(set(read))) == (sorted(whole), min(sequences, wanted))
    assert all(len(batch) == size for share in shares for batch in share[:-1])
    counts = [sum(map(len, share)) for share in shares]
    assert max(counts) - min(counts) <= 1
