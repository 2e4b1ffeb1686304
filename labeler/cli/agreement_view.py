"""Tables of agreement for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from labeler.calculators.rater_agreement import FieldAgreement
from labeler.calculators.statistics.bias_correction import Corrected
from labeler.cli.tables import (
    NONE,
    Column,
    Grid,
    dropped_note,
    number,
    print_grids,
    print_groups,
)
from labeler.cli.terminal import LineWriter, notify, print_lines
from labeler.comparing.agreement import LabelAgreement
from labeler.comparing.human_agreement import Estimates, PeopleAgreement
from labeler.comparing.pairs import PairCounts

ALL = "all"
"""Name of all groups together."""


def print_labels(found: LabelAgreement) -> None:
    """Print the agreement of two label files and the numbers of their records."""
    dropped = _print_fields(found.fields)
    print_lines(
        [
            *dropped_note(dropped),
            *_undefined(found.fields),
            *_record_counts(found.counts),
            *(f"A: {signature}" for signature in found.signatures_a),
            *(f"B: {signature}" for signature in found.signatures_b),
        ]
    )


def print_people(found: PeopleAgreement) -> None:
    """Print the agreement of a judge with people, and its means corrected by them."""
    dropped = _print_fields(found.fields) if found.fields else []
    dropped += _print_estimates(found.estimates) if found.estimates else []
    print_lines(
        [
            *dropped_note(dropped),
            *_undefined(found.fields),
            *_parameters(found.estimates),
            *_among(found),
            *_matched(found),
            *_warnings(found),
            *(f"A: {signature}" for signature in found.signatures),
            "B: people",
        ]
    )


# The field implies the unit.
_FIELD = (Column("field", words=True), Column("of", drop=1, words=True))
_COEFFICIENTS = (Column("kappa"), Column("AC1"), Column("alpha"))


def _print_fields(fields: Sequence[FieldAgreement]) -> list[str]:
    """Print a table for each group, all with the same columns; return the dropped columns."""
    means = (Column("mean A", drop=2), Column("mean B", drop=3))
    columns = [*_FIELD, Column("both", drop=4), Column("agree"), *means, *_COEFFICIENTS]
    groups = dict.fromkeys(one.group for one in fields)
    sections = [
        (
            group,
            [
                _field_row(one, one.raw, one.mean_a, one.mean_b)
                for one in fields
                if one.group == group
            ],
        )
        for group in groups
    ]
    return print_groups(LineWriter(), columns, sections, _heading(groups))


def _field_row(found: FieldAgreement, *figures: float | None) -> list[str]:
    coefficients = [coefficient.value for coefficient in found.by_name.values()]
    return [found.field, found.unit, str(found.units), *map(number, [*figures, *coefficients])]


def _heading(groups: Collection[str | None]) -> Callable[[str | None], str | None]:
    """Return a function that names a group above its table, if there are groups."""
    if any(group is not None for group in groups):
        return lambda group: group or ALL
    return lambda _: None


def print_voters(fields: Sequence[FieldAgreement]) -> None:
    """Print the agreement of voters on standard error, like all messages of the run."""
    columns = [*_FIELD, Column("judged"), Column("agree"), *_COEFFICIENTS]
    rows = [_field_row(one, one.raw) for one in fields]
    out = LineWriter(stderr=True)
    print_grids(out, *Grid(columns, rows).split(out.width))
    for line in _undefined(fields):
        notify(line)


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
    ways = (found.people, found.plain, found.ppi, found.corrected)
    rows = [
        ["", _METHODS[way.method], str(way.labeled), str(way.unlabeled), *_estimate(way)]
        for way in ways
        if way is not None
    ]
    return [[found.metric, *row[1:]] if row is rows[0] else row for row in rows]


_METHODS = {
    "people": "people's own",
    "plain": "judge's own",
    "ppi++": "PPI++",
    "error-corrected": "error-corrected",
}


def _estimate(way: Corrected) -> list[str]:
    interval = way.interval
    return [
        number(way.value),
        NONE if interval is None else f"{interval.low:.4f} {interval.high:.4f}",
    ]


def _parameters(estimates: Sequence[Estimates]) -> Iterator[str]:
    """Yield the parameters of corrected means, or why a mean is undefined."""
    undefined: dict[str, list[Place]] = {}
    for metric in dict.fromkeys(found.metric for found in estimates):
        figures: dict[str, list[str]] = {}
        for found in estimates:
            for way in (found.ppi, found.corrected):
                if way is None or found.metric != metric:
                    continue
                if way.value is None:
                    why = f"{_METHODS[way.method]} undefined ({way.undefined})"
                    undefined.setdefault(why, []).append((metric, found.group))
                else:
                    group = "" if found.group is None else f" in {found.group}"
                    kind, values = _parameter(way)
                    figures.setdefault(kind, []).append(values + group)
        for kind, facts in figures.items():
            yield f"{metric}: {kind} {', '.join(facts)}"
    for why, places in undefined.items():
        yield f"{why}: {_named(places)}"


def _parameter(way: Corrected) -> tuple[str, str]:
    """Return a name and the values of the parameters of a corrected mean."""
    name = _METHODS[way.method]
    if way.weight is not None:
        return f"{name} trusts the judge by (lambda)", f"{way.weight:.4f}"
    return (
        f"{name} with sensitivity and specificity",
        f"{way.sensitivity:.4f} and {way.specificity:.4f}",
    )


Place = tuple[str, str | None]
"""A field or metric, and a group; ``None`` for all records together."""


def _named(places: Sequence[Place]) -> str:
    """List fields and groups, fields of the same groups together."""
    groups: dict[str, dict[str | None, None]] = {}
    for name, group in places:
        groups.setdefault(name, {})[group] = None
    alike: dict[tuple[str | None, ...], list[str]] = {}
    for name, its in groups.items():
        alike.setdefault(tuple(its), []).append(name)
    return "; ".join(
        ", ".join(names)
        + ("" if its == (None,) else f" in {', '.join(group or ALL for group in its)}")
        for its, names in alike.items()
    )


def _undefined(fields: Sequence[FieldAgreement]) -> Iterator[str]:
    """Yield why coefficients are undefined and units left out, each reason once."""
    missing: dict[tuple[str, str], list[Place]] = {}
    left_out: dict[str, list[str]] = {}
    for found in fields:
        reasons: dict[str, list[str]] = {}
        for name, coefficient in found.by_name.items():
            if coefficient.undefined:
                reasons.setdefault(coefficient.undefined, []).append(name)
        for reason, names in reasons.items():
            missing.setdefault((", ".join(names), reason), []).append((found.field, found.group))
        where = found.field if found.group is None else f"{found.field} in {found.group}"
        for why, count in (
            ("ties between annotators", found.tied),
            ("without a verdict on one side", found.left_out - found.tied),
        ):
            if count:
                left_out.setdefault(why, []).append(f"{count} of {where}")
    for (names_of, reason), places in missing.items():
        yield f"undefined {names_of} of {_named(places)}: {reason}"
    for why, counts in left_out.items():
        yield f"left out, {why}: {', '.join(counts)}"


def _record_counts(counts: PairCounts) -> Iterator[str]:
    left_out = sum(counts.left_out.values())
    yield (
        f"{counts.pairs + left_out} records labelled in both, {counts.only_a} labelled only in A, "
        f"{counts.only_b} only in B; failed: {counts.failed_a} in A, {counts.failed_b} in B, "
        f"{counts.failed_both} in both"
    )
    if left_out:
        named = ", ".join(map(repr, counts.left_out_ids))
        more = ", …" if left_out > len(counts.left_out_ids) else ""
        yield (
            f"{left_out} of both not compared ({named}{more}): question, documents or response "
            "differ, or another splitter cut them"
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


def _matched(found: PeopleAgreement) -> Iterator[str]:
    matched = found.matched
    yield (
        f"{matched.used} human judgements used; of records that are not there {matched.unknown}, "
        f"of records without a label {matched.failed}, of sentences that are not there "
        f"{matched.unknown_sentences}, repeated {matched.repeated}"
    )
    if matched.unknown:
        yield f"not there: {', '.join(map(repr, matched.unknown_ids))}"
    if matched.ignored_columns:
        yield f"columns that name no field: {', '.join(map(repr, matched.ignored_columns))}"


def _warnings(found: PeopleAgreement) -> Iterator[str]:
    """Yield each warning once, with the methods and metrics that it is about."""
    for warning in found.warnings:
        yield f"note: {warning}"
    concerned: dict[str, list[tuple[Place, str]]] = {}
    for estimates in found.estimates:
        place = (estimates.metric, estimates.group)
        for way in (estimates.ppi, estimates.corrected):
            if way is None:
                continue
            for warning in way.warnings:
                concerned.setdefault(warning, []).append((place, _METHODS[way.method]))
    for warning, alike in concerned.items():
        places, methods = zip(*alike, strict=True)
        named = " and ".join(dict.fromkeys(methods))
        yield f"note on {named} of {_named(places)}: {warning}"
