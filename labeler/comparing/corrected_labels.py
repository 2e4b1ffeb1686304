"""Corrections as human labels, and the means that they change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from labeler.calculators import Metric, SummaryRow, select_metrics, summarize
from labeler.calculators.outcomes import measure_outcomes
from labeler.comparing.human_labels import OVERALL, HumanLabel, HumanLabels
from labeler.comparing.sides import Choice
from labeler.data.corrections.applying import Applied, usable
from labeler.data.corrections.correction import Correction, Judgment, decided, drawn_at_random
from labeler.data.corrections.file import independent
from labeler.labels.answering import configuration
from labeler.labels.answers import GPTLabelingOutput
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
            and choice.fits(configuration(outcome), outcome.signature.trial)
        ):
            seen.add(outcome.key)
            yield outcome


def _labels(
    record: LabelRecord, correction: Correction, judgment: Judgment, where: str
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


class MeanChange(NamedTuple):
    """A metric's mean over the labels of one judge configuration.

    Attributes:
        before: summary of the judge's labels.
        after: summary of the corrected ones.
    """

    before: SummaryRow
    after: SummaryRow


class MeanChanges:
    """Means before and after corrections: of the metrics that people can correct.

    Args:
        judged: the judge's labels and failures; consumed at once.
        applied: the corrections that are applied to them.
    """

    def __init__(self, judged: Iterable[AnyOutcome], applied: Applied) -> None:
        self._applied = applied
        self._signed: dict[str, str] = {}
        """Printed signatures of corrected labels, by the printed ones of the judge's labels."""
        self._before = _summaries(self._noted(judged))

    def of(self, corrected: Iterable[AnyOutcome]) -> list[MeanChange]:
        """Consume the corrected labels, and return the means that changed."""
        after = {(row.metric, row.label): row for row in _summaries(corrected)}
        found = [
            MeanChange(row, after[row.metric, self._signed[row.label]])
            for row in self._before
            if row.label is not None
        ]
        return [one for one in found if one.before.mean != one.after.mean]

    def _noted(self, judged: Iterable[AnyOutcome]) -> Iterator[AnyOutcome]:
        """Yield the judge's labels, and note their signatures."""
        for outcome in judged:
            if outcome.signature is not None:
                printed = str(outcome.signature)
                if printed not in self._signed:
                    self._signed[printed] = str(self._applied.signed(outcome.signature))
            yield outcome


def _summaries(outcomes: Iterable[AnyOutcome]) -> list[SummaryRow]:
    """Summarize metrics of labels, all models that answered together."""
    metrics = _correctable()
    return summarize(measure_outcomes(outcomes, metrics), metrics, by_model=False)


def _correctable() -> list[Metric]:
    """Return the metrics of the lean label: people do not correct claims."""
    return [one for one in select_metrics() if one.profile.output is GPTLabelingOutput]
