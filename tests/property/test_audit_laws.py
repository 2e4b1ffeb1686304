from __future__ import annotations

import json
import math
import random
import string
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from labeler.audit import CHECKS, Finding, audit_labels, findings_of, suspicion_score
from labeler.audit.explanations import affirms, denies, named_keys
from labeler.judges.task import Token
from labeler.labels.record import LabelRecord
from labeler.plugins.scores.records import distribution_of, expected_score
from labeler.sentences.characters import (
    escape_formula,
    from_cell,
    to_cell,
    unescape_formula,
    visible,
)
from labeler.sentences.numbers import claimed_figures, is_known, known_figures
from support.audited import judged

KEYS = ["0a", "0b", "1a"]
FINDINGS = st.lists(
    st.builds(
        Finding,
        check=st.sampled_from([*CHECKS, "of_somebody_else"]),
        severity=st.just("suspicion"),
        message=st.text(max_size=5),
    ),
    max_size=8,
)
WORDS = (
    *("not", "supported", "by", "the", "document", "partially", "but", "although", "0a", "0b-1a"),
    *("unsupported", "no", "contradicts", "claim", "is", "sentence", "it", "nothing", "'quoted'"),
    *("however", "none", "of", "only", "never", "incorrect"),
)
ANY_TEXT = st.one_of(
    st.text(max_size=80),
    st.text(alphabet=string.ascii_lowercase + string.digits + " .,'()[]%-", max_size=80),
    st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join),
)


@st.composite
def labels(draw: st.DrawFn) -> LabelRecord:
    """Any label of three response sentences, with any explanations."""
    subset = st.lists(st.sampled_from([*KEYS, "general"]), unique=True, max_size=3)
    document = st.lists(st.sampled_from(KEYS), unique=True)
    texts = draw(st.lists(ANY_TEXT, min_size=3, max_size=3, unique=True))
    return judged(
        {text: draw(subset) for text in texts},
        explained=dict(zip("abc", draw(st.lists(ANY_TEXT, min_size=3, max_size=3)), strict=True)),
        overall_explained=draw(ANY_TEXT),
        relevant=draw(document),
        utilized=draw(document),
        overall=draw(st.booleans()),
    )


@given(labels(), st.randoms(use_true_random=False))
def test_the_order_of_lists_does_not_matter(made: LabelRecord, dice: random.Random) -> None:
    """Relevant, utilized and supporting keys are sets."""
    label = made.label
    entries = tuple(
        _shuffled(entry, dice, "supporting_sentence_keys")
        for entry in label.sentence_support_information
    )
    lists = ("all_relevant_sentence_keys", "all_utilized_sentence_keys")
    other = _shuffled(label, dice, *lists).model_copy(
        update={"sentence_support_information": entries}
    )
    before = findings_of(made)
    after = findings_of(made.model_copy(update={"label": other}))
    assert [(f.check, sorted(f.keys)) for f in before] == [(f.check, sorted(f.keys)) for f in after]


def _shuffled(value: Any, dice: random.Random, *names: str) -> Any:
    """A copy of a part of a label with these lists in another order."""
    lists = {name: getattr(value, name) for name in names}
    return value.model_copy(
        update={name: tuple(dice.sample(keys, len(keys))) for name, keys in lists.items()}
    )


@given(labels())
def test_findings_name_sentences_that_there_are(made: LabelRecord) -> None:
    """Each key once, and by checks that apply, so that no rate is above 1."""
    known = {*KEYS, "a", "b", "c"}
    for found in findings_of(made):
        assert set(found.keys) <= known
        assert len(set(found.keys)) == len(found.keys)
    for row in audit_labels([made]).rows:
        assert row.flagged <= row.records


@given(FINDINGS, FINDINGS, st.randoms(use_true_random=False))
def test_another_finding_never_lowers_doubt(
    some: list[Finding], more: list[Finding], dice: random.Random
) -> None:
    """It lies between 0 and 1, is 0 only without findings, and depends on no order or repeat."""
    doubt = suspicion_score(some)
    assert 0 <= doubt <= suspicion_score(some + more) <= 1
    assert (doubt == 0) is not bool(some)
    assert suspicion_score(dice.sample(some * 2, 2 * len(some))) == doubt


@given(ANY_TEXT)
@example("1,5,3K and 1.2.3 million")
@example("It fell (0.6) to 1.6.")
def test_any_text_can_be_read(text: str) -> None:
    """None both denies and affirms or names an unknown key; a copy has no number of its own."""
    assert not (denies(text) and affirms(text))
    assert named_keys(text, KEYS) <= set(KEYS)
    known = known_figures(text)
    assert all(is_known(value, known) for value in claimed_figures(text).values())


@given(st.text(max_size=20))
@example("<U+000D>\r<U+003C>\x1b[31m\u202e=1")
def test_a_text_is_read_back_from_a_cell_that_is_safe_to_show(text: str) -> None:
    """Controls become codes, apart from those that were there; a guard is one apostrophe."""
    cell = to_cell(text)
    assert cell == visible(cell)
    assert from_cell(cell) == text
    safe = escape_formula(text)
    assert safe in (text, f"'{text}")
    assert unescape_formula(safe) == text


TEN = range(1, 11)


def pieces(content: bytes, cuts: set[int]) -> list[bytes]:
    """The content, cut at these places."""
    ends = [*sorted(cut for cut in cuts if 0 < cut < len(content)), len(content)]
    return [content[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@given(st.integers(1, 9), st.text(), st.sets(st.integers(0, 80)), st.sampled_from(["", " ", "\n"]))
def test_every_way_to_cut_an_answer_gives_its_score(
    score: int, reasoning: str, cuts: set[int], space: str
) -> None:
    """Within characters too; on a scale to 10 a token may be a part of another score."""
    written = f'{{"reasoning": {json.dumps(reasoning)}, "score":{space}{score}{space}}}'
    content = written.encode()
    tokens = [Token(piece, 0.0) for piece in pieces(content, {len(content) - cut for cut in cuts})]
    assert distribution_of(tokens, score, range(1, 10)) == {score: 1.0}
    assert distribution_of(tokens, score, TEN) is None


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
