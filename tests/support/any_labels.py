"""Labels of every profile, drawn at random, for laws that hold for all of them."""

from __future__ import annotations

from random import Random
from typing import get_args

from hypothesis import strategies as st

from labeler.labels.answers import SPECIAL_SUPPORT, ComparedClaim, ReferenceClaim, Verdict
from labeler.labels.record import LabelRecord
from labeler.sentences.example import document_key, letters
from support.labeled import (
    claims_output,
    compared,
    expects,
    record,
    reference_output,
    says,
    verbatim,
)

MARKERS = ("", "", " [1]", " [2, 9]", " [0]", " (Document 1)", "¹")
"""Ends of response sentences."""
CITING = st.one_of(st.just(()), st.lists(st.sampled_from(MARKERS), max_size=4).map(tuple))
VERDICTS: st.SearchStrategy[Verdict] = st.sampled_from(get_args(Verdict))


@st.composite
def trace_labels(draw: st.DrawFn) -> LabelRecord:
    """Any label that keeps the contract, imported gaps included."""
    documents = draw(st.lists(st.integers(0, 4), min_size=0, max_size=4))
    keys = [document_key(d, s) for d, size in enumerate(documents) for s in range(size)]
    subset = st.lists(st.sampled_from(keys), unique=True) if keys else st.just([])
    turns = draw(st.integers(0, 2))
    evidence = [*keys, *(key for n in range(turns) for key in (f"h{n}b", f"t{n}a"))]
    named = st.lists(st.sampled_from(evidence), unique=True) if evidence else st.just([])
    size = draw(st.integers(0, 4))
    support = {
        letters(s): draw(st.one_of(named, st.lists(st.sampled_from(SPECIAL_SUPPORT), max_size=2)))
        for s in range(size)
        if draw(st.booleans())
    }
    made = record(
        documents=documents,
        relevant=draw(subset),
        utilized=draw(subset),
        support=support,
        response=size,
        citing=draw(CITING),
        turns=turns,
    )
    return _with_doubts(made) if draw(st.booleans()) else made


def _with_doubts(made: LabelRecord) -> LabelRecord:
    """The same label with its first sentence called unsupported, its keys left in place."""
    entries = made.label.sentence_support_information
    doubted = [entry.model_copy(update={"fully_supported": False}) for entry in entries[:1]]
    label = made.label.model_copy(update={"sentence_support_information": (*doubted, *entries[1:])})
    return made.model_copy(update={"label": label})


@st.composite
def reference_labels(draw: st.DrawFn) -> LabelRecord:
    """Any label of the profile ``reference`` that keeps the contract."""
    documents = draw(st.lists(st.integers(1, 2), min_size=1, max_size=4))
    keys = [document_key(d, s) for d, size in enumerate(documents) for s in range(size)]
    subset = st.lists(st.sampled_from(keys), unique=True, max_size=3)
    special = st.just(["well_known_fact"])
    claims = [
        compared(
            says(
                letters(draw(st.integers(0, 2))),
                draw(st.one_of(subset, special)),
                draw(subset),
                on_topic=draw(st.booleans()),
            ),
            draw(VERDICTS),
        )
        for _ in range(draw(st.integers(0, 5)))
    ]
    reference = [
        expects(draw(subset), found=draw(st.booleans()), sentence=f"ref.{letters(number)}")
        for number in range(draw(st.integers(0, 4)))
    ]
    return with_claims(documents, claims, reference, draw(CITING))


def with_claims(
    documents: list[int],
    claims: list[ComparedClaim],
    reference: list[ReferenceClaim],
    citing: tuple[str, ...] = (),
) -> LabelRecord:
    """The record of a label; sentences without claims are said to make none."""
    made = {claim.response_sentence_key for claim in claims}
    silent = [key for key in map(letters, range(3)) if key not in made]
    unsaid = [] if reference else ["ref.a"]
    answer = reference_output(claims, reference, silent=silent, silent_reference=unsaid)
    found = record(documents=documents, answer=answer, citing=citing)
    assert found.violations == ()
    return found


@st.composite
def claims_labels(draw: st.DrawFn) -> LabelRecord:
    """Any label of the profile ``claims`` over two documents that keeps the contract."""
    keys = st.lists(st.sampled_from(["0a", "0b", "1a"]), unique=True, max_size=2)
    claims = [
        says(
            draw(st.sampled_from(["a", "b"])), draw(keys), draw(keys), on_topic=draw(st.booleans())
        )
        for _ in range(draw(st.integers(0, 4)))
    ]
    made = {claim.response_sentence_key for claim in claims}
    silent = [key for key in ("a", "b") if key not in made]
    answer = claims_output(claims, silent=silent)
    return record(documents=(2, 1), answer=answer, citing=draw(CITING))


@st.composite
def imported_labels(draw: st.DrawFn) -> LabelRecord:
    """An imported label whose stored answer has duplicates, unknown keys and gaps."""
    keys = st.lists(st.sampled_from(["0a", "0a.", "0b", "1a", "9z"]), max_size=5)
    support = [
        (key, tuple(draw(keys)), draw(st.sampled_from([True, False, None])))
        for key in draw(st.lists(st.sampled_from(["a", "b", "zz"]), max_size=4))
    ]
    stored = verbatim(
        relevant=draw(keys), utilized=draw(keys), support=support, overall=draw(st.booleans())
    )
    return record(documents=(2, 1), response=2, stored=stored, citing=draw(CITING))


ANY_LABEL = st.one_of(trace_labels(), claims_labels(), reference_labels(), imported_labels())


def random_label(random: Random, profile: str) -> LabelRecord:
    """A label of a profile that keeps the contract, over at most four documents."""
    sizes = [random.randint(0 if profile == "trace" else 1, 4) for _ in range(random.randint(1, 4))]
    keys = [document_key(d, s) for d, size in enumerate(sizes) for s in range(size)]
    citing = tuple(random.choices(MARKERS, k=3)) if random.random() < 0.25 else ()

    def some(most: int = 3) -> list[str]:
        return random.sample(keys, min(len(keys), random.randint(0, most)))

    if profile == "trace":
        size = random.randint(0, 4)
        judged = [letters(s) for s in range(size) if random.random() < 0.8]
        turns = random.randint(0, 1)
        spoken = ["h0a", "t0a"] if turns else []
        support = {
            key: [*some(), *random.sample(spoken, len(spoken) and random.randint(0, 2))]
            or [random.choice(SPECIAL_SUPPORT)]
            for key in judged
        }
        return record(
            documents=sizes,
            relevant=some(9),
            utilized=some(9),
            support=support,
            response=size,
            citing=citing,
            turns=turns,
        )
    number = random.randint(0, 5)
    claims = [
        says(letters(random.randint(0, 2)), some(), some(), on_topic=random.random() < 0.5)
        for _ in range(number)
    ]
    verdicts = [random.choice(get_args(Verdict)) for _ in claims]
    reference = [
        expects(some(), found=random.random() < 0.5, sentence=f"ref.{letters(place)}")
        for place in range(random.randint(0, 4))
    ]
    if profile == "reference":
        return with_claims(sizes, list(map(compared, claims, verdicts)), reference, citing)
    made = {claim.response_sentence_key for claim in claims}
    silent = [key for key in map(letters, range(3)) if key not in made]
    return record(documents=sizes, answer=claims_output(claims, silent=silent), citing=citing)
