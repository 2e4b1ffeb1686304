"""Assertions on metrics for your own tests, with any test runner.

For example::

    from labeler.testing import assert_metric

    def test_answers_keep_to_their_sources():
        assert_metric("labels.jsonl", "adherence", at_least=0.9, on="interval")
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from labeler.calculators import Intervals, MetricsRow
from labeler.calculators.outcomes import stored_outcomes
from labeler.calculators.summary import group_name
from labeler.comparing.gates import (
    Demand,
    On,
    Verdict,
    check_rows,
    counted,
    measure_gates,
    shown,
    shown_interval,
)
from labeler.labels.record import AnyOutcome
from labeler.sentences.characters import visible

_SHOWN_RECORDS = 5


def assert_metric(
    labels: str | Path | Iterable[AnyOutcome],
    metric: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    on: On = "point",
    by: str | None = None,
    intervals: Intervals | None = None,
) -> None:
    """Assert that the mean of a metric keeps to one or two thresholds.

    Args:
        labels: a file of labels, scores or similarity, a store folder, or outcomes, as returned by
            :func:`labeler.label` and :func:`labeler.score`.
        metric: id of one metric, such as ``adherence``; for scores the criterion's name, such as
            ``rubric_faithfulness``, or ``rubric_faithfulness:pass``.
        at_least: lowest allowed mean.
        at_most: highest allowed mean.
        on: ``point`` tests the mean, ``interval`` the worse end of its interval.
        by: name of a metadata column; the mean of each of its groups is tested.
        intervals: settings of the intervals; ``labeler.calculators.Intervals(group="question")``
            draws the records of a question together.

    Raises:
        AssertionError: a threshold is missed, or no record has a value; the message gives value,
            interval, counts, and the ids of the worst records.
        UsageError: the labels cannot be read, the metric is unknown, or no threshold is given.
    """
    __tracebackhide__ = True  # pytest then shows the test's own line
    intervals = intervals or Intervals()
    demands = [
        Demand(metric, threshold, lower)
        for threshold, lower in ((at_least, True), (at_most, False))
        if threshold is not None
    ]
    outcomes = stored_outcomes(labels) if isinstance(labels, str | Path) else labels
    gates, measured = measure_gates(outcomes, demands, column=intervals.group or "")
    rows = list(measured)
    missed = [
        verdict
        for verdict in check_rows(rows, gates, on=on, by=by, intervals=intervals)
        if not verdict.passed
    ]
    if missed:
        text = "\n".join(line for verdict in missed for line in _lines(verdict, rows, by))
        raise AssertionError(visible(text))


def _lines(verdict: Verdict, rows: Sequence[MetricsRow], by: str | None) -> Iterator[str]:
    """Yield the threshold, the mean and its interval, and the worst records."""
    row = verdict.row
    if row is None:
        yield f"{verdict.gate.demand}: {verdict.finding}"
        return
    where = "" if row.group is None else f" in {by} {row.group}"
    yield f"{verdict.gate.demand}{where}: mean {shown(row.mean)}, {shown_interval(row)}"
    yield f"  {counted(row)} by {row.label or 'no label'}"
    worst = _worst(verdict, rows, by)[:_SHOWN_RECORDS]
    if worst:
        yield "  worst: " + ", ".join(f"{name!r} {value:.4f}" for name, value in worst)


def _worst(verdict: Verdict, rows: Sequence[MetricsRow], by: str | None) -> list[tuple[str, float]]:
    """Return ids and values of records that miss the threshold, worst first."""
    gate, summary = verdict.gate, verdict.row
    found: list[tuple[str, float]] = []
    for row in rows:
        if summary is None or (row.label, group_name(row, by)) != (summary.label, summary.group):
            continue
        ratio = row.metrics.get(gate.metric.id)
        value = ratio.value if ratio else None
        if value is not None and not gate.kept_by(value):
            found.append((row.id, value))
    return sorted(found, key=lambda pair: pair[1], reverse=not gate.at_least)
