"""The selection of the labels that people judged, kept in the signature of corrected labels.

If people judge only labels of one kind, such as those that the judge called unsupported, they
correct errors in one direction. The means of such labels can be further from the truth than the
judge's own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

from labeler.data.corrections.correction import Correction
from labeler.labels.record import AnyOutcome, LabelRecord

JUDGED = "judged"
"""The sampling fact with the selection in a signature."""
_PRINTED = re.compile(rf"\|{JUDGED}:(\d+) of (\d+), (\d+) at random(?:\||$)", re.ASCII)


class Selection(NamedTuple):
    """Numbers of labels of one judge configuration.

    Attributes:
        judged: labels that people judged.
        labels: all labels.
        random: judged labels that were drawn at random.
    """

    judged: int
    labels: int
    random: int

    @classmethod
    def printed_in(cls, label: str | None) -> Selection | None:
        """Return the selection in a printed signature; ``None`` if people judged no label."""
        found = _PRINTED.search(label or "")
        return cls(*map(int, found.groups())) if found else None

    def __str__(self) -> str:
        return f"{self.judged} of {self.labels}, {self.random} at random"

    @property
    def is_biased(self) -> bool:
        """True if people judged some labels only, and not all of these were drawn at random."""
        return self.random < self.judged < self.labels

    @property
    def warning(self) -> str:
        """The consequence of a biased selection, and the remedy."""
        sample = "" if self.random else "labeler review LABELS --queue random --sample 100, then "
        return (
            f"people judged {self.judged:,} of these {self.labels:,} labels, {self.random:,} of "
            "them drawn at random, so means and intervals are biased; for all records: "
            f"{sample}labeler agree LABELS --human CORRECTIONS --random-sample"
        )


def selection_warnings(labels: Iterable[str | None]) -> Iterator[str]:
    """Yield each warning of printed signatures once."""
    found = dict.fromkeys(map(Selection.printed_in, labels))
    yield from (one.warning for one in found if one and one.is_biased)


def drawn_at_random(events: Iterable[Correction]) -> frozenset[str]:
    """Return the keys of the labels that were ever drawn at random.

    A person may judge such a label again from another queue, or take a judgment back: the label
    stays in the random sample.
    """
    return frozenset(event.key for event in events if event.queue == "random")


class LabelCounts:
    """Numbers of labels by printed signature, all of them and by the keys of judged ones.

    Args:
        keys: keys of the labels that people may have judged.
    """

    def __init__(self, keys: Container[str]) -> None:
        self._keys = keys
        self._labels = Counter[str]()
        self._by_key = Counter[tuple[str, str]]()

    def watch(self, outcomes: Iterable[AnyOutcome]) -> Iterator[AnyOutcome]:
        """Yield outcomes, and count the labels among them."""
        for outcome in outcomes:
            if isinstance(outcome, LabelRecord):
                printed = str(outcome.signature)
                self._labels[printed] += 1
                if outcome.key in self._keys:
                    self._by_key[printed, outcome.key] += 1
            yield outcome

    def selections(self, judged: Container[str], random: Container[str]) -> dict[str, Selection]:
        """Return the selections by printed signature.

        Args:
            judged: keys of the judged labels.
            random: keys of the labels that were drawn at random.
        """
        found = dict[str, Selection]()
        for (printed, key), count in self._by_key.items():
            if key in judged:
                before = found.get(printed, Selection(0, self._labels[printed], 0))
                drawn = count if key in random else 0
                found[printed] = Selection(
                    before.judged + count, before.labels, before.random + drawn
                )
        return found
