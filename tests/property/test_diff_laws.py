"""Laws of the split of a metric's change over flips, for every pair of labels."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from labeled import output, record, verbatim
from labeler.calculators import METRICS, Metric, tally
from labeler.comparing.attribution import MixedLabels
from labeler.comparing.diff import RecordDiff, diff_labels, diff_record
from labeler.comparing.flips import DecisionFlip
from labeler.labels.answers import GPTLabelingOutput, SentenceSupport, VerbatimLabel
from labeler.labels.record import LabelRecord
from labeler.sentences.keys import document_key, response_key

OF_TRACE: list[Metric] = [m for m in METRICS.values() if m.profile.name == "trace"]


@st.composite
def pairs(draw: st.DrawFn) -> tuple[LabelRecord, LabelRecord]:
    """Two labels of the same sentences, imported gaps and spellings included."""
    documents = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    keys = [document_key(d, s) for d, size in enumerate(documents) for s in range(size)]
    size = draw(st.integers(0, 3))
    first, second = (
        record(documents=documents, response=size, **draw(answers(keys, size))) for _ in "ab"
    )
    return first, second


def answers(keys: list[str], size: int) -> st.SearchStrategy[dict[str, Any]]:
    """An answer that keeps the contract, or one as it was given, with odd spellings."""
    subset = st.lists(st.sampled_from(keys), unique=True)
    support = st.one_of(subset, st.sampled_from([[], ["general"], ["well_known_fact"]]))
    judged = st.fixed_dictionaries({response_key(s): support for s in range(size)})
    odd = st.lists(st.sampled_from([*keys, *(f"[{key}]" for key in keys), "9z"]))
    entry = st.tuples(
        st.sampled_from([*map(response_key, range(size)), "a.", "zz"]),
        support,
        st.sampled_from([True, False, None]),
    )
    kept = st.builds(
        lambda r, u, s, o: {"answer": output(relevant=r, utilized=u, support=s, overall=o)},
        subset,
        subset,
        judged,
        st.booleans(),
    )
    given = st.builds(
        lambda r, u, s, o: {"stored": verbatim(relevant=r, utilized=u, support=s, overall=o)},
        odd,
        odd,
        st.lists(entry, max_size=3),
        st.booleans(),
    )
    return st.one_of(kept, kept, given)


@given(pairs())
def test_the_parts_add_up_to_the_change(pair: tuple[LabelRecord, LabelRecord]) -> None:
    """To the last digit; something is left over only where no flip has an effect by itself."""
    found = diff_record(*pair, OF_TRACE)
    for change in found.changes:
        if change.change is not None:
            assert len(change.parts) == len(found.flips)
            assert sum(change.parts) + change.other == change.change
            assert change.other == 0 or not any(change.parts)


@given(pairs())
def test_backwards_every_part_changes_its_sign(pair: tuple[LabelRecord, LabelRecord]) -> None:
    """What a flip does to the way there it undoes on the way back."""
    a, b = pair
    there, back = diff_record(a, b, OF_TRACE), diff_record(b, a, OF_TRACE)
    assert [(f.field, f.key) for f in there.flips] == [(f.field, f.key) for f in back.flips]
    for one, other in zip(there.changes, back.changes, strict=True):
        assert one.parts == tuple(-part for part in other.parts)


@given(pairs())
def test_a_label_against_itself_has_no_flips(pair: tuple[LabelRecord, LabelRecord]) -> None:
    """Nothing flipped, nothing changed."""
    found = diff_labels([pair[0]], [pair[0]], metrics="all")
    assert (found.flipped, found.records) == (0, ())


@given(pairs())
def test_flips_of_equal_effect_have_equal_parts(pair: tuple[LabelRecord, LabelRecord]) -> None:
    """Relevance counts sentences: all that are gained weigh the same, all lost ones too."""
    found = diff_record(*pair, [METRICS["relevance"]])
    gained = _parts_of(found, "gained")
    lost = _parts_of(found, "lost")
    assert len(gained) <= 1
    assert len(lost) <= 1
    if gained and lost:
        assert gained == {-part for part in lost}


def _parts_of(found: RecordDiff, direction: str) -> set[Fraction]:
    both = zip(found.flips, found.changes[0].parts, strict=False)
    return {part for flip, part in both if (flip.field, flip.direction) == ("relevant", direction)}


@given(pairs())
def test_a_flip_without_effect_has_no_part(pair: tuple[LabelRecord, LabelRecord]) -> None:
    """Use says nothing about relevance, nor relevance about support."""
    found = diff_record(*pair, [METRICS["relevance"], METRICS["adherence_fraction"]])
    for change, read in zip(found.changes, ({"relevant"}, {"supported"}), strict=True):
        for flip, part in zip(found.flips, change.parts, strict=False):
            assert flip.field in read or part == 0


@given(pairs(), st.data())
def test_a_label_between_two_is_the_one_that_its_sentences_make(
    pair: tuple[LabelRecord, LabelRecord], data: st.DataObject
) -> None:
    """What metrics read of A with some of B's decisions is the tally of that very label."""
    a, b = pair
    labels = MixedLabels(a, b)
    taken = [flip for flip in labels.flips if data.draw(st.booleans())]
    made, wanted = labels.mixed(taken), tally(_mixed(a, b, taken))
    for name in vars(wanted).keys() - {"stored"}:
        assert getattr(made, name) == getattr(wanted, name)


def _mixed(a: LabelRecord, b: LabelRecord, flips: list[DecisionFlip]) -> LabelRecord:
    """A's label with some of B's decisions, written out."""
    relevant, utilized = (
        frozenset(flip.key for flip in flips if flip.field == field)
        for field in ("relevant", "utilized")
    )
    judged = {f.key for f in flips if f.field in {"supported", "supporting_keys"}}
    entries: list[SentenceSupport] = [
        *(e for e in a.label.sentence_support_information if e.response_sentence_key not in judged),
        *(e for e in b.label.sentence_support_information if e.response_sentence_key in judged),
    ]
    label = a.label.model_copy(
        update={
            "all_relevant_sentence_keys": tuple({*a.label.all_relevant_sentence_keys} ^ relevant),
            "all_utilized_sentence_keys": tuple({*a.label.all_utilized_sentence_keys} ^ utilized),
            "sentence_support_information": tuple(entries),
        }
    )
    return a.model_copy(update={"label": label, "verbatim": None})


@given(pairs())
def test_the_answer_as_given_is_as_at_both_ends(pair: tuple[LabelRecord, LabelRecord]) -> None:
    """No key, spelling or duplicate comes or goes, but for their order."""
    labels = MixedLabels(*pair)
    for end, taken in zip(labels.tallies, ((), labels.flips), strict=True):
        assert _content(labels.mixed(taken).stored) == _content(end.stored)


def _content(answer: GPTLabelingOutput | VerbatimLabel) -> object:
    return (
        sorted(answer.all_relevant_sentence_keys),
        sorted(answer.all_utilized_sentence_keys),
        answer.overall_supported,
        sorted(
            (e.response_sentence_key, sorted(e.supporting_sentence_keys), str(e.fully_supported))
            for e in answer.sentence_support_information
        ),
    )


@given(st.lists(pairs(), min_size=1, max_size=4))
def test_the_parts_of_all_records_add_up(found: list[tuple[LabelRecord, LabelRecord]]) -> None:
    """Also over records with different numbers of sentences, and in every group."""
    named = [tuple(_named(one, n) for one in pair) for n, pair in enumerate(found)]
    total = diff_labels([a for a, _ in named], [b for _, b in named], by="set")
    for row in total.metrics:
        assert row.change is None or sum(row.parts.values()) + row.other == row.change
    assert sum(count.flipped for count in total.flips if count.group is None) == sum(
        count.flipped for count in total.flips if count.group is not None
    )


def _named(one: LabelRecord, number: int) -> LabelRecord:
    facts = {"id": f"r{number}", "metadata": {"set": number % 2}}
    return one.model_copy(update={"example": one.example.model_copy(update=facts)})


@given(pairs())
def test_each_flip_of_a_sum_has_its_own_effect(pair: tuple[LabelRecord, LabelRecord]) -> None:
    """Utilization counts sentences: each used one is one over all of them."""
    found = diff_record(*pair, [METRICS["utilization"]])
    sentences = sum(map(len, pair[0].example.documents))
    for flip, part in zip(found.flips, found.changes[0].parts, strict=True):
        assert abs(part) == (Fraction(1, sentences) if flip.field == "utilized" else 0)


@given(st.integers(1, 30), st.integers(0, 30))
def test_equal_flips_of_a_record_have_equal_parts(lost: int, kept: int) -> None:
    """Each lost support alone breaks adherence: all have the same part, however many they are."""
    keys = [response_key(n) for n in range(lost + kept)]
    a = record(support={key: ["0a"] for key in keys})
    b = record(support={key: ["0a"] if n >= lost else [] for n, key in enumerate(keys)})
    found = diff_record(a, b, [METRICS["adherence"]])
    assert found.changes[0].parts[:lost] == (Fraction(-1, lost),) * lost
