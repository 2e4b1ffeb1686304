"""Agreement of judges and people as tables and lines, in full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from labeler.calculators.rater_agreement import FieldAgreement
from labeler.calculators.statistics.bias_correction import Corrected
from labeler.calculators.statistics.intervals import Interval
from labeler.calculators.summary_table import interval_line, small_sample_note
from labeler.comparing.agreement import LabelAgreement
from labeler.comparing.calibration import Calibration
from labeler.comparing.human_agreement import Estimates, PeopleAgreement
from labeler.sentences.display import NONE, Column, Grid, Section, number

ALL = "all"
"""Name of all groups together."""


def labels_in_full(found: LabelAgreement) -> Iterator[Section]:
    """Yield the agreement of two label files and the numbers of their records."""
    yield from _fields(found.fields)
    lines = [
        *_field_notes(found.fields),
        *_small_samples(found.fields),
        *found.records,
        *(f"A: {signature}" for signature in found.signatures_a),
        *(f"B: {signature}" for signature in found.signatures_b),
    ]
    yield Section(lines=lines)


def people_in_full(found: PeopleAgreement) -> Iterator[Section]:
    """Yield the agreement of a judge with people, and its means corrected by them."""
    yield from _fields(found.fields)
    yield from _estimates(found.estimates)
    lines = [
        *_field_notes(found.fields),
        *_estimate_notes(found.estimates),
        *_small_samples(found.fields, found.among, found.estimates),
        *_among(found),
        *found.matched.lines(),
        *(f"note: {warning}" for warning in found.warnings),
        *(f"A: {signature}" for signature in found.signatures),
        "B: people",
    ]
    yield Section(lines=lines)


def calibration_in_full(found: Calibration) -> Iterator[Section]:
    """Yield the reliability table of each kind of verdict, and thresholds with their results."""
    columns = [Column(head) for head in ("stated", "verdicts", "mean stated", "people: yes")]
    for one in found.kinds:
        cells = [
            [
                f"{each.low:g} to {each.high:g}",
                f"{each.verdicts:,}",
                number(each.stated),
                number(each.observed),
            ]
            for each in one.bins
            if each.verdicts
        ]
        yield Section(one.kind, [Grid(columns, cells)])
    lines = [
        *_grouped_thresholds(found),
        *small_sample_note(one.interval for one in found.kinds),
        *found.notes,
        *(f"A: {signature}" for signature in found.signatures),
    ]
    yield Section(None, [found.table], lines)


def _grouped_thresholds(found: Calibration) -> Iterator[str]:
    for one in found.kinds:
        if one.questions is not None:
            yield f"{one.kind}: 95 % intervals grouped by question ({one.questions} groups)"


# The field implies the unit.
_FIELD = (Column("field", words=True), Column("of", drop=1, words=True))
_COEFFICIENTS = (Column("kappa"), Column("AC1"), Column("alpha"))


def _fields(fields: Sequence[FieldAgreement]) -> Iterator[Section]:
    """Yield a table for each group."""
    means = (Column("mean A", drop=2), Column("mean B", drop=3))
    columns = [*_FIELD, Column("both", drop=4), Column("agree"), *means, *_COEFFICIENTS]
    groups: dict[str | None, list[list[str]]] = {}
    for one in fields:
        values = (found.value for found in one.by_name.values())
        figures = map(number, (one.raw, one.mean_a, one.mean_b, *values))
        row = [one.field, one.unit, str(one.units), *figures]
        groups.setdefault(one.group, []).append(row)
    return _by_group(columns, groups)


def _by_group(
    columns: Sequence[Column], groups: Mapping[str | None, list[list[str]]]
) -> Iterator[Section]:
    """Yield the rows of each group, below its name if there are several groups."""
    for group, rows in groups.items():
        yield Section(group or ALL if len(groups) > 1 else group, [Grid(columns, rows)])


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


def _estimates(estimates: Sequence[Estimates]) -> Iterator[Section]:
    """Yield a table of estimates for each group."""
    columns = [
        Column("metric", words=True),
        Column("mean", words=True),
        Column("people", drop=2),
        Column("judge\nalone", drop=1),
        Column("value"),
        Column("95 % interval"),
    ]
    groups: dict[str | None, list[list[str]]] = {}
    for found in estimates:
        groups.setdefault(found.group, []).extend(_estimate_rows(found))
    return _by_group(columns, groups)


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
