"""Laws of scores: however an answer is cut into tokens, it says the same."""

from __future__ import annotations

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from labeler.judges.task import Token
from labeler.plugins.scores.records import distribution_of, expected_score

TEN = range(1, 11)


def pieces(content: bytes, cuts: set[int]) -> list[bytes]:
    """The content, cut at these places."""
    ends = [*sorted(cut for cut in cuts if 0 < cut < len(content)), len(content)]
    return [content[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@given(st.integers(1, 10), st.text(), st.sets(st.integers(0, 80)), st.sampled_from(["", " ", "\n"]))
def test_every_way_to_cut_an_answer_gives_its_score(
    score: int, reasoning: str, cuts: set[int], space: str
) -> None:
    """Within characters and within the number too."""
    written = f'{{"reasoning": {json.dumps(reasoning)}, "score":{space}{score}{space}}}'
    content = written.encode()
    tokens = [Token(piece, 0.0) for piece in pieces(content, {len(content) - cut for cut in cuts})]
    assert distribution_of(tokens, score, TEN) == {score: 1.0}


tokens_of_strangers = st.lists(
    st.builds(
        Token,
        st.sampled_from([b'{"score": ', b'"score":', b"1", b"10", b"0", b"-", b"", b"}", b"\xff"]),
        st.floats(-50, 0),
        st.lists(
            st.tuples(st.sampled_from([b"1", b"9", b"0}", b" 10", b"", b"-1"]), st.floats(-50, 0)),
            max_size=4,
        ).map(tuple),
    ),
    max_size=8,
)


@given(tokens_of_strangers, st.integers(-1, 101))
def test_no_tokens_make_a_score_that_cannot_be(tokens: list[Token], score: int) -> None:
    """Probabilities of scores on the scale, and a mean between its ends."""
    likely = distribution_of(tokens, score, TEN)
    if likely is not None:
        assert all(one in TEN and 0 < p <= 1 and math.isfinite(p) for one, p in likely.items())
        assert 1 <= expected_score(likely) <= 10
