"""Relevance over equal documents: a judge that sees the response may judge it by the response."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from labeler.labels.record import LabelRecord
from labeler.labels.signature import digest, shown
from labeler.sentences.display import Brief, percent


@dataclass(frozen=True, slots=True, repr=False)
class SameDocuments(Brief):
    """Relevance in labels of several responses to one question with the same documents.

    Relevance does not depend on the response, so that each difference is a judge inconsistency.

    Attributes:
        label: printed signature of the labels, with the model that answered.
        retrievals: questions with the same documents in the same order and several responses.
        answers: labels of these.
        differing: retrievals whose labels differ in a relevant sentence.
        sentences: document sentences, each counted once for each pair of labels.
        flipped: share of these that only one label of the pair calls relevant.
        lean: over flipped sentences that only one response of the pair uses: the share that is
            relevant by the label of that response, minus the share by the other label, from -1 to
            1. Above 0, the judge calls relevant what the response uses. ``None`` without such
            sentences.
    """

    label: str
    retrievals: int
    answers: int
    differing: int
    sentences: int
    flipped: float
    lean: float | None

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
        found = asdict(self)
        return {"signature": found.pop("label"), **found}

    def __str__(self) -> str:
        if not self.differing:
            return (
                f"relevance over equal documents: the same in all {self.answers:,} labels of "
                f"{self.retrievals:,} retrievals"
            )
        lean = "" if self.lean is None else f", lean to used sentences {self.lean:+.3f}"
        return (
            f"relevance over equal documents (judge inconsistency): {self.differing:,} of "
            f"{self.retrievals:,} retrievals with several responses differ; "
            f"{percent(self.flipped, 1)} of {self.sentences:,} sentences flipped{lean}"
        )


@dataclass(slots=True)
class _Retrieval:
    """Labels of one retrieval; no text is kept."""

    sentences: int
    keys: set[str] = field(default_factory=set)
    """Label keys."""
    found: dict[str, list[int]] = field(default_factory=dict)
    """By sentence: labels that call it relevant and used, relevant alone, and used alone."""

    def add(self, record: LabelRecord) -> None:
        if record.key in self.keys:
            return
        self.keys.add(record.key)
        relevant = set(record.label.all_relevant_sentence_keys)
        used = set(record.label.all_utilized_sentence_keys)
        for place, keys in enumerate((relevant & used, relevant - used, used - relevant)):
            for key in keys:
                self.found.setdefault(key, [0, 0, 0])[place] += 1

    def pairs(self) -> Iterator[tuple[int, int, int]]:
        """Yield for each named sentence: flipped pairs, those for the user, those for the other."""
        for both, relevant, used in self.found.values():
            neither = len(self.keys) - both - relevant - used
            yield (both + relevant) * (used + neither), both * neither, relevant * used


class RetrievalComparison:
    """Counts of relevance over equal documents, while records are read."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, _Retrieval]] = {}

    def add(self, label: str, record: LabelRecord) -> None:
        """Add a record of a judge configuration."""
        example = record.example
        seen = shown(example.model_copy(update={"response": (), "tool_outputs": ()}))
        retrievals = self._found.setdefault(label, {})
        one = retrievals.setdefault(digest(seen), _Retrieval(len(example.document_keys())))
        one.add(record)

    def results(self) -> Iterator[SameDocuments]:
        """Yield the result of each configuration with several responses over one retrieval."""
        for label, retrievals in sorted(self._found.items()):
            several = [one for one in retrievals.values() if len(one.keys) > 1]
            if several:
                yield _result(label, several)


def _result(label: str, several: list[_Retrieval]) -> SameDocuments:
    flipped = same = other = differing = sentences = 0
    for one in several:
        own = 0
        for flips, for_user, for_other in one.pairs():
            own, same, other = own + flips, same + for_user, other + for_other
        answers = len(one.keys)
        sentences += one.sentences * answers * (answers - 1) // 2
        flipped, differing = flipped + own, differing + bool(own)
    return SameDocuments(
        label=label,
        retrievals=len(several),
        answers=sum(len(one.keys) for one in several),
        differing=differing,
        sentences=sentences,
        flipped=flipped / sentences if sentences else 0.0,
        lean=(same - other) / (same + other) if same + other else None,
    )
