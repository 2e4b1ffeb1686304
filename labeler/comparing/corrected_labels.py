"""Read corrections as human labels: all that a person judged, agreeing or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from labeler.comparing.human_labels import OVERALL, HumanLabel, HumanLabels
from labeler.comparing.pairs import Choice
from labeler.data.corrections.applying import usable
from labeler.data.corrections.correction import Correction, Judgement, decided, drawn_at_random
from labeler.data.corrections.file import independent
from labeler.labels.record import AnyOutcome, LabelRecord


class CorrectedLabels(NamedTuple):
    """Corrections as human labels.

    Attributes:
        human: the labels.
        judgments: number of judgments that count, one for a person and record.
        blind: number of these that were made while the judge's verdicts were hidden.
    """

    human: HumanLabels
    judgments: int
    blind: int


class _Counted(NamedTuple):
    """A person's judgment of a record that counts.

    Attributes:
        place: its place among all judgments, in the order in which they were made.
        is_blind: whether it was made while the judge's verdicts were hidden.
        labels: its human labels.
    """

    place: int
    is_blind: bool
    labels: list[HumanLabel]


def human_labels(
    corrections: Iterable[Correction],
    records: Iterable[AnyOutcome],
    *,
    choice: Choice | None = None,
    random_sample: bool = False,
    blind_only: bool = False,
    name: str = "corrections",
) -> CorrectedLabels:
    """Return the judgments of sentences and records as human labels.

    Of one person's judgments of one label, the last blind one counts, or else the last one. Of one
    person's judgments of several labels of one record, that of the label judged last counts.

    Args:
        corrections: all events, in the order of the file.
        records: the corrected labels, among other outcomes.
        choice: the labels that are meant; by default all.
        random_sample: only corrections of records that were drawn at random, whichever queue the
            person judged them in.
        blind_only: only corrections by people who did not see the judge's verdicts.
        name: name of the corrections in errors.
    """
    events = tuple(corrections)
    drawn = drawn_at_random(events) if random_sample else None
    last: dict[str, list[Correction]] = {}
    order: dict[tuple[str, str], int] = {}
    for place, each in enumerate(independent(events)):
        if (drawn is None or each.key in drawn) and (each.blind or not blind_only):
            last.setdefault(each.key, []).append(each)
            order[each.key, each.annotator] = place
    found: dict[tuple[str, str], _Counted] = {}
    repeated = 0
    for record in _distinct(records, last, choice or Choice()):
        for correction, judgment in usable(last[record.key], record):
            place = order[correction.key, correction.annotator]
            labels = list(_labels(record, correction, judgment, f"{name}:{correction.id!r:.80}"))
            person = record.id, correction.annotator
            known = found.get(person)
            if known is None or known.place < place:
                found[person] = _Counted(place, correction.blind, labels)
                labels = known.labels if known else []
            repeated += len(labels)
    counted = found.values()
    labels = [label for each in counted for label in each.labels]
    blind = sum(each.is_blind for each in counted)
    return CorrectedLabels(HumanLabels(tuple(labels), repeated, ()), len(counted), blind)


def _distinct(
    outcomes: Iterable[AnyOutcome], wanted: dict[str, list[Correction]], choice: Choice
) -> Iterator[LabelRecord]:
    """Yield the corrected labels, each once."""
    seen: set[str] = set()
    for outcome in outcomes:
        if (
            isinstance(outcome, LabelRecord)
            and outcome.key in wanted
            and outcome.key not in seen
            and choice.fits(outcome)
        ):
            seen.add(outcome.key)
            yield outcome


def _labels(
    record: LabelRecord, correction: Correction, judgment: Judgement, where: str
) -> Iterator[HumanLabel]:
    """Yield one judgment as human labels: every sentence decided on, and the record."""
    example = record.example
    response = decided(record, correction).union(judgment.support)
    by_field = {
        "relevant": (example.document_keys(), frozenset(judgment.relevant)),
        "utilized": (example.document_keys(), frozenset(judgment.utilized)),
        "supported": (
            [key for key in example.response_keys() if key in response],
            frozenset(judgment.support),
        ),
    }
    for field, (keys, yes) in by_field.items():
        for key in keys:
            value = float(key in yes)
            yield HumanLabel(record.id, field, key, correction.annotator, value, where)
    overall = float(judgment.overall_supported)
    yield HumanLabel(record.id, OVERALL, None, correction.annotator, overall, where)
