"""Agreement between the labels that two judges, prompts, profiles or trials gave the same records.

Records are paired by id, and only where question, documents and response are the same sentences.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import Unpack

from labeler.calculators.intervals import Interval
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
from labeler.comparing.options import SideKeywords, side_options
from labeler.comparing.pairs import PairCounts, Pairs, read_pairs
from labeler.labels.record import AnyOutcome
from labeler.sentences.display import Column, Display, Displayed, Grid, Section, number


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
        return lines

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


def compare_labels(
    a: Iterable[AnyOutcome],
    b: Iterable[AnyOutcome],
    *,
    names: tuple[str, str] = ("A", "B"),
    **sides: Unpack[SideKeywords],
) -> LabelAgreement:
    """Measure the agreement of two sides on the records that both have.

    Args:
        a: outcomes of side A.
        b: outcomes of side B.
        names: names of the sides in errors.
        sides: ``by``, a metadata column to group by as well, and the choice of labels; see
            :class:`labeler.comparing.options.SideOptions`.

    Returns:
        Agreement by field: share of equal verdicts, kappa, AC1, alpha, each with its interval.

    Raises:
        UsageError: a side has no label that fits the choice, or two different ones of a record; no
            record can be compared; or no label has the column.

    Example:
        >>> labeler.comparing.compare_labels(labels, labels).fields[0].raw
        1.0
    """
    (pairs,) = read_pairs(
        [a, b], (verdicts_of, verdicts_of), side_options(sides, compare_labels), names=names
    )
    return LabelAgreement(pairs.a.signatures, pairs.b.signatures, pairs.counts, _fields(pairs))


def _fields(pairs: Pairs[dict[str, tuple[bool | None, ...]]]) -> tuple[FieldAgreement, ...]:
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


# Fields in full.

ALL = "all"
"""Name of all groups together."""


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
        yield Section(group or ALL if len(groups) > 1 else group, [Grid(columns, rows)])


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
    return name if group is None else f"{name} in {group}"
