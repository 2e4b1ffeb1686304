"""The labels that people judged: how many there are, and which were drawn at random."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator

from labeler.data.corrections.correction import Correction
from labeler.labels.record import AnyOutcome, LabelRecord
from labeler.labels.signature import ReviewCounts


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

    def selections(self, judged: Container[str], random: Container[str]) -> dict[str, ReviewCounts]:
        """Return the selections by printed signature.

        Args:
            judged: keys of the judged labels.
            random: keys of the labels that were drawn at random.
        """
        found = dict[str, ReviewCounts]()
        for (printed, key), count in self._by_key.items():
            if key in judged:
                before = found.get(printed, ReviewCounts(0, self._labels[printed], 0))
                drawn = count if key in random else 0
                found[printed] = ReviewCounts(
                    before.judged + count, before.labels, before.random + drawn
                )
        return found
