"""Index rows: the tally of one label as numbers."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from labeler.calculators.columns import (
    CITING,
    COMPARED,
    COUNTERPART,
    ENTAILED,
    GENERAL,
    ON_TOPIC,
    RELEVANT,
    SUPPORTED,
    UNSUPPORTED,
    UTILIZED,
)
from labeler.calculators.metrics_row import outcome_profile
from labeler.calculators.tally import ClaimTally, tally
from labeler.labels.record import LabelFailure, LabelRecord
from labeler.sentences.example import KeyedExample
from labeler.sentences.keys import document_key, position, reference_key, response_key


class Unindexable(Exception):
    """A record that no index can hold, such as one with keys out of order.

    Only a record that was created or edited by hand can be so; it must be read itself.
    """


class ClaimRow(NamedTuple):
    """The claims of one text.

    Attributes:
        marks: one per claim, see :mod:`labeler.calculators.columns`.
        sentences: position of each claim's sentence.
        supporting: for each claim, the sorted indices of the documents that support it.
        contradicting: for each claim, the sorted indices of the documents that contradict it.
    """

    marks: bytes
    sentences: Sequence[int]
    supporting: Sequence[Sequence[int]]
    contradicting: Sequence[Sequence[int]]


class LabelRow(NamedTuple):
    """One label.

    Attributes:
        id: the row's id.
        key: the label key.
        label: printed signature.
        profile: name of the label's profile.
        question: the user's question.
        metadata: the other columns, as JSON.
        columns: names of the other columns.
        documents: sentences in each document.
        lengths: characters of each document sentence.
        marks: one per document sentence, see :mod:`labeler.calculators.columns`.
        response: one mark per response sentence.
        stored: counts of the answer as given: relevant keys, utilized keys, distinct keys in both
            lists, and unsupported sentences as published.
        claims: of the response; ``None`` if the profile has none.
        reference_claims: of the reference answer; ``None`` if the profile has none.
    """

    id: str
    key: str
    label: str
    profile: str
    question: str
    metadata: str
    columns: Collection[str]
    documents: Sequence[int]
    lengths: Sequence[int]
    marks: bytes
    response: bytes
    stored: tuple[int, int, int, int]
    claims: ClaimRow | None = None
    reference_claims: ClaimRow | None = None


class FailureRow(NamedTuple):
    """One row without a label.

    Attributes:
        id: the row's id.
        reason: reason code of the failure.
        label: printed signature; ``None`` if it failed before it had one.
        profile: name of the requested profile.
        metadata: the other columns, as JSON.
        columns: names of the other columns.
    """

    id: str
    reason: str
    label: str | None
    profile: str
    metadata: str
    columns: Collection[str]


def label_row(record: LabelRecord) -> LabelRow:
    """Return the index row of a label.

    Raises:
        Unindexable: a sentence has another key than that of its position.
    """
    example, counted = record.example, tally(record)
    _require_order(example)
    return LabelRow(
        id=record.id,
        key=record.key,
        label=str(record.signature),
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


def failure_row(failure: LabelFailure) -> FailureRow:
    """Return the index row of a failure."""
    return FailureRow(
        id=failure.id,
        reason=failure.reason,
        label=str(failure.signature) if failure.signature else None,
        profile=outcome_profile(failure).name,
        metadata=metadata_text(failure.metadata),
        columns=tuple(failure.metadata),
    )


def metadata_text(metadata: dict[str, Any]) -> str:
    """Return metadata as JSON that decodes to equal values.

    Raises:
        Unindexable: it holds an infinite number, such as one too large for a float.
    """
    try:
        return json.dumps(metadata, allow_nan=False)
    except ValueError as error:
        raise Unindexable(f"a record's metadata holds what JSON cannot: {error}") from error


def _require_order(example: KeyedExample) -> None:
    """Require the keys of positions, since the index holds positions alone."""
    documents = [
        document_key(d, s) for d, part in enumerate(example.documents) for s in range(len(part))
    ]
    response = [response_key(s) for s in range(len(example.response))]
    reference = [reference_key(s) for s in range(len(example.reference or ()))]
    given = [sentence.key for sentence in example.reference or ()]
    found = example.document_keys(), example.response_keys(), given
    if found != (documents, response, reference):
        raise Unindexable(f"record {example.id!r}: its sentences have other keys than their places")


def _marks(keys: Iterable[str], *sets: tuple[frozenset[str], int]) -> bytes:
    """Return for each key the marks of the sets that hold it."""
    marks = dict.fromkeys(keys, 0)
    try:
        for members, mark in sets:
            for key in members:
                marks[key] |= mark
    except KeyError as error:
        raise Unindexable(f"a label names {error}, which its sentences do not have") from None
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
    )
