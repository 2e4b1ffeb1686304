"""Scores that are measured together: several trials make one score, and raters are compared."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from labeler.calculators.metrics_row import MetricsRow, failed_row, printed_versions
from labeler.calculators.ratio import Ratio
from labeler.calculators.registry import ALL, Metric
from labeler.calculators.row_facts import QUESTION, Identity, question_digest
from labeler.calculators.summary import SummaryRow, summarize
from labeler.labels.answering import AnsweringModel
from labeler.labels.record import AnyOutcome, LabelFailure
from labeler.plugins.scores.metrics import Scale, ScoreConfiguration, score_metrics
from labeler.plugins.scores.records import ScoreOutcome, ScoreRecord, has_prefixes

if TYPE_CHECKING:
    from labeler.calculators.statistics.intervals import Intervals
    from labeler.plugins.scores.length import LengthEffect


class Scores:
    """Scores and failures to score; see :class:`labeler.calculators.metrics_row.Collected`.

    A score of several trials is their mean, undefined (``missing_samples``) if one is missing. An
    unreadable row fails by every criterion. A record that repeats has another row of the same
    identity, which summaries leave out and count.

    Args:
        outcomes: the first ones.
    """

    def __init__(self, outcomes: Iterable[AnyOutcome] = ()) -> None:
        self._groups: dict[tuple[str, str], _ScoreGroup] = {}
        self._scales: dict[str, Scale] = {}
        """By criterion; criteria of one name have the scale that holds all of theirs."""
        self._unread: list[LabelFailure] = []
        for outcome in outcomes:
            self.add(outcome)

    def add(self, outcome: AnyOutcome) -> None:
        """Add a score, a failure, or a row that could not be read."""
        if outcome.signature is None:
            self._unread.append(outcome)
            return
        key = ScoreConfiguration.key(outcome.signature)
        group = self._groups.setdefault(key, _ScoreGroup(*key))
        known = self._scales.setdefault(group.name, None)
        if isinstance(outcome, ScoreRecord):
            group.add_record(outcome)
            low, high = outcome.criterion.low, outcome.criterion.high
            scale = (min(low, known[0]), max(high, known[1])) if known else (low, high)
            self._scales[group.name] = scale
        group.outcomes.append((outcome.signature.trial, cast("ScoreOutcome", outcome)))

    def metrics(self, ids: Collection[str] | None = None) -> list[Metric]:
        """Return the metrics of the criteria with scores, or those of them with ids."""
        every = [metric for one in self._scales.items() for metric in score_metrics(*one)]
        return [m for m in every if ids is None or {ALL, *m.names}.intersection(ids)]

    def rows(self, metrics: Sequence[Metric]) -> Iterator[MetricsRow]:
        """Yield the rows of each criterion, with these metrics only."""
        chosen = {metric.id for metric in metrics}
        for name in dict.fromkeys(metric.name for metric in metrics):
            for row in self._rows(name):
                values = {id_: value for id_, value in row.metrics.items() if id_ in chosen}
                yield replace(row, metrics=values)

    def summaries(
        self,
        metrics: Sequence[Metric],
        by: str | None = None,
        intervals: Intervals | None = None,
    ) -> list[SummaryRow]:
        """Summarize these metrics per criterion, judge configuration and repeat.

        Raises:
            UsageError: no row has the metadata column ``by``.
        """
        found: dict[str, list[Metric]] = {}
        for metric in metrics:
            found.setdefault(metric.name, []).append(metric)
        return [
            row
            for name, chosen in found.items()
            for row in summarize([*self._rows(name)], chosen, by, intervals=intervals)
        ]

    def show(self, metrics: Sequence[Metric], *, intervals: bool) -> None:
        """Print the agreement of raters by the criteria of metrics."""
        from labeler.plugins.scores.agreement import compare_raters  # noqa: PLC0415 - loads numpy
        from labeler.plugins.scores.tables import print_panels  # noqa: PLC0415 - the same

        names = {metric.name for metric in metrics}
        groups = (group for group in self._groups.values() if group.name in names)
        outcomes = (outcome for group in groups for _, outcome in group.outcomes)
        print_panels(compare_raters(outcomes, intervals=intervals))

    def length_effects(self) -> list[LengthEffect]:
        """Fit scores to the length of their responses, per criterion, configuration and repeat.

        A slope alone does not separate a judge that rewards length from longer responses that are
        better. Compare it with the slope of a criterion that length cannot improve, or of human
        scores.
        """
        from labeler.plugins.scores.length import length_effect  # noqa: PLC0415 - loads numpy

        found = []
        for group in self._groups.values():
            for repeat, cases in group.cases().items():
                scored = [
                    (case.records[0].example, value)
                    for case in cases.values()
                    if not case.failed and (value := case.score(group).value) is not None
                ]
                found.append(length_effect(group.name, group.repeat_label(repeat), scored))
        return found

    def _rows(self, name: str) -> Iterator[MetricsRow]:
        """Yield every row of a criterion."""
        metrics = score_metrics(name)
        for group in self._groups.values():
            if group.name == name:
                for repeat, cases in group.cases().items():
                    label = group.repeat_label(repeat)
                    for case in cases.values():
                        row = _row(metrics, case, label, group)
                        yield row
                        yield from [row] * (0 if case.failed else case.copies)
        for failure in self._unread:
            yield failed_row(failure, metrics, None)


@dataclass
class _Case:
    """One record under one criterion, in one repeat."""

    records: list[ScoreRecord] = field(default_factory=list)
    failures: dict[int, LabelFailure] = field(default_factory=dict)
    """By trial."""
    copies: int = 0
    """Records that repeat others."""

    @property
    def failed(self) -> LabelFailure | None:
        """The first failure of a trial without a score."""
        scored = {record.signature.trial for record in self.records}
        return next((f for trial, f in self.failures.items() if trial not in scored), None)

    def score(self, group: ScoreConfiguration) -> Ratio:
        """Return the mean over the trials of one score.

        Where other records of the configuration have distributions, one without, on a scale whose
        scores begin like longer ones, has ``ambiguous_score_tokens``.
        """
        if len(self.records) < group.trials_per_score:
            return Ratio.missing("missing_samples")
        if len(group.methods) > 1 and any(
            record.method == "answer" and has_prefixes(record.criterion.scale)
            for record in self.records
        ):
            return Ratio.missing("ambiguous_score_tokens")
        total = sum((record.value for record in self.records), Fraction(0))
        whole = total.numerator if total.denominator == 1 else total
        return Ratio(whole, len(self.records))


@dataclass
class _ScoreGroup(ScoreConfiguration):
    """The scores of one configuration."""

    outcomes: list[tuple[int, ScoreOutcome]] = field(default_factory=list)
    """Each with its trial."""

    def cases(self) -> dict[int, dict[str, _Case]]:
        """Return the cases by repeat, then by the row's id."""
        trials, found = self.trials_per_score, dict[int, dict[str, _Case]]()
        for trial, outcome in self.outcomes:
            repeat = found.setdefault(trial // trials, {})
            case = repeat.setdefault(outcome.id, _Case())
            if isinstance(outcome, LabelFailure):
                case.failures.setdefault(trial, outcome)
            elif all(record.key != outcome.key for record in case.records):
                case.records.append(outcome)
            else:
                case.copies += 1
        return dict(sorted(found.items()))


def _row(
    metrics: tuple[Metric, Metric], case: _Case, label: str, group: ScoreConfiguration
) -> MetricsRow:
    if case.failed:
        return failed_row(case.failed, metrics, label)
    score, passed = metrics
    value, record = case.score(group), case.records[0]
    flag = value if value.undefined else Ratio.flag(record.criterion.passes(value.exact))
    metadata: dict[str, Any] = {QUESTION: record.example.question, **record.example.metadata}
    ratios = {score.id: value, passed.id: flag}
    return MetricsRow(
        record.id,
        ratios,
        label,
        printed_versions(metrics),
        metadata=metadata,
        identity=Identity.of(record.id, label, record.key),
        question=question_digest(record.example.question),
        answered=AnsweringModel.of_several(case.records),
    )
