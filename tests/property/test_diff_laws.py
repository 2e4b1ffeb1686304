from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from labeler.calculators import select_metrics
from labeler.comparing.diff import diff_labels
from labeler.labels.record import LabelRecord
from labeler.sentences.example import document_key, letters
from support.labeled import output, record, relabeled, verbatim

OF_TRACE = [m.id for m in select_metrics("all") if m.profile.name == "trace"]


@st.composite
def pairs(draw: st.DrawFn) -> tuple[LabelRecord, LabelRecord]:
    """Two labels of the same sentences, imported gaps and spellings included."""
    documents = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    keys = [document_key(d, s) for d, size in enumerate(documents) for s in range(size)]
    size = draw(st.integers(0, 3))
    a, b = (record(documents=documents, response=size, **draw(answers(keys, size))) for _ in "ab")
    return a, b


def answers(keys: list[str], size: int) -> st.SearchStrategy[dict[str, Any]]:
    """An answer that keeps the contract, or one as it was given, with odd spellings."""
    subset = st.lists(st.sampled_from(keys), unique=True)
    support = st.one_of(subset, st.sampled_from([[], ["general"], ["well_known_fact"]]))
    judged = st.fixed_dictionaries({letters(s): support for s in range(size)})
    odd = st.lists(st.sampled_from([*keys, *(f"[{key}]" for key in keys), "9z"]))
    entry = st.tuples(
        st.sampled_from([*map(letters, range(size)), "a.", "zz"]),
        support,
        st.sampled_from([True, False, None]),
    )
    overall, entries = st.booleans(), st.lists(entry, max_size=3)
    kept = st.builds(output, relevant=subset, utilized=subset, support=judged, overall=overall)
    given = st.builds(verbatim, relevant=odd, utilized=odd, support=entries, overall=overall)
    answers = st.fixed_dictionaries({"answer": kept})
    return st.one_of(answers, answers, st.fixed_dictionaries({"stored": given}))


@given(pairs())
def test_backwards_every_flip_and_change_is_reversed(pair: tuple[LabelRecord, LabelRecord]) -> None:
    """B against A loses what A against B gains; a label against itself has no flips."""
    a, b = pair
    (there,), (back,) = diff_labels([a], [b], OF_TRACE), diff_labels([b], [a], OF_TRACE)
    opposite = {"gained": "lost", "lost": "gained", "changed": "changed"}
    assert [(f.field, f.key, opposite[f.direction]) for f in there.flips] == [
        (f.field, f.key, f.direction) for f in back.flips
    ]
    for one, other in zip(there.changes, back.changes, strict=True):
        assert one.change == (None if other.change is None else -other.change)
    found = diff_labels([pair[0]], [pair[0]], metrics="all")
    assert (found.flipped, found.records) == (0, ())


@given(st.lists(pairs(), min_size=1, max_size=4))
def test_the_shares_of_all_records_add_up(found: list[tuple[LabelRecord, LabelRecord]]) -> None:
    """Over records with different numbers of sentences; groups add up to all records."""
    a, b = (
        [
            relabeled(pair[side], {"id": f"r{n}", "metadata": {"set": n % 2}})
            for n, pair in enumerate(found)
        ]
        for side in (0, 1)
    )
    total = diff_labels(a, b, by="set")
    for place, row in enumerate(total.metrics[: len(total.metrics) // len(total.groups)]):
        changes = [one.changes[place].change or Fraction() for one in total.records]
        assert row.change is None or sum(changes) / row.pairs == row.change
    every = sum(count.flipped for count in total.flips if count.group is None)
    assert sum(count.flipped for count in total.flips) == 2 * every
