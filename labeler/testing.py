"""Assertions on metrics for your own tests, with any test runner.

For example::

    from labeler.testing import assert_metric

    def test_answers_keep_to_their_sources():
        assert_metric("labels.jsonl", "adherence", at_least=0.9, on="interval")
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from labeler.calculators import Intervals
from labeler.calculators.outcomes import measurable
from labeler.catalog import named_keywords
from labeler.comparing.checking import check_gates
from labeler.comparing.gates import MOST_LACKING, Demand, GateSettings, On
from labeler.labels.record import AnyOutcome
from labeler.sentences.characters import visible


@named_keywords
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
    max_failed: float = MOST_LACKING,
    max_undefined: float = MOST_LACKING,
    one_model: bool = False,
) -> None:
    """Assert that the mean of a metric keeps to one or two thresholds.

    Args:
        labels: a file of labels, scores, similarity or numbers, a store, or outcomes, as
            :func:`labeler.label` and :func:`labeler.score` return them.
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
    bounds = {(True, False): at_least, (False, False): at_most, (False, True): max_drop}
    demands = [Demand(metric, mean, *how) for how, mean in bounds.items() if mean is not None]
    settings = GateSettings(
        on=on,
        by=by,
        intervals=intervals or Intervals(),
        max_failed=max_failed,
        max_undefined=max_undefined,
        one_model=one_model,
    )
    base = None if against is None else measurable(against)
    missed = check_gates(measurable(labels), demands, base, settings).results.missed
    if missed:
        raise AssertionError(visible("\n".join(one.details for one in missed)))
