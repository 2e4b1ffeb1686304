"""Corrections for tests: what people say of labels, written as briefly as a worked example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labeler.data.corrections import Correction, Judgment
from labeler.labels.record import LabelRecord

EARLY, LATE = "2026-11-22T10:00:00+00:00", "2026-11-22T11:00:00+00:00"


def judgment(
    *,
    relevant: Sequence[str] = ("0a",),
    utilized: Sequence[str] = ("0a",),
    support: Mapping[str, Sequence[str]] | None = None,
    overall: bool = True,
) -> Judgment:
    """A judgment; by default the one that :func:`labeled.record` makes the judge say."""
    support = {"a": ["0a"], "b": ["0b"]} if support is None else support
    return Judgment(
        relevant=tuple(relevant),
        utilized=tuple(utilized),
        support={key: tuple(keys) for key, keys in support.items()},
        overall_supported=overall,
    )


def correction(
    record: LabelRecord, said: Judgment | None = None, *, by: str = "ann", **facts: Any
) -> Correction:
    """What a person says of a label.

    Args:
        record: the label.
        said: the judgment, or none.
        by: the person.
        facts: other fields.
    """
    made = {
        "key": record.key,
        "id": record.id,
        "annotator": by,
        "at": EARLY,
        "opinion": "disagree",
        "judgment": said,
    }
    return Correction.model_validate(made | facts)
