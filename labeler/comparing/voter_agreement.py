"""How far several voters agree on the records of one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from labeler.calculators.rater_agreement import UNITS, FieldAgreement, field_agreement, verdicts_of
from labeler.calculators.statistics.agreement import Pattern
from labeler.labels.record import LabelRecord


@dataclass
class Votes:
    """What the voters said, counted: what is known of their agreement.

    Attributes:
        fields: how often each pattern of verdicts occurs, by field of the label.
    """

    fields: dict[str, Counter[Pattern]] = field(default_factory=dict)

    def agreement(self) -> list[FieldAgreement]:
        """How far the voters agree, field by field, over all that was counted so far."""
        return [
            field_agreement(name, UNITS[name], None, patterns)
            for name, patterns in self.fields.items()
        ]

    def count(self, votes: Sequence[LabelRecord | None]) -> None:
        """Count what was said of one record; ``None`` stands for who gave no label."""
        said = [verdicts_of(vote) if vote else None for vote in votes]
        shape = next((fields for fields in said if fields), {})
        for name, units in shape.items():
            patterns = self.fields.setdefault(name, Counter())
            for place in range(len(units)):
                patterns[tuple(one[name][place] if one else None for one in said)] += 1
