"""Agreement of raters on the fields of a label: of two sides, or of several voters."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from labeler.calculators.agreement import (
    PAIR,
    Coefficient,
    Pattern,
    Ratings,
    agreement_intervals,
    record_sums,
    verdict_agreement,
)
from labeler.calculators.intervals import Interval, question_groups
from labeler.calculators.metrics_row import DigestMap, question_digest, row_digest
from labeler.calculators.registry import FIELD_WORDS, METRICS, OF_WHOLE_ANSWERS, plain_name
from labeler.calculators.summary import observations
from labeler.calculators.tally import claiming_keys
from labeler.labels.answers import judged_sentences
from labeler.labels.record import LabelRecord
from labeler.sentences.display import (
    LONGEST_NAME,
    NONE,
    Brief,
    Column,
    Display,
    Grid,
    percent,
    plural,
    shortened,
)

RECORD = "record"

UNITS: Mapping[str, str] = {
    "relevant": "document sentence",
    "utilized": "document sentence",
    "supported": "response sentence",
    "overall_supported": RECORD,
}
"""The yes-or-no fields of every label, and the unit that each is about."""


def is_yes_or_no(field: str) -> bool:
    """Return whether a field is yes or no, so that a majority decides; other fields are averaged.

    Decided by the field, not by its values: some files happen to hold only 0 and 1.
    """
    return field in UNITS or field in OF_WHOLE_ANSWERS


@dataclass(frozen=True, repr=False)
class FieldAgreement(Brief):
    """Agreement of two sides on one field.

    Attributes:
        field: ``relevant``, ``utilized``, ``supported``, ``overall_supported``, or a metric's id.
        unit: ``document sentence``, ``response sentence`` or ``record``.
        group: value of the grouping column; ``None`` for all records together.
        units: units that both sides judged.
        left_out: units that only one side judged, or on which people are tied.
        tied: units among those left out on which as many people say yes as no.
        raw: share of the units on which both sides agree.
        mean_a: share of yes on side A among these units; of a metric, the mean. ``None`` without
            units, or with more than two sides.
        mean_b: share of yes or mean on side B.
        questions: number of questions that intervals are drawn over, where several records ask the
            same one; ``None`` over records.
        caution: why the coefficients say little; ``None`` if they do not.
        kappa: Cohen's kappa.
        ac1: Gwet's AC1.
        alpha: Krippendorff's alpha; nominal for yes or no, interval for numbers.
    """

    field: str
    unit: str
    group: str | None
    units: int
    left_out: int
    tied: int
    raw: float | None
    mean_a: float | None
    mean_b: float | None
    questions: int | None
    caution: str | None
    kappa: Coefficient
    ac1: Coefficient
    alpha: Coefficient

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
        return asdict(self)

    @property
    def by_name(self) -> dict[str, Coefficient]:
        """Kappa, AC1 and alpha by name."""
        return {"kappa": self.kappa, "AC1": self.ac1, "alpha": self.alpha}

    @property
    def by_chance(self) -> float | None:
        """Share of the units on which two sides would agree by chance, each with its own yeses.

        Undefined when: the field is not yes or no, or there are not two sides with common units.
        """
        if self.mean_a is None or self.mean_b is None or not is_yes_or_no(self.field):
            return None
        return self.mean_a * self.mean_b + (1 - self.mean_a) * (1 - self.mean_b)

    @property
    def words(self) -> str:
        """The units in plain words."""
        if words := FIELD_WORDS.get(self.field):
            return f"{words.subject}s, {words.positive} or not"
        metric = METRICS.get(self.field)
        return plain_name(metric) if metric else self.field


def in_order(found: Iterable[FieldAgreement]) -> list[FieldAgreement]:
    """Return the fields that both sides judged, the most telling first."""
    place = {field: number for number, field in enumerate(FIELD_WORDS)}
    judged = [one for one in found if one.units]
    return sorted(judged, key=lambda one: place.get(one.field, len(place)))


def conclude_agreement(found: Iterable[FieldAgreement], sides: str) -> str:
    """Return the agreement on the most telling field in one sentence.

    Args:
        found: the agreement by field and group.
        sides: the subject of the sentence, such as ``A and B``.
    """
    first = next((one for one in in_order(found) if one.group is None), None)
    if first is None or first.raw is None:
        return f"{sides}: nothing to compare, no sentence or answer was judged on both sides."
    words, share = FIELD_WORDS.get(first.field), percent(first.raw)
    among = f"{plural(first.units, 'value')} of {first.field}"
    if words:
        among = f"{words.counted(first.units)}, {words.positive} or not"
    if first.mean_a is None:  # of more than two sides the share is a mean over pairs of them
        return f"{sides} agree pairwise on {share} of {among}."
    chance = first.by_chance
    by_chance = "" if chance is None else f"; chance alone would give {percent(chance)}"
    return f"{sides} agree on {round(first.raw * first.units):,} of {among} ({share}){by_chance}."


def show_agreement(
    title: str,
    found: Sequence[FieldAgreement],
    notes: Sequence[str] = (),
    *,
    sides: tuple[str, str] = ("A", "B"),
) -> Display:
    """Return the display of agreement: shares in percent, one row per group and field.

    Args:
        title: the conclusion.
        found: the agreement by field and group.
        notes: lines below the table.
        sides: names of both sides.
    """
    columns = [Column("verdicts on", words=True), Column("group", words=True)]
    columns += [Column("number", drop=2), Column("agree"), Column("by chance", drop=3)]
    columns += [Column(f"{side}: yes", drop=1) for side in sides]
    cells, every = [], NONE if all(one.group is None for one in found) else "all"
    for one in sorted(in_order(found), key=lambda one: (one.group is not None, one.group)):
        chance = None if one.raw is None else one.by_chance
        yes = (None, None) if chance is None else (one.mean_a, one.mean_b)
        shares = (NONE if share is None else percent(share) for share in (one.raw, chance, *yes))
        cells.append(
            [one.words, shortened(one.group or every, LONGEST_NAME), f"{one.units:,}", *shares]
        )
    grid = Grid(columns, cells)
    for column, *own in zip(columns, *cells, strict=True):
        if set(own) == {NONE}:  # without groups, or with more than two voters
            grid = grid.without(column.head)
    return Display(title, grid, notes)


@dataclass
class FieldRatings:
    """The ratings of one field by two or more sides.

    Attributes:
        patterns: number of units by ratings, one rating a side: yes or no, or numbers.
        most: records up to which there are intervals; their sums are kept in memory.
        sums: of each record, by :func:`labeler.calculators.agreement.record_sums`.
        questions: of each record; equal ones are drawn together.
    """

    patterns: Counter[Pattern] = field(default_factory=Counter)
    most: float = math.inf
    sums: list[Sequence[float]] = field(default_factory=list, repr=False)
    questions: list[int | None] = field(default_factory=list, repr=False)

    def add(self, patterns: Sequence[Pattern], question: int | None) -> None:
        """Add the ratings of a record's units; without a rating it is drawn for no interval."""
        self.patterns.update(patterns)
        if len(self.questions) <= self.most and any(sums := record_sums(patterns)):
            self.sums.append(array("d", sums))
            self.questions.append(question)

    def agreement(self, name: str, group: str | None = None, tied: int = 0) -> FieldAgreement:
        """Measure the agreement of the sides.

        Args:
            name: the field.
            group: value of the grouping column, if the records are one group.
            tied: units on which as many people say yes as no.
        """
        ratings, questions = Ratings(self.patterns), None
        raw, found = ratings.raw, verdict_agreement(ratings)
        if self.sums and len(self.questions) <= self.most:
            questions, groups = observations(self.questions)
            drawn = agreement_intervals(self.sums, raters=ratings.raters, groups=groups)
            for coefficient, one in found.items():
                if one.value is not None:
                    found[coefficient] = replace(one, interval=drawn.get(coefficient))
        return FieldAgreement(
            field=name,
            unit=UNITS.get(name, RECORD),
            group=group,
            units=ratings.units,
            left_out=sum(ratings.all.values()) - ratings.units,
            tied=tied,
            raw=None if raw is None else float(raw),
            mean_a=_mean(ratings, 0),
            mean_b=_mean(ratings, 1),
            questions=questions,
            caution=ratings.caution,
            **found,
        )


def _mean(ratings: Ratings, side: int) -> float | None:
    """Return the mean of one side of two over the units that both judged."""
    if ratings.raters > PAIR or not ratings.units:
        return None
    given = [(pattern[side], count) for pattern, count in ratings.paired.items()]
    return sum(float(value) * count for value, count in given if value is not None) / ratings.units


def verdicts_of(record: LabelRecord) -> dict[str, tuple[bool | None, ...]]:
    """Return the yes-or-no verdicts of a label by field, in reading order.

    A response sentence without a judgment, which only imported labels have, is ``None``. One that
    was judged twice is supported if both judgments say so, and sentences that only name sources are
    left out, as in the metrics.
    """
    label, example = record.label, record.example
    relevant = set(label.all_relevant_sentence_keys)
    utilized = set(label.all_utilized_sentence_keys)
    supported = {key: entry.fully_supported for key, entry in judged_sentences(label).items()}
    documents = example.document_keys()
    return {
        "relevant": tuple(key in relevant for key in documents),
        "utilized": tuple(key in utilized for key in documents),
        "supported": tuple(supported.get(key) for key in claiming_keys(example)),
        "overall_supported": (label.overall_supported,),
    }


MOST_RECORDS = 100_000
"""Records of votes up to which there are intervals; their sums are kept in memory."""


@dataclass
class Votes:
    """The verdicts of several voters, counted.

    Attributes:
        fields: the verdicts by field of the label.

    Example:
        >>> votes = labeler.calculators.Votes()
        >>> found = labeler.label("examples/rows.jsonl", judge="embedded", repeat=2, votes=votes)
        >>> votes.agreement()[0].raw
        1.0
    """

    fields: dict[str, FieldRatings] = field(default_factory=dict)
    _known: DigestMap = field(default_factory=DigestMap, init=False, repr=False, compare=False)
    """Rows that are counted."""

    def agreement(self) -> list[FieldAgreement]:
        """Return the agreement of the voters, field by field, over all counted records."""
        return [ratings.agreement(name) for name, ratings in self.fields.items()]

    def count(self, votes: Sequence[LabelRecord | None]) -> None:
        """Count the votes on one record; ``None`` stands for a voter without a label.

        A record whose id and label keys repeat counts once.
        """
        keys = ",".join(vote.key if vote else "" for vote in votes)
        name = next((vote.id for vote in votes if vote), "")
        if self._known.add(row_digest(name, keys), 1):
            return
        verdicts = [verdicts_of(vote) if vote else None for vote in votes]
        shape = next((fields for fields in verdicts if fields), {})
        question = next((vote.example.question for vote in votes if vote), "")
        key = question_digest(question) or None
        for name, units in shape.items():
            patterns: list[Pattern] = [
                tuple(one[name][place] if one else None for one in verdicts)
                for place in range(len(units))
            ]
            ratings = self.fields.setdefault(name, FieldRatings(most=MOST_RECORDS))
            ratings.add(patterns, key)


def interval_line(
    where: str, intervals: Mapping[str, Interval], questions: int | None
) -> Iterator[str]:
    """Yield a line of intervals by name, if there are any, with the units that were observed."""
    if intervals:
        over = "over records" if questions is None else question_groups(questions)
        ends = [
            f"{name} {found.low:.4f} to {found.high:.4f}{found.mark}"
            for name, found in intervals.items()
        ]
        yield f"95 % intervals {over}, {where}: {', '.join(ends)}"
