"""Numbers of scores: means, passes, and whether length earns anything.

Scores of one criterion that were given in different ways, by two judges say, are never averaged;
what several raters have in common is told by :mod:`labeler.calculators.score_agreement`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypedDict

from labeler.calculators.metrics_row import MetricsRow
from labeler.calculators.ratio import Ratio
from labeler.calculators.registry import Metric
from labeler.calculators.summary import Intervals, SummaryRow, summarize
from labeler.calculators.tally import Tally
from labeler.labels.logprobs import expected_score
from labeler.labels.record import AnyOutcome, LabelFailure, ScoreOutcome, ScoreRecord, records_of
from labeler.labels.signature import Signature

PASS = "pass"  # noqa: S105 - the dialect of a yes-or-no value
QUESTION = "question"
"""The column that every row has besides its own, for grouping."""
CHARACTERS = 1000
"""Slopes are per so many characters of a response."""


def score_value(record: ScoreRecord) -> Fraction:
    """The score of one record: the probability-weighted one where its distribution is known."""
    if record.distribution:
        return expected_score(record.distribution)
    return Fraction(record.answer.score)


def passes(score: Fraction, record: ScoreRecord) -> bool:
    """Whether a score reaches the threshold of its criterion."""
    return score >= Fraction(record.criterion.threshold)


def criterion_name(signature: Signature) -> str:
    """The name of the criterion that a score's signature speaks of."""
    return signature.prompt.name.partition("+")[2] if signature.prompt else ""


def score_label(signature: str, samples: int, methods: Iterable[str]) -> str:
    """What made scores, in print.

    Args:
        signature: printed, without the trial.
        samples: trials that make one score together.
        methods: what the scores are computed from, in any order.
    """
    mean = f"mean of {samples} " if samples > 1 else ""
    return f"{signature}|score:{mean}{'+'.join(sorted(methods)) or 'none'}"


def score_metrics(criterion: str) -> tuple[Metric, Metric]:
    """The two metrics of a criterion: its score, and ``NAME:pass``."""
    return (
        _metric(criterion, "score", "score by the criterion's scale", default=True),
        _metric(criterion, PASS, "1 if the score reaches the threshold, else 0", default=False),
    )


def is_score_metric(metric: Metric) -> bool:
    """Whether a metric is one of :func:`score_metrics`."""
    return metric.compute is _of_no_label


def split_scores(
    outcomes: Iterable[AnyOutcome], scores: list[ScoreOutcome]
) -> Iterator[AnyOutcome]:
    """Pass on what is no score, and put the scores on a list.

    A row that could not even be read is taken for what the first of the others is.

    Args:
        outcomes: of any kind.
        scores: the list; whole when all was passed on.
    """
    unread: list[LabelFailure] = []
    scored: bool | None = None
    for outcome in outcomes:
        if isinstance(outcome, LabelFailure) and outcome.signature is None:
            unread.append(outcome)
            continue
        found = list(records_of([outcome], "score"))
        scored = bool(found) if scored is None else scored
        scores += found
        if not found:
            yield outcome
    if scored:
        scores += unread
    else:
        yield from unread


def measure_scores(outcomes: Iterable[ScoreOutcome]) -> dict[str, list[MetricsRow]]:
    """Measure scores: the rows of each criterion, by its name.

    Where several trials make one score together, it is their mean, and it is undefined
    (``missing_samples``) where not all of them are there. A row that could not even be read fails
    by every criterion.
    """
    sheet = _Sheet(outcomes)
    return {name: list(sheet.rows(name)) for name in sheet.names}


def summarize_scores(
    outcomes: Iterable[ScoreOutcome], by: str | None = None, *, intervals: Intervals | None = None
) -> list[SummaryRow]:
    """Summarise scores and passes of each criterion, each way of scoring and each repeat apart.

    Args:
        outcomes: scores and failures.
        by: name of a metadata column.
        intervals: how intervals of the means are found; by default there are none.

    Raises:
        UsageError: no row has the column.
    """
    return [
        row
        for name, rows in measure_scores(outcomes).items()
        for row in summarize(rows, score_metrics(name), by, intervals=intervals)
    ]


class LengthEffectJSON(TypedDict):
    """One entry of ``labeler length --json``."""

    criterion: str
    records: int
    slope: float | None
    low: float | None
    high: float | None
    undefined: str | None
    signature: str


@dataclass(frozen=True)
class LengthEffect:
    """Whether longer responses get higher scores.

    Attributes:
        criterion: its name.
        label: printed signature of the scores.
        records: how many have a score.
        slope: change of the score for 1,000 more characters of response.
        low: where the slope's interval begins; ``None`` where it has none.
        high: where it ends.
        undefined: why there is no slope, or no interval; else ``None``.
    """

    criterion: str
    label: str
    records: int
    slope: float | None
    low: float | None = None
    high: float | None = None
    undefined: str | None = None

    def as_json(self, version: str) -> LengthEffectJSON:
        """The published form."""
        return {
            "criterion": self.criterion,
            "records": self.records,
            "slope": self.slope,
            "low": self.low,
            "high": self.high,
            "undefined": self.undefined,
            "signature": f"{self.label}|labeler:{version}",
        }


def length_effects(outcomes: Iterable[ScoreOutcome]) -> list[LengthEffect]:
    """Fit scores to the length of their responses, each criterion and way of scoring apart.

    A slope does not tell a judge that rewards length from responses that are better where they are
    longer: compare it with that of a criterion that length cannot help, or of people's scores.
    """
    return list(_Sheet(outcomes).length_effects())


@dataclass
class _Case:
    """One record under one criterion, in one repeat."""

    records: list[ScoreRecord] = field(default_factory=list)
    failed: LabelFailure | None = None

    def score(self, samples: int) -> Ratio:
        if len(self.records) < samples:
            return Ratio.missing("missing_samples")
        total = sum(map(score_value, self.records), Fraction(0))
        whole = total.numerator if total.denominator == 1 else total
        return Ratio(whole, len(self.records))


@dataclass
class _Way:
    """Scores of one criterion that were given in one way."""

    name: str
    signature: str
    """Printed, without the trial."""
    outcomes: list[tuple[int, ScoreOutcome]] = field(default_factory=list)
    """With the trial of each."""

    @property
    def samples(self) -> int:
        """Trials that make one score together; 1 where the records do not agree on it."""
        said = {o.samples for _, o in self.outcomes if isinstance(o, ScoreRecord)}
        return said.pop() if len(said) == 1 else 1

    @property
    def label(self) -> str:
        """What made the scores, in print."""
        methods = {o.method for _, o in self.outcomes if isinstance(o, ScoreRecord)}
        return score_label(self.signature, self.samples, methods)

    def cases(self) -> dict[int, dict[str, _Case]]:
        """By repeat, then by the row's id."""
        samples, found = self.samples, dict[int, dict[str, _Case]]()
        for trial, outcome in self.outcomes:
            repeat = found.setdefault(trial // samples, {})
            case = repeat.setdefault(outcome.id, _Case())
            if isinstance(outcome, LabelFailure):
                case.failed = case.failed or outcome
            else:
                case.records.append(outcome)
        return dict(sorted(found.items()))

    def label_of(self, repeat: int) -> str:
        """The same with the number of a repeat, counted from 0, but for the first."""
        return f"{self.label}|repeat:{repeat}" if repeat else self.label


class _Sheet:
    """Scores, sorted by criterion and by what made them."""

    def __init__(self, outcomes: Iterable[ScoreOutcome]) -> None:
        self._ways: dict[tuple[str, str], _Way] = {}
        self._unread: list[LabelFailure] = []
        for outcome in outcomes:
            if outcome.signature is None:
                self._unread += [outcome] if isinstance(outcome, LabelFailure) else []
                continue
            name = criterion_name(outcome.signature)
            made_by = str(outcome.signature.model_copy(update={"trial": 0}))
            way = self._ways.setdefault((name, made_by), _Way(name, made_by))
            way.outcomes.append((outcome.signature.trial, outcome))

    @property
    def names(self) -> list[str]:
        """The criteria, in order of appearance."""
        return list(dict.fromkeys(name for name, _ in self._ways))

    def _ways_of(self, name: str) -> Iterator[_Way]:
        return (way for way in self._ways.values() if way.name == name)

    def rows(self, name: str) -> Iterator[MetricsRow]:
        """Every row of a criterion."""
        for way in self._ways_of(name):
            for repeat, cases in way.cases().items():
                for id, case in cases.items():  # noqa: A001 - the field's name
                    yield _row(name, id, case, way.label_of(repeat), way.samples)
        for failure in self._unread:
            yield _row(name, failure.id, _Case(failed=failure), None, 1)

    def length_effects(self) -> Iterator[LengthEffect]:
        """Slopes on length."""
        for way in self._ways.values():
            for repeat, cases in way.cases().items():
                points = [
                    (_length(case.records[0]), score)
                    for case in cases.values()
                    if (score := _known(case, way)) is not None
                ]
                yield _length_effect(way.name, way.label_of(repeat), points)


def _known(case: _Case, way: _Way) -> float | None:
    return None if case.failed else case.score(way.samples).value


def _row(
    name: str,
    id: str,  # noqa: A002 - the field's name
    case: _Case,
    label: str | None,
    samples: int,
) -> MetricsRow:
    score, passed = score_metrics(name)
    versions = f"metrics:{score.id}.v{score.version},{passed.id}.v{passed.version}"
    if case.failed:
        missing = Ratio.missing(f"failed:{case.failed.reason}")
        values = {score.id: missing, passed.id: missing}
        reason = case.failed.reason
        return MetricsRow(id, values, label, versions, reason, case.failed.metadata)
    value = case.score(samples)
    record = case.records[0]
    flag = value
    if value.undefined is None:
        mean = Fraction(value.numerator or 0) / (value.denominator or 1)
        flag = Ratio.flag(passes(mean, record))
    metadata: dict[str, Any] = {QUESTION: record.example.question, **record.example.metadata}
    return MetricsRow(id, {score.id: value, passed.id: flag}, label, versions, metadata=metadata)


def _length(record: ScoreRecord) -> float:
    """Thousands of characters of the response."""
    return sum(len(sentence.text) for sentence in record.example.response) / CHARACTERS


def _length_effect(name: str, label: str, points: Sequence[tuple[float, float]]) -> LengthEffect:
    from labeler.calculators.statistics.intervals import Undefined  # noqa: PLC0415 - the same
    from labeler.calculators.statistics.slope import fit_slope  # noqa: PLC0415 - numpy takes its time to load

    line = fit_slope([x for x, _ in points], [y for _, y in points])
    if isinstance(line, Undefined):
        return LengthEffect(name, label, len(points), None, undefined=line.reason)
    if isinstance(line.interval, Undefined):
        reason = line.interval.reason
        return LengthEffect(name, label, len(points), line.slope, undefined=reason)
    ends = line.interval.low, line.interval.high
    return LengthEffect(name, label, len(points), line.slope, *ends)


def _metric(name: str, definition: str, formula: str, *, default: bool) -> Metric:
    return Metric(
        name=name,
        definition=definition,
        version=1,
        higher_is_better=True,
        needs=("score",),
        source="rubric judge; G-Eval, arXiv 2303.16634",
        formula=formula,
        compute=_of_no_label,
        default=default,
        bounded=definition == PASS,
    )


def _of_no_label(_: Tally) -> Ratio:
    """What the metric of a criterion is for a label."""
    return Ratio.missing("needs_scores")
