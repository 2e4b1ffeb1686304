"""Index rows: the tally of one label, or a failure to label, as numbers and texts."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, NamedTuple

from labeler.calculators.metrics_row import outcome_profile
from labeler.labels.record import LabelFailure


class Unindexable(Exception):
    """A record that no index can hold, such as one with keys out of order.

    Only a record that was created or edited by hand can be so; it must be read itself.
    """


class IndexRow(NamedTuple):
    """One label, or one row without a label.

    Attributes:
        id: the row's id.
        label: printed signature; ``None`` if it failed before it had one.
        answered: the model that answered, as JSON, see
            :class:`labeler.labels.answering.AnsweringModel`; ``None`` for a failure.
        failed: reason code of the failure; ``None`` for a label.
        profile: name of the profile, or of the requested one.
        question: the user's question; ``None`` for a failure.
        metadata: the other columns, as JSON.
        columns: names of the other columns.
        key: the label key.
        content: digest of the label and of the answer as given; 0 for a failure.
        documents: the mark of each document, see :mod:`labeler.calculators.columns`.
        response: the sorted marks of the response sentences.
        claims: the sorted marks of the response's claims.
        reference_claims: the sorted marks of the reference answer's claims.
        numbers: counts of the answer as given, of citations, of probabilities and of document
            sentences, as in
            ``NUMBERS`` of :mod:`labeler.calculators.index.frames`.
    """

    id: str
    label: str | None
    answered: bytes | None
    failed: str | None
    profile: str
    question: str | None
    metadata: str
    columns: Collection[str]
    key: str = "0" * 64
    content: int = 0
    documents: bytes = b""
    response: bytes = b""
    claims: bytes = b""
    reference_claims: bytes = b""
    numbers: tuple[int, ...] = (0,) * 20


def failure_row(failure: LabelFailure) -> IndexRow:
    """Return the index row of a failure.

    Raises:
        Unindexable: its metadata is not JSON.
    """
    return IndexRow(
        id=failure.id,
        label=str(failure.signature) if failure.signature else None,
        answered=None,
        failed=failure.reason,
        profile=outcome_profile(failure).name,
        question=None,
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
