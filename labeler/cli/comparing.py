"""The ``compare`` command and its tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from labeler.cli.options import expand_options
from labeler.cli.reading import MetricIds
from labeler.cli.sides import A, B, check_sides, side_lines
from labeler.cli.terminal import LineWriter, notify_repeated, print_grids, print_json, print_lines
from labeler.comparing.options import SideOptions
from labeler.sentences.display import NONE, Column, Grid, arrow, reason_counts
from labeler.version import __version__

if TYPE_CHECKING:
    from labeler.calculators.statistics.intervals import Interval, Undefined
    from labeler.calculators.statistics.paired import PValue
    from labeler.comparing.comparison import Comparison, MetricComparison, Moved

_LEAST_SHOWN = 0.0001
_METHODS = {"exact": "exact", "binomial": "exact", "monte_carlo": "drawn"}
"""The method of a p value in one word."""


@expand_options
def compare(
    a: A,
    b: B,
    *,
    metrics: MetricIds = None,
    sides: SideOptions,
    as_json: Annotated[bool, typer.Option("--json", help="All figures as JSON.")] = False,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    resamples: Annotated[
        int, typer.Option(help="Samples and sign assignments drawn for each metric.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same figures.")] = 0,
    top: Annotated[int, typer.Option(help="Records that are named for each metric.")] = 3,
) -> None:
    """Compare the metrics of two sets of labels, paired by record."""
    from labeler import api
    from labeler.comparing import compare as comparing

    check_sides(a, b, sides)
    comparison = comparing.compare(
        api.checked_outcomes(a),
        api.checked_outcomes(b),
        metrics,
        **asdict(sides),
        names=(a, b),
        resamples=resamples,
        level=level,
        seed=seed,
        top=top,
    )
    notify_repeated(comparison.counts.duplicates)
    if as_json:
        print_json(comparison.as_json(__version__))
    else:
        _print_comparison(comparison)


def _print_comparison(comparison: Comparison) -> None:
    """Print the sides, and for each group the differences, the tests and the largest changes."""
    from labeler.calculators.summary_table import alias_note

    out = LineWriter()
    for letter, side in (("A", comparison.a), ("B", comparison.b)):
        print_lines([*side_lines(letter, side.name, len(side.labels), side.signatures)])
    print_lines([*_records(comparison)])
    for group in dict.fromkeys(row.group for row in comparison.rows):
        part = [row for row in comparison.rows if row.group == group]
        if group is not None:
            print_lines(["", f"{comparison.by}: {group}"])
        grids = _figures(part, comparison).split(out.width)
        print_grids(out, *grids)
        print_lines([*_notes(part), *_inconsistencies(part), *_movers(part)])
    aliases = alias_note(row.metric for row in comparison.rows)
    print_lines(["", *aliases, *_reading_aid(comparison)])


def _records(comparison: Comparison) -> Iterator[str]:
    """Yield the numbers of records that are compared and of the others."""
    counts = comparison.counts
    yield (
        f"{counts.pairs} records labelled in both; {counts.only_a} only in A, {counts.only_b} only "
        f"in B; failed: {counts.failed_a} in A, {counts.failed_b} in B, {counts.failed_both} in "
        "both"
    )
    if other_question := sum(counts.left_out.values()):
        yield (
            f"{other_question} records ask another question in B than in A: not compared; "
            "are their ids the same rows?"
        )
    if not comparison.same_judge:
        yield (
            "A and B were labelled by different judges, prompts or thresholds: B is higher or "
            "lower, not better or worse; labeler diff shows where the labels differ"
        )
    if comparison.same_sentences:
        yield (
            "A and B label the very same sentences: differences are between labels, and 'better' "
            "means better marks, not a better system"
        )
        return
    unlike = ", ".join(f"{count} with other {part}" for part, count in counts.unlike.items())
    yield f"{counts.same} of them are the very same sentences, {unlike}: there flips are not named"


def _figures(rows: Sequence[MetricComparison], comparison: Comparison) -> Grid:
    """Return all figures, to be divided into as many tables as the width requires."""
    heads = ["pairs", "A", "B", "B-A", f"{100 * comparison.level:g} % interval", "B is"]
    heads += ["p", "p Holm", "McNemar", "detectable", "undefined pairs"]
    columns = [Column("metric", words=True), *(Column(h, words=h == "B is") for h in heads)]
    longest = max(len(row.metric.id) for row in rows)
    tests = comparison.tests
    return Grid(columns, [[_directed(row, longest), *_cells(row, tests)] for row in rows])


def _directed(row: MetricComparison, longest: int) -> str:
    """Return a metric's name and direction, aligned with those of the others."""
    return f"{row.metric.id:<{longest}} {arrow(higher_is_better=row.metric.higher_is_better)}"


def _cells(row: MetricComparison, tests: int) -> list[str]:
    verdict: str = row.verdict
    if verdict == "not significant after Holm":
        verdict += f" ({tests} tests)"
    return [
        str(row.pairs),
        _decimal(row.mean_a),
        _decimal(row.mean_b),
        _signed(row.difference),
        _interval(row.interval),
        verdict,
        f"{_p(row.p)} {_method(row.p)}".rstrip(),
        _p(row.p_adjusted),
        _p(row.mcnemar),
        _decimal(row.detectable),
        str(row.undefined_pairs),
    ]


def _notes(rows: Sequence[MetricComparison]) -> Iterator[str]:
    """Yield the reasons of missing values, and the unit of resampling if not records."""
    for row in rows:
        for letter, reasons in (("A", row.undefined_a), ("B", row.undefined_b)):
            if reasons:
                yield f"undefined {row.metric.id} in {letter}: {reason_counts(reasons)}"
        found = row.definedness
        if found.differs:
            yield (
                f"{row.metric.id} has a value only in A for {found.only_a} pairs, only in B for "
                f"{found.only_b}: p {_p(found.p)}, p Holm {_p(found.p_adjusted)}"
            )
    if shared := {row.questions for row in rows if row.questions is not None}:
        yield (
            f"grouped by question ({max(shared)} groups); McNemar's test, which needs independent "
            "pairs, is left out"
        )


def _inconsistencies(rows: Sequence[MetricComparison]) -> Iterator[str]:
    """Yield what metrics of retrieval show about the judge where both sides retrieved the same."""
    for row in rows:
        found = row.judge_inconsistency
        if found is None:
            continue
        if found.flipped:
            lean = "" if found.lean is None else f", lean to sentences used {found.lean:+.3f}"
            flips = f", {found.flipped:.1%} of {found.sentences} sentences flipped{lean}"
        else:
            flips = ""
        yield (
            f"judge inconsistency of {row.metric.id}: {found.pairs} pairs with the same question "
            f"and documents, no evidence about retrieval; mean absolute difference "
            f"{found.mean_absolute_difference:.4f}, {found.one_sided} with a value on one side only"
            f"{flips}"
        )


def _movers(rows: Sequence[MetricComparison]) -> Iterator[str]:
    moved = [row for row in rows if row.moved]
    if moved:
        yield "moved most, from A to B:"
    for row in moved:
        yield f"  {row.metric.id}"
        for record in row.moved:
            yield f"    {record.id}: {record.a:.4f} → {record.b:.4f}{_flips(record)}"


def _flips(record: Moved) -> str:
    """Return `` (relevant +0b -1a, supported -c)``, or an empty string."""
    parts = [
        " ".join(
            [flip.field, *(f"+{key}" for key in flip.gained), *(f"-{key}" for key in flip.lost)]
        )
        for flip in record.flips or ()
    ]
    return f" ({', '.join(parts)})" if parts else ""


def _reading_aid(comparison: Comparison) -> Iterator[str]:
    from labeler.calculators.statistics.intervals import Interval
    from labeler.calculators.summary_table import small_sample_note

    found = (row.interval for row in comparison.rows)
    yield from small_sample_note(one for one in found if isinstance(one, Interval))
    words = "better or worse" if comparison.same_judge else "higher or lower"
    yield (
        f"B is {words} where p Holm, over {comparison.tests} tests together, is at most "
        f"{1 - comparison.level:.4g}; intervals are those of p, before Holm; no evidence "
        "does not mean that A and B are alike: see detectable"
    )
    yield (
        "p: sign-flip permutation test; detectable: the true difference that so many pairs would "
        "show with 80 % power, before Holm"
    )
    yield f"{comparison.resamples} resamples|seed:{comparison.seed}|labeler:{__version__}"


def _decimal(figure: float | Undefined) -> str:
    return f"{figure:.4f}" if isinstance(figure, float) else NONE


def _signed(figure: float | Undefined) -> str:
    return f"{figure:+.4f}" if isinstance(figure, float) else NONE


def _interval(figure: Interval | Undefined) -> str:
    from labeler.calculators.statistics.intervals import Interval

    if not isinstance(figure, Interval):
        return NONE
    return f"{figure.low:+.4f} {figure.high:+.4f}{figure.mark}"


def _p(figure: PValue | float | Undefined) -> str:
    from labeler.calculators.statistics.paired import PValue

    value = figure.value if isinstance(figure, PValue) else figure
    if not isinstance(value, float):
        return NONE
    return f"<{_LEAST_SHOWN}" if value < _LEAST_SHOWN else f"{value:.4f}"


def _method(figure: PValue | Undefined) -> str:
    from labeler.calculators.statistics.paired import PValue

    return _METHODS[figure.method] if isinstance(figure, PValue) else ""
