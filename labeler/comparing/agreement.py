"""Agreement of two judges, and of a judge with people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

from labeler.calculators.bias_correction import Corrected
from labeler.calculators.groups import check_column
from labeler.calculators.intervals import Interval, question_groups
from labeler.calculators.rater_agreement import (
    UNITS,
    FieldAgreement,
    FieldRatings,
    conclude_agreement,
    interval_line,
    show_agreement,
    verdicts_of,
)
from labeler.calculators.summary_text import small_sample_note
from labeler.catalog import named_keywords
from labeler.comparing.human_labels import HumanLabels
from labeler.comparing.human_matching import (
    Estimates,
    Judged,
    Matched,
    People,
    estimate_metrics,
    record_fields,
)
from labeler.comparing.pairs import PairCounts, Pairs, read_pairs
from labeler.comparing.sides import (
    Choice,
    Side,
    SideOptions,
    mixed_labels,
    read_side,
    with_named_groups,
)
from labeler.labels.record import AnyOutcome, LabelRecord
from labeler.sentences.display import (
    NONE,
    Column,
    Display,
    Displayed,
    Grid,
    Section,
    as_sentence,
    number,
    plural,
    shortened,
)


@dataclass(frozen=True, repr=False)
class PeopleAgreement(Displayed):
    """A judge against people.

    Attributes:
        signatures: signatures of the judge's labels.
        matched: numbers of human labels by what became of them.
        fields: the judge (A) against people (B), all records first, then each group.
        among: people against each other, where two judged the same.
        estimates: means by judge and people together.
        random_sample: whether the records that people judged are known to be drawn at random.
        warnings: limits of the numbers, in plain English.
    """

    signatures: tuple[str, ...]
    matched: Matched
    fields: tuple[FieldAgreement, ...]
    among: tuple[FieldAgreement, ...]
    estimates: tuple[Estimates, ...]
    random_sample: bool
    warnings: tuple[str, ...]

    @property
    def conclusions(self) -> list[str]:
        """The agreement in one sentence, and the first mean corrected by people in another."""
        found = [conclude_agreement(self.fields, "The judge and people")]
        every = (one for one in self.estimates if one.group is None and one.ppi.interval)
        only_if = "" if self.random_sample else ", if people judged records drawn at random"
        return [*found, *(as_sentence(f"{one.sentence}{only_if}") for one in list(every)[:1])]

    def _display(self) -> Display:
        notes = [*self.matched.lines(), *(f"note: {warning}" for warning in self.warnings)]
        title = "\n".join(self.conclusions)
        return show_agreement(title, self.fields, notes, sides=("judge", "people"))

    def in_full(self) -> Iterator[Section]:
        """Yield the agreement of the judge with people, and its means corrected by them."""
        yield from field_sections(self.fields)
        yield from _estimate_sections(self.estimates)
        corrected = (one.interval for found in self.estimates for one in found.all)
        intervals = chain(drawn_intervals(self.fields), drawn_intervals(self.among), corrected)
        lines = [
            *field_notes(self.fields),
            *_estimate_notes(self.estimates),
            *small_sample_note(intervals),
            *chain(*map(_among_notes, self.among)),
            *self.matched.lines(),
            *(f"note: {warning}" for warning in self.warnings),
            *(f"A: {signature}" for signature in self.signatures),
            "B: people",
        ]
        yield Section(lines=lines)

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
        names = ("field", "units", "raw", "questions", "alpha", "ac1")
        among = (found.as_json() for found in self.among)
        return {
            "judge": list(self.signatures),
            "human_labels": asdict(self.matched),
            "fields": [found.as_json() for found in self.fields],
            "among_people": [{k: own[k] for k in own if k in names} for own in among],
            "estimates": [found.as_json() for found in self.estimates],
            "warnings": list(self.warnings),
        }


@named_keywords
def compare_with_people(
    outcomes: Iterable[AnyOutcome],
    human: HumanLabels,
    *,
    by: str | None = None,
    signature: str | None = None,
    trial: int | None = None,
    name: str = "labels",
    human_name: str = "human labels",
    random_sample: bool = False,
) -> PeopleAgreement:
    r"""Compare a judge's labels with human labels.

    Where several people judged the same, a yes-or-no field has their majority's value, any other
    their mean. Where they judged every sentence of a record, the derived metrics are computed for
    each of them first, and then combined in the same way.

    Args:
        outcomes: the judge's outcomes, including records that no one else judged.
        human: the human labels.
        by: name of a metadata column to group by as well.
        signature: a part of the signature of the judge's labels.
        trial: only labels of this trial.
        name: name of the outcomes in errors.
        human_name: name of the human labels in errors.
        random_sample: whether the human-judged records are known to have been drawn at random.

    Returns:
        Agreement by field, and the judge's means corrected by the human labels.

    Raises:
        UsageError: there is no label that fits the choice, a record has two different ones, no
            record has the column, or no human label is about a label of the judge.

    Example:
        >>> _ = (folder / "people.csv").write_text("id,sentence,supported\nlog-rotation,a,yes\n")
        >>> human = labeler.comparing.read_human_labels(folder / "people.csv")
        >>> labeler.comparing.compare_with_people(labels, human).fields[0].field
        'supported'
    """
    judged_ids = {label.id for label in human.labels}
    metrics = record_fields(human)

    def keep(record: LabelRecord) -> Judged:
        return Judged.of(record, metrics, in_full=record.id in judged_ids)

    side = read_side(outcomes, keep, Choice(name, signature, trial), by=by)
    (side,) = with_named_groups(side)
    check_column(by, side.columns, "to group by")
    people = People(human, side, human_name)
    return PeopleAgreement(
        signatures=side.signatures,
        matched=people.matched,
        fields=tuple(_fields(people, side)),
        among=tuple(_among(people, side)),
        estimates=tuple(estimate_metrics(people, side, metrics, random_sample=random_sample)),
        random_sample=random_sample,
        warnings=tuple(_warnings(people, side)),
    )


def _fields(people: People, side: Side[Judged]) -> Iterator[FieldAgreement]:
    """Compare the judge with people on every field, all records first, then each group."""
    ratings: dict[tuple[str | None, str], FieldRatings] = defaultdict(FieldRatings)
    for (name, field), verdicts in people.verdicts.items():
        kept = side.labels[name]
        judged = kept.value.values if None in verdicts else kept.value.verdicts[field]
        patterns: list[tuple[float | None, float | None]] = []
        for sentence, value in verdicts.items():
            given = judged[sentence or field]
            patterns.append((None if given is None else float(given), value))
        for group in {None, kept.group}:
            ratings[group, field].add(patterns, kept.question)
    for group in side.groups:
        for field in people.fields():
            if (group, field) in ratings:
                own = ratings[group, field]
                tied = sum(count for (_, value), count in own.patterns.items() if value is None)
                yield own.agreement(field, group, tied)


def _among(people: People, side: Side[Judged]) -> Iterator[FieldAgreement]:
    """Compare people with each other, on items that two or more of them judged."""
    by_field: dict[str, dict[str, list[dict[str, float]]]] = defaultdict(dict)
    for (name, field), by_sentence in people.values.items():
        by_field[field][name] = list(by_sentence.values())
    for field, records in by_field.items():
        annotators = sorted({one for units in records.values() for unit in units for one in unit})
        ratings = FieldRatings()
        for name, units in records.items():
            patterns = [tuple(map(unit.get, annotators)) for unit in units]
            ratings.add(patterns, side.labels[name].question)
        found = ratings.agreement(field)
        if found.units:
            yield found


def _warnings(people: People, side: Side[Judged]) -> Iterator[str]:
    """Yield limits of the numbers."""
    yield from mixed_labels(A=side.signatures)
    if people.matched.ties:
        yield (
            f"{plural(people.matched.ties, 'tie')} between annotators, with as many yeses as noes "
            "on a record or sentence: one half in people's and PPI++ means, not counted elsewhere"
        )
    if people.derived:
        counts = (f"{metric} of {plural(n, 'record')}" for metric, n in people.derived.items())
        yield (
            f"derived from people's judgments of every sentence: {', '.join(counts)}; for each "
            "person first, then by majority or mean; a verdict on a whole record replaces the "
            "derived one"
        )


def _among_notes(among: FieldAgreement) -> Iterator[str]:
    values = [
        f"{name} {one.undefined if one.value is None else number(one.value)}"
        for name, one in (("alpha", among.alpha), ("AC1", among.ac1))
    ]
    yield (
        f"people among themselves on {among.field}: {', '.join(values)}, agree "
        f"{number(among.raw)} over {among.units}"
    )
    yield from interval_notes(f"people on {among.field}", among)


@dataclass(frozen=True, repr=False)
class LabelAgreement(Displayed):
    """Agreement of two sides, field by field.

    Attributes:
        signatures_a: signatures of the labels of side A.
        signatures_b: signatures of the labels of side B.
        counts: the numbers of pairs and of other records.
        fields: all records together first, then each group.
    """

    signatures_a: tuple[str, ...]
    signatures_b: tuple[str, ...]
    counts: PairCounts
    fields: tuple[FieldAgreement, ...]

    @property
    def conclusion(self) -> str:
        """The agreement in one sentence."""
        return conclude_agreement(self.fields, "A and B")

    def _display(self) -> Display:
        return show_agreement(self.conclusion, self.fields, self.records)

    @property
    def records(self) -> list[str]:
        """Lines on the records that are compared, and those that are not."""
        lines, left_out = [self.counts.in_words()], self.counts.left_out_ids
        if left_out:
            more = ", …" if sum(self.counts.left_out.values()) > len(left_out) else ""
            named = ", ".join(map(repr, left_out))
            lines.append(f"not compared, or cut by another splitter: {named}{more}")
        notes = mixed_labels(A=self.signatures_a, B=self.signatures_b)
        return [*lines, *(f"note: {note}" for note in notes)]

    def in_full(self) -> Iterator[Section]:
        """Yield tables of the coefficients by group, and the numbers of records."""
        yield from field_sections(self.fields)
        lines = [
            *field_notes(self.fields),
            *small_sample_note(drawn_intervals(self.fields)),
            *self.records,
            *(f"A: {signature}" for signature in self.signatures_a),
            *(f"B: {signature}" for signature in self.signatures_b),
        ]
        yield Section(lines=lines)

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
        counts = self.counts
        return {
            "a": list(self.signatures_a),
            "b": list(self.signatures_b),
            "records": {
                "compared": counts.pairs,
                **counts.others_as_json(),
                "differing": sum(counts.left_out.values()),
                "differing_ids": list(counts.left_out_ids),
            },
            "fields": [found.as_json() for found in self.fields],
        }


@named_keywords
def compare_labels(
    a: Iterable[AnyOutcome],
    b: Iterable[AnyOutcome],
    *,
    names: tuple[str, str] = ("A", "B"),
    by: str | None = None,
    signature: str | None = None,
    trial: int | None = None,
) -> LabelAgreement:
    """Measure the agreement of two sides on the records that both have.

    Args:
        a: outcomes of side A.
        b: outcomes of side B.
        names: names of the sides in errors.
        by: name of a metadata column to group by as well.
        signature: a part of the signature of the labels of each side.
        trial: the trial of the labels of each side.

    Returns:
        Agreement by field: share of equal verdicts, kappa, AC1, alpha, each with its interval.

    Raises:
        UsageError: a side has no label that fits the choice, or two different ones of a record; no
            record can be compared; or no label has the column.

    Example:
        >>> labeler.comparing.compare_labels(labels, labels).fields[0].raw
        1.0
    """
    options = SideOptions(by=by, signature=signature, trial=trial)
    (pairs,) = read_pairs([a, b], (verdicts_of, verdicts_of), options, names=names)
    return LabelAgreement(
        pairs.a.signatures, pairs.b.signatures, pairs.counts, _label_fields(pairs)
    )


def _label_fields(pairs: Pairs[dict[str, tuple[bool | None, ...]]]) -> tuple[FieldAgreement, ...]:
    ratings: dict[tuple[str | None, str], FieldRatings] = defaultdict(FieldRatings)
    for pair in pairs:
        for field in UNITS:
            both = list(zip(pair.a.value[field], pair.b.value[field], strict=True))
            for group in {None, pair.group}:
                ratings[group, field].add(both, pair.a.question)
    groups = {pair.group for pair in pairs if pair.group is not None}
    return tuple(
        ratings[group, field].agreement(field, group)
        for group in [None, *sorted(groups)]
        for field in UNITS
    )


# Agreement on each field in full.


def field_sections(fields: Iterable[FieldAgreement]) -> Iterator[Section]:
    """Yield a table of fields and their coefficients for each group."""
    # The field implies the unit.
    columns = [Column("field", words=True), Column("of", drop=1, words=True)]
    columns += [Column("both", drop=4), Column("agree"), Column("mean A", drop=2)]
    columns += [Column("mean B", drop=3), Column("kappa"), Column("AC1"), Column("alpha")]
    groups: dict[str | None, list[list[str]]] = {}
    for one in fields:
        values = (found.value for found in one.by_name.values())
        figures = map(number, (one.raw, one.mean_a, one.mean_b, *values))
        groups.setdefault(one.group, []).append([one.field, one.unit, str(one.units), *figures])
    return by_group(columns, groups)


def by_group(
    columns: Sequence[Column], groups: Mapping[str | None, list[list[str]]]
) -> Iterator[Section]:
    """Yield the rows of each group, below its name if there are several groups."""
    for group, rows in groups.items():
        name = None if group is None else shortened(group)
        yield Section(name or "all" if len(groups) > 1 else name, [Grid(columns, rows)])


def field_notes(fields: Iterable[FieldAgreement]) -> Iterator[str]:
    """Yield intervals, why coefficients say little or are undefined, and units left out."""
    for found in fields:
        where = named_in(found.field, found.group)
        yield from interval_notes(where, found)
        if found.caution:
            yield f"{where}: {found.caution}"
        reasons: dict[str, list[str]] = {}
        for name, coefficient in found.by_name.items():
            if coefficient.undefined:
                reasons.setdefault(coefficient.undefined, []).append(name)
        for reason, names in reasons.items():
            yield f"{where}: {', '.join(names)} undefined ({reason})"
        for why, count in (
            ("ties between annotators", found.tied),
            ("without a verdict on one side", found.left_out - found.tied),
        ):
            if count:
                yield f"{where}: {count} left out, {why}"


def interval_notes(where: str, found: FieldAgreement) -> Iterator[str]:
    """Yield a line of the intervals of a field's coefficients, if there are any."""
    named = {name: one.interval for name, one in found.by_name.items() if one.interval}
    return interval_line(where, named, found.questions)


def drawn_intervals(fields: Iterable[FieldAgreement]) -> Iterator[Interval | None]:
    """Yield the intervals of the coefficients of fields."""
    return (one.interval for found in fields for one in found.by_name.values())


def named_in(name: str, group: str | None) -> str:
    """Return a name with its group."""
    return name if group is None else f"{name} in {shortened(group)}"


# Agreement with people in full.


def _estimate_sections(estimates: Iterable[Estimates]) -> Iterator[Section]:
    """Yield a table of the estimates of each group; a metric's first row names it."""
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
        for index, one in enumerate(found.all):
            name, drawn = "" if index else found.metric, one.interval
            ends = f"{drawn.low:.4f} {drawn.high:.4f}{drawn.mark}" if drawn else NONE
            counts = str(one.labeled), str(one.unlabeled)
            row = [name, _METHODS[one.method], *counts, number(one.value), ends]
            groups.setdefault(found.group, []).append(row)
    return by_group(columns, groups)


_METHODS = {
    "people": "people's own",
    "plain": "judge's own",
    "ppi++": "PPI++",
    "error-corrected": "error-corrected",
}


def _estimate_notes(estimates: Iterable[Estimates]) -> Iterator[str]:
    """Yield the parameters of corrected means, or why a mean is undefined, and each warning."""
    warnings: dict[str, None] = {}
    for found in estimates:
        where = named_in(found.metric, found.group)
        if found.questions is not None:
            yield f"{where}: 95 % intervals {question_groups(found.questions)}"
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
