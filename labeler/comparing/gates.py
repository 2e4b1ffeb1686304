"""Gates: thresholds that the mean of a metric must keep, with few rows without a value.

Annotations are evaluated, as in :mod:`labeler.data.options`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, islice, product
from typing import Annotated, Literal, NamedTuple, get_args

from labeler.calculators import METRICS, Intervals, Metric, MetricsRow, SummaryRow, select_metrics
from labeler.calculators.measuring import collected_rows, split_collected
from labeler.calculators.metrics_row import DistinctRows
from labeler.calculators.outcomes import measure_outcomes
from labeler.calculators.ratio import counts_in_gates
from labeler.calculators.registry import Collected
from labeler.calculators.summary import CountedRows
from labeler.data.options import Option
from labeler.errors import UnknownName, UsageError, for_caller, number_in
from labeler.labels.record import AnyOutcome
from labeler.sentences.display import have, plural, reason_counts

On = Literal["point", "interval"]
"""The value that a gate checks: the mean, or the worse end of its interval."""

UNPAIRED = {
    "only_in_new": "only in the new labels",
    "only_in_base": "only in the base",
    "other_question": "with another question in the base",
}
"""Reasons why a record has no pair in the base, in words."""
IN_BASE = "_in_base"
"""Ends the reason of a row without a value in the base alone."""
MOST_LACKING = 0.05
"""Default of the largest shares of failed rows, and of undefined ones, with which a gate passes."""


@dataclass(frozen=True, kw_only=True)
class GateSettings:
    """How gates are checked.

    Undefined rows count by their reason, see :data:`labeler.calculators.ratio.UNDEFINED_REASONS`.

    Raises:
        UsageError: ``on`` is unknown, or a share is out of range.
    """

    on: Annotated[
        On,
        Option("Value to check: the mean, or the worse end of its interval."),
    ] = "point"
    by: Annotated[str | None, Option("Check each group of this metadata column.")] = None
    intervals: Annotated[
        Intervals | None, Option("Settings of the intervals, by default of 95 %.", cli=False)
    ] = None
    max_failed: Annotated[
        float, Option("Highest share of failed rows that passes, from 0 to 1.")
    ] = MOST_LACKING
    max_undefined: Annotated[
        float, Option("Highest share of undefined rows that passes, from 0 to 1.")
    ] = MOST_LACKING
    one_model: Annotated[bool, Option("Miss if another model or several hosts answered.")] = False
    every_record: Annotated[
        bool, Option("Keep all records of each verdict, not only the few worst.", cli=False)
    ] = False

    def __post_init__(self) -> None:
        number_in("max_failed", self.max_failed, 0, 1)
        number_in("max_undefined", self.max_undefined, 0, 1)
        if not isinstance(self.on, str) or self.on not in get_args(On):
            raise UsageError(f"on must be 'point' or 'interval', got {self.on!r:.40}")

    @property
    def drawn(self) -> Intervals | None:
        """The settings of the intervals to compute."""
        return self.intervals or (Intervals() if self.on == "interval" else None)

    def exceeded(self, row: SummaryRow) -> Iterator["Excess"]:
        """Yield each share of rows without a value that is too large."""
        counting = {
            reason: count
            for reason, count in row.undefined.items()
            if counts_in_gates(reason.removesuffix(IN_BASE))
        }
        for name, counts, most in (
            ("failed", row.failed, self.max_failed),
            ("undefined", counting, self.max_undefined),
        ):
            # Compared as the decimals that were written.
            if sum(counts.values()) > row.rows * Fraction(str(float(most))):
                others = tuple(definitions_with_values(row.metric, counts))
                yield Excess(name, counts, row.rows, most, others)


class Excess(NamedTuple):
    """A share of rows without a value that is too large.

    Attributes:
        name: ``failed`` or ``undefined``.
        counts: the rows by reason.
        rows: number of all rows.
        most: the largest share that passes.
        others: definitions of the metric that have a value for a reason, in words.
    """

    name: str
    counts: Mapping[str, int]
    rows: int
    most: float
    others: tuple[str, ...] = ()

    @property
    def details(self) -> str:
        """The share with its reasons."""
        count = sum(self.counts.values())
        of = plural(self.rows, "row")
        why = f"{count:,} of {of} {self.name}, more than {self.most:.15g} of them"
        option = f"--max-{self.name} allows more"
        return for_caller("; ".join((f"{why}: {reason_counts(self.counts)}", option, *self.others)))

    def __str__(self) -> str:
        """Return the share in plain words, and the option that sets it."""
        count = sum(self.counts.values())
        what = "failed" if self.name == "failed" else f"{have(count)} no value"
        unpaired = {UNPAIRED[one]: n for one, n in self.counts.items() if one in UNPAIRED}
        if unpaired:
            others = count - sum(unpaired.values())
            reasons = unpaired | ({"failed on a side": others} if others else {})
            what = f"{have(count)} no pair ({reason_counts(reasons)})"
        return for_caller(
            f"{count:,} of {plural(self.rows, 'record')} {what}, "
            f"at most {100 * self.most:.15g} % may (--max-{self.name})"
        )


def definitions_with_values(metric: Metric, reasons: Iterable[str]) -> Iterator[str]:
    """Name a definition of the metric for each reason for which it prescribes a value."""
    for reason in dict.fromkeys(reason.removesuffix(IN_BASE) for reason in reasons):
        for other in METRICS.values():
            value = dict(other.conventions).get(reason)
            if other.name == metric.name and value is not None:
                yield f"{other.id} counts {reason} as {value:g}"
                break


@dataclass(frozen=True)
class Gate:
    """A threshold for the mean of one metric.

    Attributes:
        metric: the metric.
        threshold: the least or greatest mean that passes.
        at_least: whether the mean must not be lower; otherwise it must not be higher.
        of_drop: whether the mean is the mean of the drop from a base, or of the rise where lower is
            better.
    """

    metric: Metric
    threshold: float
    at_least: bool
    of_drop: bool = False

    def kept_by(self, value: float) -> bool:
        """Return whether a value passes."""
        return value >= self.threshold if self.at_least else value <= self.threshold

    @property
    def demand(self) -> str:
        """The gate in words: ``adherence at least 0.9``, ``adherence drop at most 0.02``."""
        change = (" drop" if self.metric.higher_is_better else " rise") * self.of_drop
        bound = "least" if self.at_least else "most"
        return f"{self.metric.id}{change} at {bound} {self.threshold:.15g}"


@dataclass(frozen=True)
class Demand:
    """A gate whose metric is looked up later, when the outcomes' metrics are known.

    Attributes:
        metric: the id of one metric, such as ``adherence``, or of another kind of records: a
            criterion's name, or ``NAME:pass``, of scores.
        threshold: the least or greatest mean that passes.
        at_least: whether the mean must not be lower, or higher; ``None`` for the direction in which
            the metric is better.
        of_drop: whether it is the mean drop from a base.
    """

    metric: str
    threshold: float
    at_least: bool | None = None
    of_drop: bool = False

    def gate(self, own: Sequence[Metric] = ()) -> Gate:
        """Return the gate.

        Args:
            own: metrics of the outcomes themselves, such as criteria with scores. An id of these
                means them, even if another metric has it.

        Raises:
            UnknownName: there is no such metric.
            UsageError: the id names several metrics, or the threshold is not a finite number,
                or is none of its values.
        """
        chosen, threshold = _named(self.metric, own), number_in(self.metric, self.threshold)
        if len(chosen) != 1:
            raise UsageError(f"a gate is on one metric: {self.metric!r} names {len(chosen)}")
        low, high = chosen[0].range or (threshold, threshold)
        if self.of_drop and chosen[0].range:
            low, high = 0, high - low
        if not low <= threshold <= high:
            raise UsageError(
                f"gate on {self.metric!r}: {threshold:g} is not a threshold: values are from "
                f"{low:g} to {high:g}"
            )
        at_least = chosen[0].higher_is_better if self.at_least is None else self.at_least
        return Gate(chosen[0], threshold, at_least, self.of_drop)


def _named(name: str, own: Sequence[Metric]) -> tuple[Metric, ...]:
    """Return the metrics of an id; the error suggests registered ones and the outcomes' own."""
    if found := tuple(metric for metric in own if name in metric.names):
        return found
    try:
        return select_metrics([name], kind=None)
    except UnknownName as error:
        ids = sorted(metric.id for metric in own)
        is_module = ":" in name and name.partition(":")[0] not in ids
        message = error if is_module else METRICS.unknown(name, ids)
        of_outcomes = f"; of these records: {', '.join(ids)}" if ids else ""
        raise UnknownName(f"{message}{of_outcomes}") from error


def measure_gates(
    outcomes: Iterable[AnyOutcome] | CountedRows, demands: Sequence[Demand]
) -> tuple[list[Gate], DistinctRows[MetricsRow]]:
    """Return the gates of demands, and the rows of outcomes of every kind with their metrics.

    Args:
        outcomes: records and failures; or a numbers file.
        demands: on registered metrics, and on the outcomes' own, such as criteria with scores.

    Raises:
        UnknownName: a metric is none of these.
        UsageError: an id names several metrics, a threshold is not a finite number, or bad values
            would pass.
    """
    if isinstance(outcomes, CountedRows):
        gates = _gates(demands, {})
        ids = dict.fromkeys(gate.metric.id for gate in gates)
        return gates, DistinctRows(outcomes.chosen(ids) if ids else ())
    found: dict[str, Collected] = {}
    others = split_collected(outcomes, found)
    # Outcomes are read one at a time unless only a record further on can have a name.
    first: list[AnyOutcome] = list(islice(others, 1))
    try:
        gates = _gates(demands, found)
    except UnknownName:
        first += others
        gates = _gates(demands, found)
    asked = tuple(dict.fromkeys(gate.metric for gate in gates))
    rows = measure_outcomes(chain(first, others), asked)
    return gates, DistinctRows(chain(rows, collected_rows(found, asked)))


def _gates(demands: Sequence[Demand], found: Mapping[str, Collected]) -> list[Gate]:
    """Return the gates of demands; reject empty bands and gates that bad values would pass."""
    own = [metric for collected in found.values() for metric in collected.metrics()]
    gates = [demand.gate(own) for demand in demands]
    for low, high in product(gates, gates):
        same = low.metric == high.metric and not (low.of_drop or high.of_drop)
        if same and low.at_least > high.at_least and low.threshold > high.threshold:
            raise UsageError(
                f"gates on {low.metric.id!r}: no mean is at least {low.threshold:.15g} and at "
                f"most {high.threshold:.15g}; give a band such as --min {low.metric.id}="
                f"{high.threshold:.15g} --max {low.metric.id}={low.threshold:.15g}"
            )
    for gate in filter(lambda gate: _has_known_direction(gate.metric), _lonely(gates)):
        better, wrong, right = ("lower", "lowest", "highest: --max")
        if gate.metric.higher_is_better:
            better, wrong, right = ("higher", "highest", "lowest: --min")
        raise UsageError(
            f"gate on {gate.metric.id!r}: {better} is better, so a {wrong} mean passes bad "
            f"labels; give the {right} {gate.metric.id}={gate.threshold:.15g}"
        )
    return gates


def doubts(gates: Iterable[Gate]) -> list[str]:
    """Return warnings about gates that may be meant in the other direction."""
    demands = dict.fromkeys(gate.demand for gate in _lonely(gates))
    return [f"{one}: higher is better, so at least may be meant, not at most" for one in demands]


def _lonely(gates: Iterable[Gate]) -> list[Gate]:
    """Return gates that worse values pass and better ones do not, unless they end a band."""
    sided = [
        (gate, gate.at_least is gate.metric.higher_is_better or gate.of_drop) for gate in gates
    ]
    guarded = {gate.metric for gate, is_guard in sided if is_guard and not gate.of_drop}
    return [gate for gate, is_guard in sided if not is_guard and gate.metric not in guarded]


def _has_known_direction(metric: Metric) -> bool:
    """Return False where higher is better by a default that the author did not think of."""
    return not metric.higher_is_better or (
        METRICS.get(metric.id) is metric and metric.compute.__module__.startswith("labeler.")
    )
