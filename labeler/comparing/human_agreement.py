"""Compare a judge's labels with human labels, and correct its means by them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

from labeler.calculators import METRICS
from labeler.calculators.bias_correction import (
    Corrected,
    corrected_proportion,
    plain_mean,
    ppi_mean,
)
from labeler.calculators.rater_agreement import (
    FieldAgreement,
    FieldRatings,
    conclude_agreement,
    is_yes_or_no,
    show_agreement,
)
from labeler.calculators.registry import plain_name
from labeler.calculators.summary import check_column, count_clusters
from labeler.calculators.summary_text import small_sample_note
from labeler.comparing.agreement import (
    by_group,
    drawn_intervals,
    field_notes,
    field_sections,
    interval_notes,
    named_in,
)
from labeler.comparing.human_labels import OVERALL, HumanLabels
from labeler.comparing.human_matching import TIE, Judged, Matched, People, record_fields
from labeler.comparing.sides import Choice, Side, read_side
from labeler.labels.record import AnyOutcome, LabelRecord
from labeler.sentences.display import (
    NONE,
    Brief,
    Column,
    Display,
    Displayed,
    Section,
    figure,
    number,
)

_NO_WIDTH = "there is no interval: by these values it would have no width"


@dataclass(frozen=True, repr=False)
class Estimates(Brief):
    """Several estimates of one metric's mean.

    Attributes:
        metric: the metric's id, or ``overall_supported``.
        group: value of the grouping column; ``None`` for all records together.
        questions: number of questions that intervals are grouped by; ``None`` where all records
            differ, or ask the same one.
        people: the mean of the human-judged records, by people.
        plain: the judge's mean over all records.
        ppi: the PPI++ mean.
        corrected: the error-corrected proportion; ``None`` where the metric is not yes or no.
    """

    metric: str
    group: str | None
    questions: int | None
    people: Corrected
    plain: Corrected
    ppi: Corrected
    corrected: Corrected | None

    @property
    def sentence(self) -> str:
        """The judge's mean next to the mean that people's verdicts make of it, in plain words."""
        metric = METRICS.get("adherence" if self.metric == OVERALL else self.metric)
        name = plain_name(metric) if metric else self.metric
        judge, people = figure(self.plain.value), figure(self.ppi.value)
        drawn = self.ppi.interval
        ends = f" ({figure(drawn.low)} to {figure(drawn.high)})" if drawn else ""
        return f"{name} by the judge {judge}, corrected by people {people}{ends}"

    @property
    def all(self) -> list[Corrected]:
        """The estimates, in the order in which they are shown."""
        return [one for one in (self.people, self.plain, self.ppi, self.corrected) if one]

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
        return {
            "metric": self.metric,
            "group": self.group,
            "questions": self.questions,
            "people": self.people.as_json(),
            "plain": self.plain.as_json(),
            "ppi": self.ppi.as_json(),
            "corrected": self.corrected and self.corrected.as_json(),
        }


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
        return [*found, *(f"{one.sentence}{only_if}" for one in list(every)[:1])]

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
        return {
            "judge": list(self.signatures),
            "human_labels": asdict(self.matched),
            "fields": [found.as_json() for found in self.fields],
            "among_people": [_among_json(found) for found in self.among],
            "estimates": [found.as_json() for found in self.estimates],
            "warnings": list(self.warnings),
        }


def compare_with_people(
    outcomes: Iterable[AnyOutcome],
    human: HumanLabels,
    *,
    by: str | None = None,
    a_signature: str | None = None,
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
        a_signature: a part of the signature of the judge's labels.
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

    side = read_side(outcomes, keep, Choice(name, a_signature, trial), by=by)
    check_column(by, side.columns, "to group by")
    people = People(human, side, human_name)
    return PeopleAgreement(
        signatures=side.signatures,
        matched=people.matched,
        fields=tuple(_fields(people, side)),
        among=tuple(_among(people, side)),
        estimates=tuple(_estimates(people, side, metrics, random_sample=random_sample)),
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


def _among_json(found: FieldAgreement) -> dict[str, Any]:
    names = ("field", "units", "raw", "questions", "alpha", "ac1")
    return {name: figure for name, figure in found.as_json().items() if name in names}


def _estimates(
    people: People, side: Side[Judged], metrics: Sequence[str], *, random_sample: bool
) -> Iterator[Estimates]:
    by_group: dict[str | None, list[str]] = defaultdict(list)
    for name, kept in side.labels.items():
        for group in {None, kept.group}:
            by_group[group].append(name)
    verdicts = {metric: people.of_records(metric) for metric in metrics}
    for group in side.groups:
        for metric in metrics:
            values = {name: side.value(name).values[metric] for name in by_group[group]}
            if group is not None and not any(name in verdicts[metric] for name in values):
                continue  # people judged no record of the group: there is nothing to compare
            yield estimate(
                metric,
                group,
                values,
                verdicts[metric],
                questions={name: side.labels[name].question for name in values},
                random_sample=random_sample,
            )


def estimate(
    metric: str,
    group: str | None,
    judged: Mapping[str, float | None],
    verdicts: Mapping[str, float | None],
    *,
    questions: Mapping[str, Hashable] | None = None,
    random_sample: bool,
) -> Estimates:
    """Estimate the mean of one metric.

    Args:
        metric: its id.
        group: value of the grouping column, or ``None``.
        judged: the judge's value by record; ``None`` where the metric is undefined.
        verdicts: people's value by record; ``None`` where they are tied.
        questions: question of each record; equal ones are one observation.
        random_sample: whether the human-judged records are known to have been drawn at random.
    """
    # Sorted, so that rounding does not depend on the order of records.
    values = {name: value for name, value in sorted(judged.items()) if value is not None}
    human = {name: verdicts[name] for name in values if name in verdicts}
    decided = {name: value for name, value in human.items() if value is not None}
    alone = [name for name in values if name not in human]
    rest, asked = [values[name] for name in alone], questions or {}
    by_people = [TIE if value is None else value for value in human.values()]
    plain = plain_mean(list(values.values()), groups=_groups(asked, values))
    people = plain_mean(by_people, groups=_groups(asked, human))
    ppi = ppi_mean(
        by_people,
        [values[name] for name in human],
        rest,
        is_share=_is_share(metric, values.values()),
        groups=_groups(asked, [*human, *alone]),
        random_sample=random_sample,
    )
    if ppi.interval and ppi.interval.low == ppi.interval.high:
        ppi = replace(ppi, interval=None, warnings=(*ppi.warnings, _NO_WIDTH))
    corrected = None
    if is_yes_or_no(metric):
        corrected = corrected_proportion(
            list(decided.values()),
            [values[name] for name in decided],
            rest,
            groups=_groups(asked, [*decided, *alone]),
            random_sample=random_sample,
        )
    return Estimates(
        metric=metric,
        group=group,
        plain=replace(plain, labeled=len(human), unlabeled=len(alone)),
        ppi=ppi,
        corrected=corrected,
        people=replace(people, method="people", labeled=len(human), unlabeled=0),
        questions=count_clusters([asked.get(name) for name in values]),
    )


def _groups(questions: Mapping[str, Hashable], names: Iterable[str]) -> list[Hashable] | None:
    """Return the question of each record; ``None`` if all differ, or all are one."""
    found = [questions.get(name) for name in names]
    return None if count_clusters(found) is None else found


def _is_share(metric: str, values: Iterable[float]) -> bool:
    """Return whether a mean is between 0 and 1; a value outside proves that it is not."""
    declared = metric == OVERALL or METRICS[metric].bounded
    return declared and all(0 <= value <= 1 for value in values)


def _warnings(people: People, side: Side[Judged]) -> Iterator[str]:
    """Yield limits of the numbers."""
    if len(side.signatures) > 1:
        yield (
            f"the labels were made in {len(side.signatures)} ways, and the numbers are over all of "
            "them together"
        )
    if people.matched.ties:
        yield (
            f"ties between annotators: {people.matched.ties} verdicts on records and sentences "
            "have as many yeses as noes; they count one half in people's and PPI++ means and not "
            "at all elsewhere"
        )
    if people.derived:
        named = ", ".join(f"{metric} of {count}" for metric, count in people.derived.items())
        yield (
            f"derived from people's judgments of every sentence: {named} records, for each person "
            "first, then by majority or mean; a verdict on a whole record replaces the derived one"
        )


# In full.


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
