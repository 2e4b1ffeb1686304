"""Assertions on metrics for your own tests, with any test runner.

For example::

    from labeler.testing import assert_metric

    def test_answers_keep_to_their_sources():
        assert_metric("labels.jsonl", "adherence", at_least=0.9, on="interval")
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from labeler.calculators import Intervals
from labeler.calculators.outcomes import as_outcomes
from labeler.comparing.drops import check_drops
from labeler.comparing.gates import (
    Demand,
    On,
    RecordValue,
    Verdict,
    check_rows,
    counted,
    measure_gates,
    rows_by_group,
    shown,
    shown_interval,
)
from labeler.comparing.missing import DEFAULT_ALLOWED, Allowed
from labeler.errors import UsageError
from labeler.labels.answering import AnsweringModels
from labeler.labels.record import AnyOutcome
from labeler.sentences.characters import visible

_SHOWN_RECORDS = 5


def assert_metric(
    labels: str | Path | Iterable[AnyOutcome],
    metric: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    against: str | Path | Iterable[AnyOutcome] | None = None,
    max_drop: float | None = None,
    on: On = "point",
    by: str | None = None,
    intervals: Intervals | None = None,
    max_failed: float = DEFAULT_ALLOWED.failed,
    max_undefined: float = DEFAULT_ALLOWED.undefined,
    one_model: bool = False,
) -> None:
    """Assert that the mean of a metric keeps to one or two thresholds.

    Args:
        labels: a file of labels, scores or similarity, a store folder, or outcomes, as returned by
            :func:`labeler.label` and :func:`labeler.score`.
        metric: id of one metric, such as ``adherence``; for scores the criterion's name, such as
            ``rubric_faithfulness``, or ``rubric_faithfulness:pass``.
        at_least: lowest allowed mean.
        at_most: highest allowed mean.
        against: the same of another run, such as that of the main branch. Records are paired by
            id; those without a pair count as failed.
        max_drop: the most by which the mean of the pairs may be worse than in ``against``.
        on: ``point`` tests the mean, ``interval`` the worse end of its interval.
        by: name of a metadata column; the mean of each of its groups is tested.
        intervals: settings of the intervals; ``labeler.calculators.Intervals(group="topic")``
            takes the records of a topic as one observation.
        max_failed: largest allowed share of failed rows, from 0 to 1.
        max_undefined: largest allowed share of rows that are undefined for a reason about the
            record, from 0 to 1.
        one_model: True if only the model that was asked for may have answered, at one host.

    Raises:
        AssertionError: a threshold is missed, another model answered, too many rows have no value,
            or none has one; the message gives value, interval, counts, and the ids of the worst
            records.
        UsageError: the labels cannot be read, the metric is unknown, no threshold is given, or a
            share is out of range.
    """
    __tracebackhide__ = True  # pytest then shows the test's own line
    intervals, allowed = intervals or Intervals(), Allowed(max_failed, max_undefined)
    demands = [
        Demand(metric, threshold, lower)
        for threshold, lower in ((at_least, True), (at_most, False))
        if threshold is not None
    ]
    if (against is None) is not (max_drop is None):
        raise UsageError("max_drop goes with against, which is what the mean may drop from")
    models = AnsweringModels()
    outcomes = list(models.watch(as_outcomes(labels)))
    lines = models.faults() if one_model else []
    if demands or not (max_drop is not None or one_model):
        gates, measured = measure_gates(outcomes, demands, column=intervals.group or "")
        rows = list(measured)
        grouped = rows_by_group(rows, by)
        for verdict in check_rows(rows, gates, on=on, by=by, intervals=intervals, allowed=allowed):
            if not verdict.passed:
                lines += _lines(verdict.with_records(grouped.get(verdict.group, [])), by)
    if against is not None and max_drop is not None:
        drop = [Demand(metric, max_drop, at_least=False)]
        (gates, new), (_, base) = (
            measure_gates(side, drop, column=intervals.group or "")
            for side in (outcomes, as_outcomes(against))
        )
        limits = [(gates[0].metric, max_drop)]
        for lost in check_drops(
            list(new), list(base), limits, on=on, by=by, intervals=intervals, allowed=allowed
        ):
            if not lost.passed:
                where = "" if lost.group is None else f" in {by} {lost.group}"
                lines.append(f"{lost.demand}{where}: {lost.finding}")
                lines += _worst(lost.records)
    if lines:
        raise AssertionError(visible("\n".join(lines)))


def _lines(verdict: Verdict, by: str | None) -> Iterator[str]:
    """Yield the threshold, the mean and its interval, and the worst records."""
    row = verdict.row
    if row is None:
        yield f"{verdict.gate.demand}: {verdict.finding}"
        return
    where = "" if row.group is None else f" in {by} {row.group}"
    yield f"{verdict.gate.demand}{where}: mean {shown(row.mean)}, {shown_interval(row)}"
    yield f"  {counted(row)} by {row.label or 'no label'}"
    yield from (f"  {share}" for share in verdict.exceeded)
    yield from _worst(verdict.records)


def _worst(records: Sequence[RecordValue]) -> Iterator[str]:
    """Name the records that miss the threshold themselves, worst first."""
    if missed := [one for one in records if one.missed]:
        shown = ", ".join(f"{one.id!r} {one.shown}" for one in missed[:_SHOWN_RECORDS])
        yield f"  worst: {shown}"
