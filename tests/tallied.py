"""Index rows worked out from the tallies of records, to hold the decoder against."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

import msgspec

from labeler.calculators.columns import (
    BY_CONVERSATION,
    CITING,
    COMPARED,
    CONTRADICTED,
    CONTRADICTING,
    COUNTERPART,
    ENTAILED,
    ENTAILING,
    GENERAL,
    GROUNDED,
    IN_CHUNK,
    ON_TOPIC,
    RELEVANT,
    SUPPORTED,
    UNSUPPORTED,
    UTILIZED,
    WELL_CITED,
)
from labeler.calculators.index.rows import IndexRow, metadata_text
from labeler.calculators.metrics_row import outcome_profile
from labeler.calculators.tally import ClaimTally, tally
from labeler.labels.answering import AnsweringModel
from labeler.labels.record import LabelRecord

H = TypeVar("H", bound=Hashable)


def tallied_row(record: LabelRecord) -> IndexRow:
    """The index row of a label."""
    example, counted = record.example, tally(record)
    marks = _marks(counted.lengths, (counted.relevant, RELEVANT), (counted.utilized, UTILIZED))
    return IndexRow(
        id=record.id,
        key=record.key,
        label=str(record.signature),
        answered=msgspec.json.encode(AnsweringModel.of(record.signature, record.reply)),
        failed=None,
        profile=outcome_profile(record).name,
        question=example.question,
        metadata=metadata_text(example.metadata),
        columns=tuple(example.metadata),
        documents=_marks(
            range(len(counted.documents)),
            (counted.relevant_documents, RELEVANT),
            (counted.utilized_documents, UTILIZED),
            (counted.relevant_chunks, ENTAILING),
            (counted.contradicted_documents, CONTRADICTING),
        ),
        response=ordered(
            _marks(
                counted.response,
                (counted.supported, SUPPORTED),
                (counted.unsupported, UNSUPPORTED),
                (counted.general, GENERAL),
                (counted.citing, CITING),
                (counted.well_cited, WELL_CITED),
                (counted.by_conversation, BY_CONVERSATION),
            )
        ),
        claims=ordered(_claims(counted.claims, counted.relevant_chunks)),
        reference_claims=ordered(_claims(counted.reference_claims, frozenset(), GROUNDED)),
        numbers=(
            counted.stored_relevant,
            counted.stored_utilized,
            counted.stored_both,
            counted.stored_unsupported,
            counted.citations,
            counted.correct_citations,
            counted.has_probabilities,
            counted.relevance_mass,
            counted.utilization_mass,
            counted.adherence_mass,
            counted.measures_completeness,
            counted.has_conversation,
            *map(marks.count, range(4)),
            *(_length(counted.lengths, marks, mark) for mark in range(4)),
        ),
    )


def ordered(marks: bytes) -> bytes:
    """Marks in ascending order."""
    return bytes(sorted(marks))


def _length(lengths: dict[str, int], marks: bytes, chosen: int) -> int:
    return sum(size for size, mark in zip(lengths.values(), marks, strict=True) if mark == chosen)


def _marks(keys: Iterable[H], *sets: tuple[frozenset[H], int]) -> bytes:
    """Return for each key the marks of the sets that hold it."""
    marks = dict.fromkeys(keys, 0)
    for members, mark in sets:
        for key in members:
            marks[key] |= mark
    return bytes(marks.values())


def _claims(claims: Sequence[ClaimTally] | None, chunks: frozenset[int], without: int = 0) -> bytes:
    return bytes(_mark_of(claim, chunks) & ~without for claim in claims or ())


def _mark_of(claim: ClaimTally, chunks: frozenset[int]) -> int:
    return (
        ENTAILED * claim.entailed
        | ON_TOPIC * bool(claim.relevant)
        | COMPARED * (claim.counterpart is not None)
        | COUNTERPART * bool(claim.counterpart)
        | CONTRADICTED * claim.contradicted
        | GROUNDED * bool(claim.supporting)
        | IN_CHUNK * bool(claim.supporting & chunks)
    )
