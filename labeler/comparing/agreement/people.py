"""Compares a judge's labels with what people said, and sets its means right by them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from labeler.calculators.rater_agreement import (
    RECORD,
    UNITS,
    FieldAgreement,
    coefficients,
    field_agreement,
)
from labeler.calculators.statistics.agreement import Agreement, Pattern, Ratings
from labeler.comparing.agreement.estimates import Estimates, estimate
from labeler.comparing.agreement.matching import (
    Item,
    Judged,
    Matched,
    People,
    judged,
    record_fields,
)
from labeler.comparing.agreement.sides import LabelsById, check_column, labels_by_id
from labeler.comparing.human_labels import HumanLabels
from labeler.labels.record import AnyOutcome, LabelRecord


@dataclass(frozen=True)
class Among:
    """How far people agree among themselves on one field: what no judge is likely to surpass."""

    field: str
    alpha: Agreement
    ac1: Agreement

    def as_json(self) -> dict[str, Any]:
        """The published form."""
        return {
            "field": self.field,
            "units": self.alpha.units,
            "raw": self.alpha.raw,
            "alpha": {"value": self.alpha.value, "undefined": self.alpha.undefined},
            "ac1": {"value": self.ac1.value, "undefined": self.ac1.undefined},
        }


@dataclass(frozen=True)
class PeopleAgreement:
    """A judge against people.

    Attributes:
        signatures: how the labels were made.
        matched: what became of the human labels.
        fields: the judge (A) against people (B), all records first, then each group.
        among: people against each other, where two judged the same.
        estimates: means by judge and people together.
        warnings: what else to know of the numbers, in plain English.
    """

    signatures: tuple[str, ...]
    matched: Matched
    fields: tuple[FieldAgreement, ...]
    among: tuple[Among, ...]
    estimates: tuple[Estimates, ...]
    warnings: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The published form."""
        return {
            "judge": list(self.signatures),
            "human_labels": asdict(self.matched),
            "fields": [found.as_json() for found in self.fields],
            "among_people": [found.as_json() for found in self.among],
            "estimates": [found.as_json() for found in self.estimates],
            "warnings": list(self.warnings),
        }


def compare_with_people(
    outcomes: Iterable[AnyOutcome],
    human: HumanLabels,
    *,
    name: str = "labels",
    human_name: str = "human labels",
    trial: int | None = None,
    by: str | None = None,
    random_sample: bool = False,
) -> PeopleAgreement:
    """Compare a judge's labels with human labels.

    Where several people judged the same, a field that says yes or no has their majority's, any
    other their mean. Where they judged every sentence of a record, the metrics that follow are
    worked out for each of them first, and then put together in the same way.

    Args:
        outcomes: the judge's outcomes, those of records that no one else judged included.
        human: the human labels.
        name: what errors call the outcomes.
        human_name: what errors call the human labels.
        trial: which trial of the labels; by default all, if no record has two.
        by: name of a metadata column to compare by as well.
        random_sample: whether the human-judged records are known to have been drawn at random.

    Raises:
        UsageError: there is no label, a record has two, no record has the column, or no human
            label speaks of what the judge labelled.
    """
    wanted = {label.id for label in human.labels}
    metrics = record_fields(human)

    def keep(record: LabelRecord) -> Judged:
        return judged(record, metrics, by, in_full=record.id in wanted)

    side = labels_by_id(outcomes, keep, name=name, trial=trial)
    check_column(side, by)
    people = People(human, side, human_name)
    return PeopleAgreement(
        signatures=side.signatures,
        matched=people.matched,
        fields=tuple(_fields(people, side)),
        among=tuple(_among(people)),
        estimates=tuple(_estimates(people, side, metrics, random_sample=random_sample)),
        warnings=tuple(_warnings(people, side)),
    )


def _fields(people: People, side: LabelsById[Judged]) -> Iterator[FieldAgreement]:
    """Judge against people on every field, all records first, then each group."""
    counted: dict[tuple[str | None, str], Counter[Pattern]] = defaultdict(Counter)
    tied: Counter[tuple[str | None, str]] = Counter()
    for item, value in people.verdict.items():
        name, field, _ = item
        group = side.labelled[name].group
        for part in dict.fromkeys([None, group]):
            counted[part, field][_judge_value(item, side), value] += 1
            tied[part, field] += value is None
    for group in _groups(side):
        for field in people.fields():
            if (group, field) in counted:
                unit = UNITS.get(field, RECORD)
                found = field_agreement(field, unit, group, counted[group, field])
                yield replace(found, tied=tied[group, field])


def _judge_value(item: Item, side: LabelsById[Judged]) -> float | None:
    name, field, sentence = item
    judged = side.labelled[name]
    if sentence is None:
        return judged.values[field]
    verdict = judged.verdicts[field][sentence]
    return None if verdict is None else float(verdict)


def _groups(side: LabelsById[Judged]) -> list[str | None]:
    """All records together, then each group."""
    groups = {judged.group for judged in side.labelled.values()}
    return [None, *sorted(group for group in groups if group is not None)]


def _among(people: People) -> Iterator[Among]:
    """People against each other, on what two or more of them judged."""
    by_field: dict[str, list[dict[str, float]]] = defaultdict(list)
    for (_, field, _), by_annotator in people.said.items():
        by_field[field].append(by_annotator)
    for field, units in by_field.items():
        annotators = sorted({annotator for unit in units for annotator in unit})
        ratings = Ratings.of([[unit.get(a) for a in annotators] for unit in units])
        if ratings.units:
            _, ac1, alpha = coefficients(ratings)
            yield Among(field, alpha, ac1)


def _estimates(
    people: People, side: LabelsById[Judged], metrics: Sequence[str], *, random_sample: bool
) -> Iterator[Estimates]:
    parts: dict[str | None, list[str]] = defaultdict(list)
    for name, kept in side.labelled.items():
        for part in dict.fromkeys([None, kept.group]):
            parts[part].append(name)
    said = {metric: people.of_records(metric) for metric in metrics}
    for group in _groups(side):
        for metric in metrics:
            values = {name: side.labelled[name].values[metric] for name in parts[group]}
            if group is not None and values.keys().isdisjoint(said[metric]):
                continue  # people judged none of the group: there is nothing to set side by side
            yield estimate(metric, group, values, said[metric], random_sample=random_sample)


def _warnings(people: People, side: LabelsById[Judged]) -> Iterator[str]:
    """What else to know of the numbers."""
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
            f"derived from people's judgements of every sentence: {named} records, for each person "
            "first, and then their majority or mean; what people said of a record itself goes "
            "before what they said of its sentences"
        )
