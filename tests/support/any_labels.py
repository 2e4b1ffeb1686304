"""Labels of every profile, drawn at random, for laws that hold for all of them."""

from __future__ import annotations

from functools import partial
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


def random_label(random: Random, profile: str) -> LabelRecord:
    """A label of a profile that keeps the contract, over at most four documents."""
    sizes = [random.randint(0 if profile == "trace" else 1, 4) for _ in range(random.randint(1, 4))]
    keys = [document_key(d, s) for d, size in enumerate(sizes) for s in range(size)]
    citing = tuple(random.choices(MARKERS, k=3)) if random.random() < 0.25 else ()

    def some(most: int = 3) -> list[str]:
        return random.sample(keys, min(len(keys), random.randint(0, most)))

    if profile == "trace":
        size, turns = random.randint(0, 4), random.randint(0, 2)
        judged = [letters(s) for s in range(size) if random.random() < 0.8]
        spoken = [key for n in range(turns) for key in (f"h{n}b", f"t{n}a")]
        support = {
            key: [*some(), *random.sample(spoken, random.randint(0, len(spoken)))]
            or [random.choice(SPECIAL_SUPPORT)] * random.randint(0, 1)
            for key in judged
        }
        made = record(
            documents=sizes,
            relevant=some(9),
            utilized=some(9),
            support=support,
            response=size,
            citing=citing,
            turns=turns,
        )
        return _with_doubts(made) if random.random() < 0.2 else made
    claims = [
        says(
            letters(random.randint(0, 2)),
            some() if random.random() < 0.8 else ["well_known_fact"],
            some(),
            on_topic=random.random() < 0.5,
        )
        for _ in range(random.randint(0, 5))
    ]
    if profile == "claims":
        made_by = {claim.response_sentence_key for claim in claims}
        silent = [key for key in map(letters, range(3)) if key not in made_by]
        return record(documents=sizes, answer=claims_output(claims, silent=silent), citing=citing)
    verdicts = [random.choice(get_args(Verdict)) for _ in claims]
    reference = [
        expects(some(), found=random.random() < 0.5, sentence=f"ref.{letters(place)}")
        for place in range(random.randint(0, 4))
    ]
    return with_claims(sizes, list(map(compared, claims, verdicts)), reference, citing)


def _with_doubts(made: LabelRecord) -> LabelRecord:
    """The same label with its first sentence called unsupported, its keys left in place."""
    entries = made.label.sentence_support_information
    doubted = [entry.model_copy(update={"fully_supported": False}) for entry in entries[:1]]
    label = made.label.model_copy(update={"sentence_support_information": (*doubted, *entries[1:])})
    return made.model_copy(update={"label": label})


def _labels(profile: str) -> st.SearchStrategy[LabelRecord]:
    """Any label of a profile that keeps the contract."""
    drawn = st.randoms(use_true_random=False)
    return drawn.map(lambda random: random_label(random, profile))


trace_labels, claims_labels, reference_labels = (
    partial(_labels, profile) for profile in ("trace", "claims", "reference")
)


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
    citing = tuple(draw(st.lists(st.sampled_from(MARKERS), max_size=4)))
    return record(documents=(2, 1), response=2, stored=stored, citing=citing)


ANY_LABEL = st.one_of(trace_labels(), claims_labels(), reference_labels(), imported_labels())
