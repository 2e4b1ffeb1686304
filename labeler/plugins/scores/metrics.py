"""Metrics of criterion scores: means, passes, and the effect of length.

Scores of different judge configurations are never averaged;
:mod:`labeler.plugins.scores.agreement` compares raters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

from labeler.calculators.metrics_row import (
    QUESTION,
    Identity,
    MetricsRow,
    failed_row,
    printed_versions,
    question_digest,
)
from labeler.calculators.ratio import Ratio
from labeler.calculators.registry import Metric
from labeler.calculators.statistics.intervals import Intervals
from labeler.calculators.summary import SummaryRow, count_clusters, summarize
from labeler.labels.answering import AnsweringModel
from labeler.labels.record import LabelFailure
from labeler.labels.signature import Signature
from labeler.plugins.scores.records import (
    CRITERIA,
    ScoreOutcome,
    ScoreRecord,
    has_prefixes,
)

PASS = "pass"  # noqa: S105 - the definition of a yes-or-no value
CHARACTERS = 1000
"""Characters of a response per unit of a slope."""


def criterion_name(signature: Signature) -> str:
    """Return the name of the criterion in a score's signature."""
    return signature.prompt.name.partition("+")[2] if signature.prompt else ""


@dataclass
class ScoreConfiguration:
    """A criterion with the judge configuration that scored it.

    Attributes:
        name: the criterion's name.
        signature: printed, without the trial.
        samples: numbers of trials per score that its records state.
        methods: methods that its scores are computed by.
    """

    name: str
    signature: str
    samples: set[int] = field(default_factory=set)
    methods: set[str] = field(default_factory=set)

    @classmethod
    def key(cls, signature: Signature) -> tuple[str, str]:
        """Return name and printed signature of the configuration of a score."""
        return criterion_name(signature), str(signature.model_copy(update={"trial": 0}))

    def add_record(self, record: ScoreRecord) -> None:
        """Note how a score was made."""
        self.samples.add(record.samples)
        self.methods.add(record.method)

    @property
    def trials_per_score(self) -> int:
        """Trials whose mean is one score; 1 if the records disagree."""
        return min(self.samples) if len(self.samples) == 1 else 1

    @property
    def label(self) -> str:
        """The printed form of the configuration."""
        mean = f"mean of {self.trials_per_score} " if self.trials_per_score > 1 else ""
        return f"{self.signature}|score:{mean}{'+'.join(sorted(self.methods)) or 'none'}"

    def repeat_label(self, repeat: int) -> str:
        """Return the label with the number of a repeat, from 0, except for the first."""
        return f"{self.label}|repeat:{repeat}" if repeat else self.label


Scale = tuple[int, int] | None
"""The lowest and the highest score of a criterion; ``None`` where no record states them."""


def criterion_scales(outcomes: Iterable[ScoreOutcome]) -> dict[str, Scale]:
    """Return the scale of each criterion, in order of appearance.

    Criteria of one name and several scales have the scale that holds all of them.
    """
    found: dict[str, Scale] = {}
    for outcome in outcomes:
        if outcome.signature is None:
            continue
        name = criterion_name(outcome.signature)
        known = found.setdefault(name, None)
        if isinstance(outcome, ScoreRecord):
            low, high = outcome.criterion.low, outcome.criterion.high
            found[name] = (min(low, known[0]), max(high, known[1])) if known else (low, high)
    return found


def score_metrics(criterion: str, scale: Scale = None) -> tuple[Metric, Metric]:
    """Return the two metrics of a criterion: its score, and ``NAME:pass``."""
    reaches = "1 if the score reaches the threshold, else 0"
    return (
        _metric(criterion, "score", "score by the criterion's scale", scale, default=True),
        _metric(criterion, PASS, reaches, None, default=False),
    )


def _metric(name: str, definition: str, formula: str, scale: Scale, *, default: bool) -> Metric:
    return Metric(
        name=name,
        definition=definition,
        needs=("score",),
        source="rubric judge; G-Eval, arXiv 2303.16634",
        formula=formula,
        compute=_collected,
        kind="score",
        default=default,
        bounded=definition == PASS,
        scale=scale,
    )


def _collected(_: ScoreRecord) -> Ratio:
    """Return no value for a single record: several trials may make one score."""
    return Ratio.missing("needs_scores")


class RubricMetrics(NamedTuple):
    """The two metrics of a criterion."""

    score: Metric
    passed: Metric


def _rubric(name: str) -> RubricMetrics:
    criterion = CRITERIA[name]
    return RubricMetrics(*score_metrics(name, (criterion.low, criterion.high)))


FAITHFULNESS = _rubric("rubric_faithfulness")
ANSWER_RELEVANCY = _rubric("rubric_answer_relevancy")
CONTEXT_RECALL = _rubric("rubric_context_recall")


def measure_scores(outcomes: Iterable[ScoreOutcome]) -> dict[str, list[MetricsRow]]:
    """Return the metric rows of each criterion, by its name.

    A score of several trials is their mean, undefined (``missing_samples``) if one is missing. An
    unreadable row fails by every criterion. A record that repeats has another row of the same
    identity, which summaries leave out and count.
    """
    table = _ScoreTable(outcomes)
    return {name: list(table.rows(name)) for name in table.names}


def summarize_scores(
    outcomes: Iterable[ScoreOutcome], by: str | None = None, *, intervals: Intervals | None = None
) -> list[SummaryRow]:
    """Summarize scores and passes per criterion, judge configuration and repeat.

    Args:
        outcomes: scores and failures.
        by: name of a metadata column.
        intervals: options of intervals; by default none are computed.

    Raises:
        UsageError: no row has the column.
    """
    scores = list(outcomes)
    scales = criterion_scales(scores)
    return [
        row
        for name, rows in measure_scores(scores).items()
        for row in summarize(rows, score_metrics(name, scales[name]), by, intervals=intervals)
    ]


@dataclass(frozen=True)
class LengthEffect:
    """The slope of scores over the length of responses.

    Attributes:
        criterion: its name.
        label: printed signature of the scores.
        records: records with a score.
        slope: change of the score per 1,000 characters of response.
        low: lower end of the slope's interval; ``None`` if it has none.
        high: upper end.
        small_sample: True if the interval is one of a small sample.
        clusters: groups of records with equal questions, each one observation; ``None`` if all
            differ or are one.
        undefined: reason of a missing slope or interval; else ``None``.
    """

    criterion: str
    label: str
    records: int
    slope: float | None
    low: float | None = None
    high: float | None = None
    small_sample: bool = False
    clusters: int | None = None
    undefined: str | None = None

    def as_json(self, version: str) -> dict[str, str | float | None]:
        """Return the published form."""
        values = asdict(self)
        label = values.pop("label")
        return {**values, "signature": f"{label}|labeler:{version}"}


def length_effects(outcomes: Iterable[ScoreOutcome]) -> list[LengthEffect]:
    """Fit scores to the length of their responses, per criterion, configuration and repeat.

    A slope alone does not separate a judge that rewards length from longer responses that are
    better. Compare it with the slope of a criterion that length cannot improve, or of human
    scores.
    """
    return list(_ScoreTable(outcomes).length_effects())


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


class _ScoreTable:
    """Scores by criterion and judge configuration."""

    def __init__(self, outcomes: Iterable[ScoreOutcome]) -> None:
        self._groups: dict[tuple[str, str], _ScoreGroup] = {}
        self._unread: list[LabelFailure] = []
        for outcome in outcomes:
            if outcome.signature is None:
                self._unread += [outcome] if isinstance(outcome, LabelFailure) else []
                continue
            key = ScoreConfiguration.key(outcome.signature)
            group = self._groups.setdefault(key, _ScoreGroup(*key))
            if isinstance(outcome, ScoreRecord):
                group.add_record(outcome)
            group.outcomes.append((outcome.signature.trial, outcome))

    @property
    def names(self) -> list[str]:
        """The criteria, in order of appearance."""
        return list(dict.fromkeys(name for name, _ in self._groups))

    def rows(self, name: str) -> Iterator[MetricsRow]:
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

    def length_effects(self) -> Iterator[LengthEffect]:
        """Yield the slope of each configuration and repeat."""
        for group in self._groups.values():
            for repeat, cases in group.cases().items():
                scored = (
                    (case.records[0], case.score(group).value)
                    for case in cases.values()
                    if not case.failed
                )
                points = [
                    _Point(_length(record), value, question_digest(record.example.question) or None)
                    for record, value in scored
                    if value is not None
                ]
                yield _length_effect(group.name, group.repeat_label(repeat), points)


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


def _length(record: ScoreRecord) -> float:
    """Return the length of the response in thousands of characters."""
    return sum(len(sentence.text) for sentence in record.example.response) / CHARACTERS


class _Point(NamedTuple):
    """The length of a response, its score, and a number for its question."""

    length: float
    score: float
    question: int | None


def _length_effect(name: str, label: str, points: Sequence[_Point]) -> LengthEffect:
    from labeler.calculators.statistics.intervals import Undefined  # noqa: PLC0415 - as below
    from labeler.plugins.scores.slope import fit_slope  # noqa: PLC0415 - loads numpy

    questions = [point.question for point in points]
    clusters = count_clusters(questions)
    groups = None if clusters is None else questions
    line = fit_slope([one.length for one in points], [one.score for one in points], groups=groups)
    if isinstance(line, Undefined):
        return LengthEffect(name, label, len(points), None, undefined=line.reason)
    effect = LengthEffect(name, label, len(points), line.slope, clusters=clusters)
    if isinstance(line.interval, Undefined):
        return replace(effect, undefined=line.interval.reason)
    found = line.interval
    return replace(effect, low=found.low, high=found.high, small_sample=found.small_sample)
