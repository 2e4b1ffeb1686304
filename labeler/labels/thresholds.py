"""Verdicts at other thresholds, from stored probabilities. Pure: no judge is asked.

A probability at or above its threshold makes a positive verdict. A label names the thresholds that
it was judged by in ``reply.thresholds``, and those that were moved afterwards in its signature.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from typing_extensions import TypedDict

from labeler.catalog import unknown
from labeler.errors import UnknownName, UsageError, number_in
from labeler.labels.answers import ClaimsLabelingOutput, SentenceSupport
from labeler.labels.non_answers import overrule
from labeler.labels.record import AnyOutcome, LabelRecord
from labeler.labels.signature import label_key, retrieval_key

OutcomeT = TypeVar("OutcomeT", bound=AnyOutcome)

SUPPORT = "support"
_KEYS = {"relevance": "all_relevant_sentence_keys", "utilization": "all_utilized_sentence_keys"}
"""Fields of document sentences by kind of verdict."""
VERDICTS = (SUPPORT, *_KEYS)
"""Kinds of verdicts that have a threshold."""


class Thresholds(TypedDict, total=False):
    """Least probabilities of positive verdicts, as keywords."""

    support: float | None
    relevance: float | None
    utilization: float | None


def read_thresholds(given: Mapping[str, Any]) -> dict[str, float]:
    """Return the thresholds that are not ``None``, by kind of verdict.

    Raises:
        UnknownName: there are no such verdicts.
        UsageError: there is no threshold, or one is not a probability.
    """
    found = {name: value for name, value in given.items() if value is not None}
    if not found:
        raise UsageError(f"give at least one threshold, of {', '.join(VERDICTS)}")
    for name in found:
        if name not in VERDICTS:
            raise UnknownName(unknown("threshold", name, VERDICTS))
    return {name: number_in(f"threshold {name}", value, 0, 1) for name, value in found.items()}


def parse_thresholds(texts: Iterable[str]) -> dict[str, float]:
    """Parse thresholds such as ``support=0.8``.

    Raises:
        UnknownName: there are no such verdicts.
        UsageError: one is not of that form or no probability, or a kind is named twice.
    """
    found: dict[str, float | None] = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if math.isnan(number):
            raise UsageError(
                f"--threshold is {text!r:.60}; it is KIND=PROBABILITY, such as support=0.8"
            )
        if name in found:
            raise UsageError(f"--threshold names {name!r:.60} twice; give it once")
        found[name] = number
    return read_thresholds(found)


def outcomes_at(
    outcomes: Iterable[OutcomeT], thresholds: Mapping[str, float]
) -> Iterator[OutcomeT | LabelRecord]:
    """Yield outcomes, labels with the verdicts of other thresholds; see :func:`at_thresholds`."""
    for outcome in outcomes:
        if isinstance(outcome, LabelRecord):
            yield at_thresholds(outcome, thresholds)
        else:
            yield outcome


def at_thresholds(record: LabelRecord, thresholds: Mapping[str, float]) -> LabelRecord:
    """Return a label with the verdicts that other thresholds make of its probabilities.

    Verdicts of other kinds stay, and so do all of a threshold that the label was judged by. A
    sentence that becomes unsupported loses its keys; one that becomes supported names
    ``supported_without_sentence``, because no sentence is known to support it. Explanations are
    those of the judge, behind the new threshold.

    Args:
        record: the label as it was judged.
        thresholds: as :func:`read_thresholds` returns them.

    Raises:
        UsageError: the label lacks the probabilities, or its thresholds were moved before.
    """
    if record.signature.thresholds:
        raise UsageError(f"{record.id!r}: its thresholds are moved already; move all at once")
    judged_by = record.reply.thresholds
    moved = {name: value for name, value in thresholds.items() if judged_by.get(name) != value}
    if not moved:
        return record
    changes: dict[str, Any] = {}
    if SUPPORT in moved:
        changes |= _supported(record, moved[SUPPORT])
    for name in moved.keys() & _KEYS.keys():
        found = probabilities(record, name)
        changes[_KEYS[name]] = tuple(key for key, p in found.items() if p >= moved[name])
    if "relevance" in moved:
        explained = record.label.relevance_explanation
        changes["relevance_explanation"] = _noted(f"threshold {moved['relevance']:g}", explained)
    label, _ = overrule(record.label.model_copy(update=changes), record.example)
    signature = record.signature.model_copy(update={"thresholds": moved})
    view = {
        "key": label_key(record.example, signature),
        "label": label,
        "verbatim": None,
        "signature": signature,
    }
    if record.retrieval and "relevance" in moved:
        by = record.retrieval.signature.model_copy(update={"thresholds": moved})
        basis = {
            "key": retrieval_key(record.example, by),
            "signature": by,
            "all_relevant_sentence_keys": label.all_relevant_sentence_keys,
        }
        view["retrieval"] = record.retrieval.model_copy(update=basis)
    return record.model_copy(update=view)


def _supported(record: LabelRecord, threshold: float) -> dict[str, Any]:
    """Return the fields of a label that say what is supported."""
    if isinstance(record.label, ClaimsLabelingOutput):
        raise UsageError(
            f"{record.id!r}: its claims have no probabilities, so the threshold of {SUPPORT} "
            "cannot move; label the rows with --profile trace"
        )
    found = probabilities(record, SUPPORT)
    entries = [
        _sentence(entry, found[entry.response_sentence_key], threshold)
        for entry in record.label.sentence_support_information
    ]
    explained = record.label.overall_supported_explanation
    return {
        "sentence_support_information": tuple(entries),
        "overall_supported_explanation": _noted(f"threshold {threshold:g}", explained),
        "overall_supported": bool(entries) and all(entry.fully_supported for entry in entries),
    }


def _sentence(entry: SentenceSupport, probability: float, threshold: float) -> SentenceSupport:
    """Return the verdict on a sentence at a threshold."""
    is_supported = probability >= threshold
    if is_supported == entry.fully_supported:
        return entry
    relation = "at least" if is_supported else "below"
    return SentenceSupport(
        response_sentence_key=entry.response_sentence_key,
        explanation=_noted(f"{probability:g}, {relation} {threshold:g}", entry.explanation),
        supporting_sentence_keys=("supported_without_sentence",) if is_supported else (),
        fully_supported=is_supported,
    )


def _noted(note: str, explanation: str) -> str:
    """Return an explanation behind a note; one that the judge did not give stays empty."""
    return explanation and f"[{note}] {explanation}"


def probabilities(record: LabelRecord, kind: str) -> dict[str, float]:
    """Return the probabilities of one kind of verdict by sentence key, in reading order.

    Raises:
        UsageError: the label lacks them.
    """
    scores, example = record.scores, record.example
    if scores is None or scores.adherence is None:
        raise UsageError(
            f"{record.id!r}: judge {record.signature.judge}/{record.signature.model} gave no "
            "probabilities, which thresholds and reports with --human need; --judge "
            "decisions:MODEL gives some"
        )
    found: dict[str, float] = getattr(scores, kind)
    keys = example.response_keys() if kind == SUPPORT else example.document_keys()
    lacking = next((key for key in keys if key not in found), None)
    if lacking is not None:
        raise UsageError(f"{record.id!r}: sentence {lacking} has no probability of {kind}")
    return {key: found[key] for key in keys}
