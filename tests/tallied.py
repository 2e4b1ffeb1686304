"""Index rows worked out from the tallies of records, to hold the decoder against."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from labeler.calculators.columns import (
    CITING,
    COMPARED,
    CONTRADICTED,
    COUNTERPART,
    ENTAILED,
    GENERAL,
    ON_TOPIC,
    RELEVANT,
    SUPPORTED,
    UNSUPPORTED,
    UTILIZED,
)
from labeler.calculators.index.rows import ClaimRow, IndexRow, metadata_text
from labeler.calculators.metrics_row import outcome_profile
from labeler.calculators.tally import ClaimTally, tally
from labeler.labels.record import LabelRecord
from labeler.sentences.keys import position


def tallied_row(record: LabelRecord) -> IndexRow:
    """The index row of a label."""
    example, counted = record.example, tally(record)
    return IndexRow(
        id=record.id,
        key=record.key,
        label=str(record.signature),
        failed=None,
        profile=outcome_profile(record).name,
        question=example.question,
        metadata=metadata_text(example.metadata),
        columns=tuple(example.metadata),
        documents=counted.documents,
        lengths=tuple(counted.lengths.values()),
        marks=_marks(counted.lengths, (counted.relevant, RELEVANT), (counted.utilized, UTILIZED)),
        response=_marks(
            counted.response,
            (counted.supported, SUPPORTED),
            (counted.unsupported, UNSUPPORTED),
            (counted.general, GENERAL),
            (counted.citing, CITING),
        ),
        stored=(
            counted.stored_relevant,
            counted.stored_utilized,
            counted.stored_both,
            counted.stored_unsupported,
        ),
        claims=_claims(counted.claims),
        reference_claims=_claims(counted.reference_claims),
    )


def _marks(keys: Iterable[str], *sets: tuple[frozenset[str], int]) -> bytes:
    """Return for each key the marks of the sets that hold it."""
    marks = dict.fromkeys(keys, 0)
    for members, mark in sets:
        for key in members:
            marks[key] |= mark
    return bytes(marks.values())


def _claims(claims: Sequence[ClaimTally] | None) -> ClaimRow | None:
    if claims is None:
        return None
    return ClaimRow(
        marks=bytes(map(_mark_of, claims)),
        sentences=[position(claim.sentence).sentence for claim in claims],
        supporting=[sorted(claim.supporting) for claim in claims],
        contradicting=[sorted(claim.contradicting) for claim in claims],
    )


def _mark_of(claim: ClaimTally) -> int:
    return (
        ENTAILED * claim.entailed
        | ON_TOPIC * bool(claim.relevant)
        | COMPARED * (claim.counterpart is not None)
        | COUNTERPART * bool(claim.counterpart)
        | CONTRADICTED * claim.contradicted
    )
