"""Tables of agreement for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from labeler.agreeing import Estimates, FieldAgreement, Joined, LabelAgreement, PeopleAgreement
from labeler.characters import visible
from labeler.cli.terminal import console, say
from labeler.statistics.corrected import Corrected

ALL = "all"
"""Stands for all groups together."""


def print_labels(found: LabelAgreement) -> None:
    """Print how far two label files agree, and what became of their records."""
    _print_fields(found.fields)
    _print_notes(
        [
            *_undefined(found.fields),
            *_joined(found.joined),
            *(f"A: {signature}" for signature in found.signatures_a or ("no labels",)),
            *(f"B: {signature}" for signature in found.signatures_b or ("no labels",)),
        ]
    )


def print_people(found: PeopleAgreement) -> None:
    """Print how far a judge agrees with people, and its means set right by them."""
    if found.fields:
        _print_fields(found.fields)
    if found.estimates:
        _print_estimates(found.estimates)
    _print_notes(
        [
            *_undefined(found.fields),
            *_resting(found.estimates),
            *_among(found),
            *_matched(found),
            *_conditions(found),
            *(f"A: {signature}" for signature in found.signatures or ("no labels",)),
            "B: people",
        ]
    )


def _print_fields(fields: Sequence[FieldAgreement]) -> None:
    grouped = any(found.group is not None for found in fields)
    # The unit follows from the field; where there are groups, the width is theirs.
    table = _table(["group", "field"] if grouped else ["field", "of"])
    for name in ("both", "agree", "mean A", "mean B", "kappa", "AC1", "alpha"):
        table.add_column(name, justify="right", no_wrap=True)
    previous: str | None = None
    for found in fields:
        starts = found.group != previous or found is fields[0]
        if starts:
            table.add_section()
        previous = found.group
        figures = [found.raw, found.mean_a, found.mean_b]
        figures += [coefficient.value for coefficient in found.by_name.values()]
        group = _safe((found.group or ALL) if starts else "")
        named = [group, found.field] if grouped else [found.field, found.unit]
        table.add_row(*named, str(found.units), *(_figure(figure) for figure in figures))
    console().print(table)


def print_voters(fields: Sequence[FieldAgreement]) -> None:
    """Say how far those who voted agree, on standard error beside what else is told of the run."""
    table = _table(["field", "of"])
    for name in ("judged", "agree", "kappa", "AC1", "alpha"):
        table.add_column(name, justify="right", no_wrap=True)
    for found in fields:
        figures = [found.raw, *(coefficient.value for coefficient in found.by_name.values())]
        table.add_row(found.field, found.unit, str(found.units), *map(_figure, figures))
    console(stderr=True).print(table)
    for line in _undefined(fields):
        say(line)


def _print_estimates(estimates: Sequence[Estimates]) -> None:
    grouped = any(found.group is not None for found in estimates)
    table = _table([*(["group"] if grouped else []), "metric", "mean"])
    for name in ("people", "judge alone", "value", "95 % interval"):
        table.add_column(name, justify="right", no_wrap=True)
    for found in estimates:
        table.add_section()
        group, metric = found.group or ALL, found.metric
        for way in (found.people, found.plain, found.ppi, found.corrected):
            if way is not None:
                table.add_row(
                    *([_safe(group)] if grouped else []),
                    metric,
                    _WAYS[way.method],
                    str(way.labelled),
                    str(way.unlabelled),
                    *_estimate(way),
                )
                group = metric = ""
    console().print(table)


_WAYS = {
    "people": "people's own",
    "plain": "judge's own",
    "ppi++": "PPI++",
    "error-corrected": "error-corrected",
}


def _estimate(way: Corrected) -> list[str]:
    interval = way.interval
    return [
        _figure(way.value),
        "-" if interval is None else f"{interval.low:.4f} {interval.high:.4f}",
    ]


def _resting(estimates: Sequence[Estimates]) -> Iterator[str]:
    """What the corrected means rest on, or why there is none."""
    for found in estimates:
        where = found.metric if found.group is None else f"{found.metric} in {found.group}"
        facts = [_fact(way) for way in (found.ppi, found.corrected) if way is not None]
        yield f"{where}: {'; '.join(facts)}"


def _fact(way: Corrected) -> str:
    name = _WAYS[way.method]
    if way.value is None:
        return f"{name} undefined: {way.undefined}"
    if way.weight is not None:
        return f"{name} trusts the judge by {way.weight:.4f} (lambda)"
    return f"{name} with sensitivity {way.sensitivity:.4f}, specificity {way.specificity:.4f}"


def _table(names: Sequence[str]) -> Table:
    """No frame: its width is for words."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in names:
        table.add_column(name, no_wrap=name != "group", overflow="fold")
    return table


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _safe(text: str) -> Text:
    return Text(visible(text))


def _print_notes(lines: Sequence[str]) -> None:
    console().print(_safe("\n".join(lines)), soft_wrap=True)


def _undefined(fields: Sequence[FieldAgreement]) -> Iterator[str]:
    """Why coefficients are missing, and which units were left out."""
    for found in fields:
        where = found.field if found.group is None else f"{found.field} in {found.group}"
        reasons: dict[str, list[str]] = {}
        for name, coefficient in found.by_name.items():
            if coefficient.undefined:
                reasons.setdefault(coefficient.undefined, []).append(name)
        for reason, names in reasons.items():
            yield f"undefined {', '.join(names)} of {where}: {reason}"
        if found.left_out:
            yield f"left out of {where}: {found.left_out} without a verdict on one side"


def _joined(joined: Joined) -> Iterator[str]:
    yield (
        f"{joined.compared} records compared; only in A {joined.only_a}, only in B "
        f"{joined.only_b}; failed in A {joined.failed_a}, failed in B {joined.failed_b}; "
        f"with other sentences under the same id {joined.differing}"
    )
    if joined.differing:
        named = ", ".join(map(repr, joined.differing_ids))
        more = ", …" if joined.differing > len(joined.differing_ids) else ""
        yield (
            f"other sentences: {named}{more}: question, documents or response differ, or another "
            "splitter cut them"
        )


def _among(found: PeopleAgreement) -> Iterator[str]:
    for among in found.among:
        values = [
            f"{name} {value.undefined if value.value is None else _figure(value.value)}"
            for name, value in (("alpha", among.alpha), ("AC1", among.ac1))
        ]
        yield (
            f"people among themselves on {among.field}: {', '.join(values)}, agree "
            f"{_figure(among.alpha.raw)} over {among.alpha.units}"
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


def _conditions(found: PeopleAgreement) -> Iterator[str]:
    """Warnings, each once, with what it concerns."""
    for warning in found.warnings:
        yield f"note: {warning}"
    concerned: dict[str, list[str]] = {}
    for estimates in found.estimates:
        for way in (estimates.ppi, estimates.corrected):
            for warning in way.warnings if way else ():
                group = "" if estimates.group is None else f" in {estimates.group}"
                named = concerned.setdefault(warning, [])
                if f"{estimates.metric}{group}" not in named:
                    named.append(f"{estimates.metric}{group}")
    for warning, named in concerned.items():
        yield f"note: {', '.join(named)}: {warning}"
