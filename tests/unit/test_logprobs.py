"""Probabilities of scores from the log-probabilities of an answer's tokens."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

import jsonschema
import pytest

from labeler.errors import UnstorableRecord
from labeler.judges.task import Token
from labeler.labels.record import AnyRecord
from labeler.labels.signature import read_resource
from labeler.plugins.scores.records import (
    ScoreAnswer,
    StepsAnswer,
    StepsRecord,
    distribution_of,
    expected_score,
    steps_key,
)
from labeler.store import MemoryStore
from support.scored import criterion, record

FIVE, TEN = range(1, 6), range(1, 11)
HEAD = '{"reasoning": "so", "score": '


def answer(*places: str | Mapping[str, float], head: str = HEAD, tail: str = "}") -> list[Token]:
    """The tokens of an answer; the first of a place is the one that was chosen."""
    return [
        *_sure(head),
        *(_token({place: 1.0} if isinstance(place, str) else place) for place in places),
        *_sure(tail),
    ]


def _sure(text: str) -> list[Token]:
    return [_token({text[n : n + 3]: 1.0}) for n in range(0, len(text), 3)]


def _token(place: Mapping[str, float]) -> Token:
    (chosen, logprob), *others = ((t.encode(), math.log(p)) for t, p in place.items())
    return Token(chosen, logprob, tuple(others))


def found(tokens: Sequence[Token], score: int, scale: range = FIVE) -> dict[int, float]:
    """The distribution, rounded as the numbers that went in."""
    likely = distribution_of(tokens, score, scale)
    assert likely is not None
    return {one: round(p, 9) for one, p in likely.items()}


WORKED = {"4": 0.6, "1": 0.02, "2": 0.05, "3": 0.2, "5": 0.1}
AS_WORKED = {int(score): p for score, p in WORKED.items()}


def test_the_weighted_score_is_exact() -> None:
    """The worked example: 3.62 over a mass of .97; fractions of the floats that came in."""
    assert float(expected_score(AS_WORKED)) == pytest.approx(3.7319588, abs=5e-8)
    assert expected_score({1: 0.25, 5: 0.25}) == 3
    assert expected_score({2: 1e-300}) == 2


FIRST = answer(WORKED, head='{"score": ', tail=', "reasoning": "so"}')
QUOTED = answer(WORKED, head='{"reasoning": "it says \\"score\\": 5, and \\\\", "score": ')
CERTAIN = Token(b"4", 0.0, ((b"3", -math.inf), (b" 4", math.log(0.005))))
NINE = answer({"9": 0.6, "1": 0.3, "8": 0.1})
STRAY = answer({"4": 0.7, "7": 0.1, "four": 0.02, " ": 0.05, "5": 0.12})
COLONS = answer({": 4}": 0.7, ": 3}": 0.2, ": x": 0.1}, head=HEAD[:-2], tail="")


@pytest.mark.parametrize(
    ("tokens", "score", "scale", "expected"),
    [
        # Words, numbers off the scale and white space are left out.
        (STRAY, 4, FIVE, {4: 0.7, 5: 0.12}),
        # The same score with a space before it and without is one score.
        (answer({" 4": 0.5, "4": 0.2, " 3": 0.2}, head=HEAD.rstrip()), 4, FIVE, {3: 0.2, 4: 0.7}),
        # The colon before it, the brace after it.
        (COLONS, 4, FIVE, {3: 0.2, 4: 0.7}),
        # Where the vocabulary has ten, one is one and ten is ten.
        (answer({"10": 0.6, "1": 0.1, "9": 0.3}), 10, TEN, {1: 0.1, 9: 0.3, 10: 0.6}),
        # Some servers do not keep the order of fields; inside a text quotation marks are escaped.
        (FIRST, 4, FIVE, AS_WORKED),
        (QUOTED, 4, FIVE, AS_WORKED),
        # A logarithm of minus infinity is no entry; nothing is more than certain.
        ([*_sure(HEAD), CERTAIN, *_sure("}")], 4, FIVE, {4: 1.0}),
        # No score of this scale begins with another.
        (NINE, 9, range(1, 10), {1: 0.3, 8: 0.1, 9: 0.6}),
    ],
)
def test_the_tokens_of_a_score_give_its_distribution(
    tokens: list[Token], score: int, scale: range, expected: dict[int, float]
) -> None:
    """However a tokenizer cuts the answer."""
    assert found(tokens, score, scale) == expected


@pytest.mark.parametrize(
    ("tokens", "score", "scale"),
    [
        ([], 4, FIVE),
        (answer("3"), 4, FIVE),
        (answer("4", head='{"grade": '), 4, FIVE),
        (answer("4", tail=', "score": 4}'), 4, FIVE),
        (answer("4" * 5000), 4, FIVE),
        (answer({"4": 0.5}, head='{"sc\\u006fre": '), 4, FIVE),
        (answer({"4": 0.7, "I": 0.2, "5": 0.09}), 4, FIVE),
        (answer({"4": 0.9, "5": 0.9}), 4, FIVE),
        # A token may hold a part of the score only: a 1 may become 10.
        (answer({"1": 0.8, "9": 0.2}, {"0": 0.75, "}": 0.25}), 10, TEN),
        (NINE, 9, TEN),
        (answer({"1": 0.9, "-": 0.1}), 1, range(-2, 3)),
    ],
    ids=[
        *("none", "another score", "no score", "two scores", "endless", "escaped name"),
        *(
            "forced by a grammar",
            "more than certain",
            "two digits",
            "a digit that could go on",
            "a sign",
        ),
    ],
)
def test_tokens_that_do_not_hold_the_score_tell_nothing(
    tokens: list[Token], score: int, scale: range
) -> None:
    """Then the answer alone counts."""
    assert distribution_of(tokens, score, scale) is None


SCORE = record(distribution={3: 0.25, 4: 0.7}, logprobs=True)


def steps_record() -> StepsRecord:
    """Sound evaluation steps."""
    asked = criterion(steps=None)
    key = steps_key(asked, SCORE.signature)
    answer = StepsAnswer(steps=("Read it.", "Weigh it."))
    return StepsRecord(key=key, criterion=asked, answer=answer, signature=SCORE.signature)


def test_a_score_off_its_scale_is_not_stored() -> None:
    """Nor one under a key that is not its own."""
    off = SCORE.model_copy(update={"answer": ScoreAnswer(reasoning="so", score=9)})
    for broken in (off, SCORE.model_copy(update={"key": "0" * 64})):
        assert isinstance(MemoryStore().put(broken).exception(), UnstorableRecord)


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("score-record/v1", SCORE),
        ("score-record/v1", SCORE.model_copy(update={"normalised": {"fence": 1}})),
        ("steps-record/v1", steps_record()),
    ],
)
def test_records_are_as_their_schemas_say(name: str, stored: AnyRecord) -> None:
    """What we write is what is published."""
    schema = json.loads(read_resource("schemas", name, ".json"))
    jsonschema.validate(stored.model_dump(mode="json"), schema)
