"""Tables of agreement for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from labeler.calculators.rater_agreement import FieldAgreement
from labeler.calculators.statistics.bias_correction import Corrected
from labeler.calculators.statistics.intervals import Interval
from labeler.calculators.summary_table import interval_line, small_sample_note
from labeler.cli.terminal import (
    LineWriter,
    dropped_note,
    print_display,
    print_grids,
    print_groups,
    print_lines,
)
from labeler.comparing.agreement import LabelAgreement
from labeler.comparing.calibration import Calibration
from labeler.comparing.human_agreement import Estimates, PeopleAgreement
from labeler.sentences.display import NONE, Column, number

_MORE = "Coefficients, ranges, settings and warnings: --details."
ALL = "all"
"""Name of all groups together."""


def print_labels(found: LabelAgreement, *, details: bool) -> None:
    """Print the agreement of two label files and the numbers of their records."""
    if not details:
        print_display(found, _MORE)
        return
    LineWriter().write(found.conclusion, bold=True)
    dropped = _print_fields(found.fields)
    print_lines(
        [
            *dropped_note(dropped),
            *_field_notes(found.fields),
            *_small_samples(found.fields),
            *found.records,
            *(f"A: {signature}" for signature in found.signatures_a),
            *(f"B: {signature}" for signature in found.signatures_b),
        ]
    )


def print_people(found: PeopleAgreement, *, details: bool) -> None:
    """Print the agreement of a judge with people, and its means corrected by them."""
    if not details:
        print_display(found, _MORE)
        return
    LineWriter().write("\n".join(found.conclusions), bold=True)
    dropped = _print_fields(found.fields) if found.fields else []
    dropped += _print_estimates(found.estimates) if found.estimates else []
    print_lines(
        [
            *dropped_note(dropped),
            *_field_notes(found.fields),
            *_estimate_notes(found.estimates),
            *_small_samples(found.fields, found.among, found.estimates),
            *_among(found),
            *found.matched.lines(),
            *(f"note: {warning}" for warning in found.warnings),
            *(f"A: {signature}" for signature in found.signatures),
            "B: people",
        ]
    )


def print_calibration(found: Calibration, *, details: bool) -> None:
    """Print the reliability table of each kind of verdict, and thresholds with their results."""
    out = LineWriter()
    out.write("\n".join(found.conclusions), bold=True)
    if not details:
        notes = (f"note: {warning}" for warning in found.warnings)
        print_lines([*_undefined_thresholds(found), *found.matched.lines(), *notes, _MORE])
        return
    columns = [Column(head) for head in ("stated", "verdicts", "mean stated", "people: yes")]
    tables = [
        (
            one.kind,
            [
                [
                    f"{each.low:g} to {each.high:g}",
                    f"{each.verdicts:,}",
                    number(each.stated),
                    number(each.observed),
                ]
                for each in one.bins
                if each.verdicts
            ],
        )
        for one in found.kinds
    ]
    print_groups(out, columns, tables, lambda kind: f"\n{kind}")
    print_grids(out, *found.table.split(out.width))
    print_lines(
        [
            *_grouped_thresholds(found),
            *small_sample_note(one.interval for one in found.kinds),
            *_undefined_thresholds(found),
            *found.matched.lines(),
            *(f"note: {warning}" for warning in found.warnings),
            *(f"A: {signature}" for signature in found.signatures),
        ]
    )


def _grouped_thresholds(found: Calibration) -> Iterator[str]:
    for one in found.kinds:
        if one.questions is not None:
            yield f"{one.kind}: 95 % intervals grouped by question ({one.questions} groups)"


def _undefined_thresholds(found: Calibration) -> Iterator[str]:
    for one in found.kinds:
        if one.balanced.undefined:
            yield f"{one.kind}: people always said the same, so no threshold is best"
        if one.precise.undefined == "not_reached":
            yield f"{one.kind}: no threshold has a precision of {found.precision:g}"


# The field implies the unit.
_FIELD = (Column("field", words=True), Column("of", drop=1, words=True))
_COEFFICIENTS = (Column("kappa"), Column("AC1"), Column("alpha"))


def _print_fields(fields: Sequence[FieldAgreement]) -> list[str]:
    """Print a table for each group, all with the same columns; return the dropped columns."""
    means = (Column("mean A", drop=2), Column("mean B", drop=3))
    columns = [*_FIELD, Column("both", drop=4), Column("agree"), *means, *_COEFFICIENTS]
    groups: dict[str | None, list[list[str]]] = {}
    for one in fields:
        values = (found.value for found in one.by_name.values())
        figures = map(number, (one.raw, one.mean_a, one.mean_b, *values))
        row = [one.field, one.unit, str(one.units), *figures]
        groups.setdefault(one.group, []).append(row)
    return print_groups(LineWriter(), columns, [*groups.items()], _heading(groups))


def _heading(groups: Iterable[str | None]) -> Callable[[str | None], str | None]:
    """Return a function that names a group above its table, if there are groups."""
    if any(group is not None for group in groups):
        return lambda group: group or ALL
    return lambda _: None


_NAMES = {"kappa": "kappa", "ac1": "AC1", "alpha": "alpha"}


def _where(name: str, group: str | None) -> str:
    return name if group is None else f"{name} in {group}"


def _field_notes(fields: Sequence[FieldAgreement]) -> Iterator[str]:
    """Yield intervals, why coefficients say little or are undefined, and units left out."""
    for found in fields:
        where = _where(found.field, found.group)
        yield from _listed_intervals(where, found.intervals, found.questions)
        if found.alpha.caution:
            yield f"{where}: {found.alpha.caution}"
        reasons: dict[str, list[str]] = {}
        for name, coefficient in found.by_name.items():
            if coefficient.undefined:
                reasons.setdefault(coefficient.undefined, []).append(_NAMES[name])
        for reason, names in reasons.items():
            yield f"{where}: {', '.join(names)} undefined ({reason})"
        for why, count in (
            ("ties between annotators", found.tied),
            ("without a verdict on one side", found.left_out - found.tied),
        ):
            if count:
                yield f"{where}: {count} left out, {why}"


def _listed_intervals(
    where: str, intervals: Mapping[str, Interval], questions: int | None
) -> Iterator[str]:
    named = {_NAMES[name]: found for name, found in intervals.items()}
    return interval_line(where, named, questions)


def _small_samples(
    fields: Sequence[FieldAgreement],
    among: Sequence[FieldAgreement] = (),
    estimates: Sequence[Estimates] = (),
) -> Iterator[str]:
    """Yield what the mark of small samples means, if an interval has it."""
    drawn = chain(*(one.intervals.values() for one in fields))
    people = chain(*(one.intervals.values() for one in among))
    corrected = (one.interval for found in estimates for one in found.all)
    return small_sample_note(chain(drawn, people, corrected))


def _print_estimates(estimates: Sequence[Estimates]) -> list[str]:
    """Print a table of estimates for each group; return the dropped columns."""
    columns = [
        Column("metric", words=True),
        Column("mean", words=True),
        Column("people", drop=2),
        Column("judge\nalone", drop=1),
        Column("value"),
        Column("95 % interval"),
    ]
    sections = [(found.group, _estimate_rows(found)) for found in estimates]
    heading = _heading([found.group for found in estimates])
    return print_groups(LineWriter(), columns, sections, heading)


def _estimate_rows(found: Estimates) -> list[list[str]]:
    """Return a row for each estimate of a metric's mean; the first names the metric."""
    return [
        [
            "" if index else found.metric,
            _METHODS[one.method],
            str(one.labeled),
            str(one.unlabeled),
            number(one.value),
            f"{one.interval.low:.4f} {one.interval.high:.4f}{one.interval.mark}"
            if one.interval
            else NONE,
        ]
        for index, one in enumerate(found.all)
    ]


_METHODS = {
    "people": "people's own",
    "plain": "judge's own",
    "ppi++": "PPI++",
    "error-corrected": "error-corrected",
}


def _estimate_notes(estimates: Sequence[Estimates]) -> Iterator[str]:
    """Yield the parameters of corrected means, or why a mean is undefined, and each warning."""
    warnings: dict[str, None] = {}
    for found in estimates:
        where = _where(found.metric, found.group)
        if found.questions is not None:
            yield f"{where}: 95 % intervals grouped by question ({found.questions} groups)"
        for one in filter(None, (found.ppi, found.corrected)):
            if one.value is None:
                yield f"{where}: {_METHODS[one.method]} undefined ({one.undefined})"
            else:
                yield f"{where}: {_parameter(one)}"
            warnings.update(dict.fromkeys(one.warnings))
    yield from (f"note: {warning}" for warning in warnings)


def _parameter(estimate: Corrected) -> str:
    name = _METHODS[estimate.method]
    if estimate.weight is not None:
        return f"{name} trusts the judge by (lambda) {estimate.weight:.4f}"
    return (
        f"{name} with sensitivity {estimate.sensitivity:.4f} and specificity "
        f"{estimate.specificity:.4f}"
    )


def _among(found: PeopleAgreement) -> Iterator[str]:
    for among in found.among:
        values = [
            f"{name} {value.undefined if value.value is None else number(value.value)}"
            for name, value in (("alpha", among.alpha), ("AC1", among.ac1))
        ]
        yield (
            f"people among themselves on {among.field}: {', '.join(values)}, agree "
            f"{number(among.alpha.raw)} over {among.alpha.units}"
        )
        where = f"people on {among.field}"
        yield from _listed_intervals(where, among.intervals, among.questions)
