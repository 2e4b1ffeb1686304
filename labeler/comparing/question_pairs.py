"""Pair records without ids of their own by question.

The id of such a record is a digest of its content, so an edited answer gives it another id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping
from typing import NamedTuple

from labeler.data.parsing import is_content_id


class QuestionPairs(NamedTuple):
    """Records that are paired by question, for want of ids.

    Attributes:
        names: their ids in A by their ids in B.
        unclear: records of A without a partner, whose question repeats in A or B, or is blank.
    """

    names: Mapping[str, str]
    unclear: int

    def in_a(self, name: str) -> str:
        """Return the id in A of a record of B."""
        return self.names.get(name, name)

    def note(self) -> str:
        """Return the number of records that are paired so; empty without any."""
        count = len(self.names)
        verb = "is" if count == 1 else "are"
        return f"{count:,} without an id {verb} paired by question" if count else ""

    def warning(self, total: int) -> str:
        """Return the number of records that cannot be paired, and the remedy; empty without any.

        Args:
            total: number of records with a label in A.
        """
        if not self.unclear:
            return ""
        verb = "is" if self.unclear == 1 else "are"
        return (
            f"{self.unclear:,} of {total:,} records {verb} not compared, without an id and with a "
            "question that repeats or is blank (label both sides with --id question, or with "
            "another column that names each row)"
        )


def pair_by_question(
    a: Mapping[str, Hashable], b: Mapping[str, Hashable], failed: Collection[str]
) -> QuestionPairs:
    """Pair the records whose ids are digests and stand on one side only.

    A pair has a question that no other such record of its side has.

    Args:
        a: digest of the question by id, of the labels of A; falsy for a blank question.
        b: the same of B.
        failed: ids of the failures of both sides.
    """
    alone = [
        {
            name: question
            for name, question in side.items()
            if name not in other and name not in failed and is_content_id(name)
        }
        for side, other in ((a, b), (b, a))
    ]
    counts = [Counter(side.values()) for side in alone]
    unique = [
        {question: name for name, question in side.items() if question and count[question] == 1}
        for side, count in zip(alone, counts, strict=True)
    ]
    names = {
        name: unique[0][question] for question, name in unique[1].items() if question in unique[0]
    }
    shared = sum(count for question, count in counts[0].items() if question in counts[1])
    return QuestionPairs(names, shared - len(names))
