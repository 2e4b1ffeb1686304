"""Sorts stored outcomes into rows of the index and what it leaves out."""

from __future__ import annotations

from collections.abc import Callable

from labeler.calculators.index.decoding import NeedsValidation, decode_label
from labeler.calculators.index.frames import RowBatch
from labeler.calculators.index.rows import failure_row, label_row
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord, is_canary, records_of


def gather(
    batch: RowBatch,
    place: int,
    content: bytes | None,
    read: Callable[[], AnyOutcome],
    *,
    key: str | None = None,
) -> AnyOutcome | None:
    """Add an outcome to a batch, if it is a label or the failure to make one.

    Planted twins, which enter no number, are passed over.

    Args:
        batch: what it is added to.
        place: where it is stored.
        content: its JSON, if it may be that of a label.
        read: reads it by the models, where that is needed.
        key: what it is stored under.

    Returns:
        An outcome of another kind, such as a score.

    Raises:
        Unindexable: no index can hold it.
    """
    if content is None:
        return _add(batch, place, read())
    try:
        row = decode_label(content, key)
    except NeedsValidation:
        return _add(batch, place, read())
    if row is not None:
        batch.add_label(place, row)
    return None


def _add(batch: RowBatch, place: int, outcome: AnyOutcome) -> AnyOutcome | None:
    if not any(True for _ in records_of([outcome], "label")):
        return outcome
    if not is_canary(outcome):
        if isinstance(outcome, LabelRecord):
            batch.add_label(place, label_row(outcome))
        elif isinstance(outcome, LabelFailure):
            batch.add_failure(place, failure_row(outcome))
    return None
