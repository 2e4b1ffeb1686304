"""Agreement between the labels that two judges, prompts, profiles or trials gave the same records.

Records are paired by id, and only where question, documents and response are the same sentences.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from labeler.calculators.rater_agreement import UNITS, FieldAgreement, field_agreement, verdicts_of
from labeler.calculators.statistics.agreement import Pattern
from labeler.comparing.pairs import PairCounts, Pairs, choose_sides, join, read_side
from labeler.labels.record import AnyOutcome


@dataclass(frozen=True)
class LabelAgreement:
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
    by: str | None = None,
    a_signature: str | None = None,
    b_signature: str | None = None,
    trial: int | None = None,
    b_trial: int | None = None,
    names: tuple[str, str] = ("A", "B"),
) -> LabelAgreement:
    """Measure the agreement of two sides on the records that both have.

    Args:
        a: outcomes of side A.
        b: outcomes of side B.
        by: name of a metadata column to group by as well.
        a_signature: a part of the signature of A's labels.
        b_signature: a part of the signature of B's labels.
        trial: only labels of this trial.
        b_trial: only labels of this trial in B; by default as ``trial``.
        names: names of the sides in errors.

    Raises:
        UsageError: a side has no label that fits the choice, or two different ones of a record; no
            record can be compared; or no label has the column.
    """
    a_choice, b_choice = choose_sides(names, a_signature, b_signature, trial, b_trial)
    pairs = join(
        read_side(a, verdicts_of, a_choice, by=by),
        read_side(b, verdicts_of, b_choice, by=by),
        by=by,
    )
    return LabelAgreement(pairs.a.signatures, pairs.b.signatures, pairs.counts, _fields(pairs))


def _fields(pairs: Pairs[dict[str, tuple[bool | None, ...]]]) -> tuple[FieldAgreement, ...]:
    counted: dict[tuple[str | None, str], Counter[Pattern]] = defaultdict(Counter)
    groups: set[str] = set()
    for pair in pairs:
        if pair.group is not None:
            groups.add(pair.group)
        for field in UNITS:
            both = list(zip(pair.a.value[field], pair.b.value[field], strict=True))
            for group in {None, pair.group}:
                counted[group, field].update(both)
    return tuple(
        field_agreement(field, unit, group, counted[group, field])
        for group in [None, *sorted(groups)]
        for field, unit in UNITS.items()
    )
