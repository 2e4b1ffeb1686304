"""Compares the labels that two judges, prompts, profiles or trials gave to the same records."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from labeler.calculators.rater_agreement import UNITS, FieldAgreement, field_agreement, verdicts_of
from labeler.calculators.statistics.agreement import Pattern
from labeler.comparing.agreement.sides import LabelsById, check_column, group_name, labels_by_id
from labeler.errors import UsageError
from labeler.labels.record import AnyOutcome, LabelRecord, shown
from labeler.labels.signature import digest

_NAMED = 5
"""Ids that are named at most."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What is kept of a label.

    Attributes:
        sentences: digest of the question and all keyed sentences.
        group: the record's value in the grouping column.
        said: yes or no by field, in reading order.
    """

    sentences: str
    group: str | None
    said: Mapping[str, tuple[bool | None, ...]]


@dataclass(frozen=True)
class Joined:
    """What became of the records of both sides; each is counted once.

    Attributes:
        compared: records with a label of the same sentences on both sides.
        only_a: records that A labelled and B does not have.
        only_b: records that B labelled and A does not have.
        failed_a: records that failed in A and not in B.
        failed_b: records that failed in B and not in A.
        failed_both: records that failed in both.
        differing: records labelled in both whose question, documents or response are not the
            same sentences: their labels cannot be compared.
        differing_ids: the first few of them.
    """

    compared: int
    only_a: int
    only_b: int
    failed_a: int
    failed_b: int
    failed_both: int
    differing: int
    differing_ids: tuple[str, ...]


@dataclass(frozen=True)
class LabelAgreement:
    """How far two sides agree, field by field.

    Attributes:
        signatures_a: how the labels of side A were made.
        signatures_b: how those of side B were made.
        joined: what became of the records.
        fields: all records together first, then each group.
    """

    signatures_a: tuple[str, ...]
    signatures_b: tuple[str, ...]
    joined: Joined
    fields: tuple[FieldAgreement, ...]

    def as_json(self) -> dict[str, Any]:
        """The published form."""
        return {
            "a": list(self.signatures_a),
            "b": list(self.signatures_b),
            "records": asdict(self.joined),
            "fields": [found.as_json() for found in self.fields],
        }


def compare_labels(
    a: Iterable[AnyOutcome],
    b: Iterable[AnyOutcome],
    *,
    names: tuple[str, str] = ("A", "B"),
    trials: tuple[int | None, int | None] = (None, None),
    by: str | None = None,
) -> LabelAgreement:
    """Compare two sides on the records that both have.

    Records are paired by id, and only where question, documents and response are the same
    sentences: what is not is counted.

    Args:
        a: outcomes of side A.
        b: outcomes of side B.
        names: what errors call the sides.
        trials: which trial of each side; by default all, if no record has two.
        by: name of a metadata column of side A to compare by as well.

    Raises:
        UsageError: a side has no label, or two of one record, or no record has the column; or no
            record can be compared.
    """

    def keep(record: LabelRecord) -> Verdicts:
        sentences = digest(shown(record.example))
        return Verdicts(sentences, group_name(record.example.metadata, by), verdicts_of(record))

    first = labels_by_id(a, keep, name=names[0], trial=trials[0])
    second = labels_by_id(
        b, keep, name=names[1], trial=trials[1], option="--trial-b, else as --trial"
    )
    check_column(first, by)
    both = [name for name in first.labelled if name in second.labelled]
    alike = [name for name in both if _alike(first, second, name)]
    if not alike:
        raise UsageError(_nothing_common(first, second, both))
    return LabelAgreement(
        first.signatures,
        second.signatures,
        _joined(first, second, both, alike),
        _fields(first, second, alike),
    )


def _alike(first: LabelsById[Verdicts], second: LabelsById[Verdicts], name: str) -> bool:
    return first.labelled[name].sentences == second.labelled[name].sentences


def _nothing_common(
    first: LabelsById[Verdicts], second: LabelsById[Verdicts], both: list[str]
) -> str:
    if both:
        named = ", ".join(f"{name!r:.80}" for name in both[:_NAMED])
        return (
            f"{first.name} and {second.name} share {len(both)} labelled ids ({named}"
            f"{', …' if len(both) > _NAMED else ''}), but under each of them question, documents "
            "or response differ, or another splitter cut them: no label can be compared"
        )
    return (
        f"{first.name} and {second.name} have no labelled record in common: {first.name} has "
        f"{first.some()}, {second.name} has {second.some()}; records are joined by id: give both "
        "sides the same ids (--id)"
    )


def _joined(
    first: LabelsById[Verdicts], second: LabelsById[Verdicts], both: list[str], alike: list[str]
) -> Joined:
    kept = set(alike)
    differing = [name for name in both if name not in kept]
    return Joined(
        compared=len(alike),
        only_a=len(first.labelled.keys() - second.labelled.keys() - second.failed),
        only_b=len(second.labelled.keys() - first.labelled.keys() - first.failed),
        failed_a=len(first.failed - second.failed),
        failed_b=len(second.failed - first.failed),
        failed_both=len(first.failed & second.failed),
        differing=len(differing),
        differing_ids=tuple(differing[:_NAMED]),
    )


def _fields(
    first: LabelsById[Verdicts], second: LabelsById[Verdicts], names: list[str]
) -> tuple[FieldAgreement, ...]:
    counted: dict[tuple[str | None, str], Counter[Pattern]] = defaultdict(Counter)
    groups = dict.fromkeys(first.labelled[name].group for name in names)
    for name in names:
        mine, theirs = first.labelled[name], second.labelled[name]
        for field in UNITS:
            pairs = list(zip(mine.said[field], theirs.said[field], strict=True))
            counted[None, field].update(pairs)
            if mine.group is not None:
                counted[mine.group, field].update(pairs)
    ordered = [None, *sorted(group for group in groups if group is not None)]
    return tuple(
        field_agreement(field, unit, group, counted[group, field])
        for group in ordered
        for field, unit in UNITS.items()
    )
