"""The records with the least support, and the sentences that lack it."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from math import log
from operator import itemgetter
from typing import Any, NamedTuple

from labeler.calculators.headline import Rank
from labeler.calculators.tally import Tally, tally
from labeler.errors import count_of
from labeler.labels.answers import ClaimsLabelingOutput
from labeler.labels.record import AnyOutcome, LabelRecord
from labeler.sentences.display import Display, Displayed, shortened
from labeler.sentences.example import Sentence
from labeler.sentences.words import STOP_WORDS, stems, surface_words

MOST = 5
"""Default number of records."""
_LONGEST, _LONGEST_ID = 600, 80
"""Characters of a text and of an id in a line, at most."""


class Unsupported(NamedTuple):
    """A response sentence that the documents do not fully support.

    Attributes:
        key: its key.
        text: its text.
        explanation: the judge's reason, or its probability.
        nearest: the sentence that contradicts it by the label, else the one that shares the most
            words with it, rare words first; ``None`` if no sentence shares a word.
    """

    key: str
    text: str
    explanation: str
    nearest: Sentence | None


@dataclass(frozen=True)
class WorstRecord:
    """A record with its unsupported sentences.

    Attributes:
        record: the label.
        sentences: number of judged response sentences.
        unsupported: those without full support, in order.
    """

    record: LabelRecord
    sentences: int
    unsupported: tuple[Unsupported, ...]

    @property
    def id(self) -> str:
        """The record's id."""
        return self.record.id

    def as_json(self) -> dict[str, Any]:
        """Return the published form: id, counts, and each unsupported sentence."""
        return {
            "id": self.id,
            "sentences": self.sentences,
            "unsupported": [
                one._asdict() | {"nearest": one.nearest and asdict(one.nearest)}
                for one in self.unsupported
            ],
        }


class WorstRecords(Displayed, list[WorstRecord]):
    """Records with the least support, the worst first.

    Args:
        records: the records.
        lacking: number of all records with an unsupported sentence.
        total: number of all labels.
    """

    def __init__(self, records: Iterable[WorstRecord], lacking: int, total: int) -> None:
        super().__init__(records)
        self.lacking, self.total = lacking, total

    @property
    def conclusion(self) -> str:
        """One sentence on the number of records with an unsupported sentence."""
        if not self.total:
            return "No labels."
        if not self.lacking:
            return f"Every sentence of all {self.total:,} answers is supported."
        some = f"; the {len(self)} with the least support" if len(self) < self.lacking else ""
        counted = f"{self.lacking:,} of {self.total:,} answers have an unsupported sentence"
        return f"{counted}{some}:"

    def _display(self) -> Display:
        return Display(self.conclusion, notes=list(self.lines()))

    def lines(self) -> Iterator[str]:
        """Yield lines of text: each record, its unsupported sentences, evidence and reasons."""
        for one in self:
            supported = one.sentences - len(one.unsupported)
            name = shortened(one.id, _LONGEST_ID)
            yield f"{name}: {supported} of {one.sentences} sentences supported"
            if question := one.record.example.question:
                yield f"  question: {shortened(question, _LONGEST)}"
            for lacking in one.unsupported:
                yield f"  unsupported {lacking.key}: {shortened(lacking.text, _LONGEST)}"
                if lacking.nearest is None:
                    yield "    nearest: no document sentence shares a word with it"
                else:
                    found = lacking.nearest
                    yield f"    nearest {found.key}: {shortened(found.text, _LONGEST)}"
                if lacking.explanation:
                    yield f"    because: {shortened(lacking.explanation, _LONGEST)}"


def worst_records(outcomes: Iterable[AnyOutcome], most: int = MOST) -> WorstRecords:
    """Return the records with the least support.

    The smallest share of supported sentences comes first; of equal shares the record with more
    unsupported sentences, then the earlier one. Records without an unsupported sentence and failed
    rows are left out; a repeated record counts once.

    Args:
        outcomes: of any kind; consumed once.
        most: number of records.
    """
    count_of("the number of records", most, 1)
    seen: set[tuple[str, str]] = set()
    kept: list[tuple[Rank, LabelRecord]] = []
    lacking = 0
    for position, outcome in enumerate(outcomes):
        if not isinstance(outcome, LabelRecord) or (outcome.id, outcome.key) in seen:
            continue
        seen.add((outcome.id, outcome.key))
        found = tally(outcome)
        if found.unsupported:
            lacking += 1
            share = len(found.supported) / len(found.response)
            place = Rank(share, -len(found.unsupported), position)
            insort(kept, (place, outcome), key=itemgetter(0))
            del kept[most:]
    described = (_described(record, tally(record)) for _, record in kept)
    return WorstRecords(described, lacking, len(seen))


def _described(record: LabelRecord, found: Tally) -> WorstRecord:
    nearest = _nearest(record)
    reasons = {
        entry.response_sentence_key: record.why(entry)
        for entry in reversed(record.label.sentence_support_information)
        if not entry.fully_supported
    }
    unsupported = (
        Unsupported(key, text, reasons[key], nearest(key, text))
        for key, text in found.texts.items()
        if key in found.unsupported
    )
    return WorstRecord(record, len(found.response), tuple(unsupported))


def _nearest(record: LabelRecord) -> Callable[[str, str], Sentence | None]:
    """Return a function that finds the evidence nearest to a response sentence of a record."""
    sentences = list(record.example.evidence_sentences())
    words_of = [_words(sentence.text) for sentence in sentences]
    counts = Counter(word for words in words_of for word in words)
    weights = {word: log(1 + len(sentences) / count) for word, count in counts.items()}
    contradicting: dict[str, str] = {}
    if isinstance(record.label, ClaimsLabelingOutput):
        for claim in record.label.response_claims:
            for key in claim.contradicting_sentence_keys[:1]:
                contradicting.setdefault(claim.response_sentence_key, key)

    def nearest(key: str, text: str) -> Sentence | None:
        if against := contradicting.get(key):
            return next((one for one in sentences if one.key == against), None)
        wanted = _words(text)
        shared = [
            sum(weights[word] for word in wanted & words) / (1 + len(words)) ** 0.25
            for words in words_of
        ]
        best = max(shared, default=0.0)
        return sentences[shared.index(best)] if best > 0 else None

    return nearest


def _words(text: str) -> set[str]:
    return set(stems(surface_words(text))) - STOP_WORDS
