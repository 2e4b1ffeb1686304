"""Copies of stored records: made, damaged or left as they were, and asked about again.

A maker changes one response sentence, or the texts around it, as its :class:`Kind` says. It returns
``None`` where the sentence or the record does not allow it. Choices follow from the random
generator alone, so the same records give the same copies, with the same label keys.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain, zip_longest
from pathlib import Path
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

from labeler.calculators.significance import Undefined, paired_interval
from labeler.data.options import DEFAULT_STORE
from labeler.labeling.options import dollars
from labeler.labels.answers import SPECIAL_SUPPORT, judged_sentences, profile_of
from labeler.labels.record import LabelFailure, LabelRecord, Outcome
from labeler.labels.signature import digest
from labeler.sentences.citations import find_markers, without_markers
from labeler.sentences.example import Example, KeyedExample, Sentence, position
from labeler.sentences.words import STOP_WORDS, surface_words

T = TypeVar("T")

COPIES = "copies"
"""Folder inside a label store. Its answers label no row, so no number may count them."""
_LEAST = Decimal("1e-9")
"""A budget that covers no request."""
DAMAGED, HARMLESS, EVIDENCE = "damaged", "harmless", "evidence"
AGAIN = "again"
"""The kind whose errors are the judge's own noise."""

_NUMBER = re.compile(r"(?<![\w.,-])(\d+)((?:[.,]\d+)*)(?![\w-])")
_NAME = re.compile(r"(?<=[\s(\"'«„“])[^\W\d_][\w\u2019'-]{2,}")
_LIST_NUMBER = re.compile(
    r"(?m)^\W*\d+(?:\.\d+)*[.):]\s"
    r"|(?<!\S)\d{1,2}[.)](?=\s*\Z|\s+[^\w\s]?[^\W\d_a-z])"  # "Open it. 2." or "Open it 2. Close it"
)
"""The number of a list item, which a splitter may leave at the end of the sentence before."""
_NEGATED = re.compile(
    r"\b(is|are|was|were|can|will|(?:c|w|sh)ould|must|has|have|had|does|do)\b(?! not|\S\w)"
)
_ENGLISH = re.compile(r"\b(?:the|of|and|with|this)\b", re.IGNORECASE)
"""Words that show a language, as others have a *was* and a *will* too."""
_STEPS = (3, 7, 11, 19, 40)
"""Differences from a number to those that may replace it."""
_DETAILS = (
    "as Maren Halvik reported in 1987",
    "which Odalis Brenner confirmed in Tarnow",
    "at a cost of 48.3 million dollars",
    "according to the Veldhuis survey of 2011",
)
_PADDING = ("I hope that this answers your question.", "Feel free to ask if anything is unclear.")
_MOST_SHARED = 0.5
"""Share of a foreign sentence's words that the documents may have."""
_OTHERS = 20
"""Other sentences that one is taken from."""


class Target(NamedTuple):
    """A response sentence that a label calls supported, and all texts that may support it."""

    record: LabelRecord
    key: str
    text: str
    support: list[Sentence]
    evidence: str

    def saying(self, text: str) -> KeyedExample:
        """Return the example with another text of the sentence."""
        example, changed = self.record.example, {self.key: text}
        response = (replace(one, text=changed.get(one.key, one.text)) for one in example.response)
        return example.model_copy(update={"response": tuple(response)})


def targets_of(record: LabelRecord) -> Iterator[Target]:
    """Yield the sentences that a label calls supported, by sentences of the record."""
    evidence = list(record.example.evidence_sentences())
    texts = {one.key: one.text for one in record.example.response}
    for key, one in judged_sentences(record.label).items():
        named = {*one.supporting_sentence_keys}
        if one.fully_supported and named and named.isdisjoint(SPECIAL_SUPPORT):
            support = [each for each in evidence if each.key in named]
            yield Target(record, key, texts[key], support, _lines(evidence))


class Kind(NamedTuple):
    """One kind of copy: its name and group in tables, what was done in words, and its maker."""

    name: str
    group: str
    says: str
    copy: Callable[[Target, Sequence[Target], Random], KeyedExample | None]


def _number(target: Target, _: Sequence[Target], random: Random) -> KeyedExample | None:
    return _replaced(target, _NUMBER, random)


def _name(target: Target, others: Sequence[Target], random: Random) -> KeyedExample | None:
    found = (one[0] for other in _some(others, random) for one in _NAME.finditer(other.text))
    return _replaced(target, _NAME, random, [one for one in found if one not in target.evidence])


def _negation(target: Target, *_: object) -> KeyedExample | None:
    text = target.text
    changed = _NEGATED.sub(r"\1 not", text, count=1)
    is_english = _ENGLISH.search(f"{text}\n{target.evidence}")
    return target.saying(changed) if is_english and changed != text else None


def _swap(target: Target, _: Sequence[Target], random: Random) -> KeyedExample | None:
    own = target.text + _lines(target.support)
    for pattern in random.sample((_NUMBER, _NAME), 2):
        found = {one[0] for one in pattern.finditer(target.evidence)}
        known = sorted(one for one in found if one not in own and not one[0].islower())
        if changed := _replaced(target, pattern, random, random.sample(known, len(known))):
            return changed
    return None


def _foreign(target: Target, others: Sequence[Target], random: Random) -> KeyedExample | None:
    known, question = set(surface_words(target.evidence)), target.record.example.question
    for other in _some(others, random):
        text = without_markers(other.text)
        shared = [word in known for word in surface_words(text)]
        is_other = other.record.example.question != question
        if is_other and shared and sum(shared) <= _MOST_SHARED * len(shared):
            return target.saying(text)
    return None


def _invented(target: Target, _: Sequence[Target], random: Random) -> KeyedExample | None:
    detail, text = random.choice(_DETAILS), target.text.rstrip()
    body = text.rstrip(".!?。 ")
    if detail in target.evidence or not body:
        return None
    return target.saying(f"{body}, {detail}{text[len(body) :] or '.'}")


def _deletion(target: Target, *_: object) -> KeyedExample | None:
    example, support = target.record.example, {one.text for one in target.support}

    def kept(sentences: Sequence[Sentence]) -> tuple[Sentence, ...]:
        return tuple(one for one in sentences if one.text not in support)

    changes: dict[str, Any] = {"documents": tuple(map(kept, example.documents))}
    for field in ("history", "tool_outputs"):
        turns = (replace(one, sentences=kept(one.sentences)) for one in getattr(example, field))
        changes[field] = tuple(one for one in turns if one.sentences)
    return example.model_copy(update=changes)


def _order(target: Target, *_: object) -> KeyedExample | None:
    example = target.record.example
    if len({tuple(one.text for one in each) for each in example.documents if each}) < 2:  # noqa: PLR2004 - one has no order
        return None
    return example.model_copy(update={"documents": example.documents[::-1]})


def _citations(target: Target, *_: object) -> KeyedExample | None:
    keys = (one.key for one in target.support)
    numbers = sorted({position(key).document + 1 for key in keys if key[0].isdigit()})
    if not numbers or find_markers(target.text):
        return None
    return target.saying(f"{target.text} {''.join(f'[{one}]' for one in numbers)}")


def _padding(target: Target, *_: object) -> KeyedExample | None:
    example = target.record.example
    added = tuple(Sentence("", text, 0, 0) for text in _PADDING)
    return example.model_copy(update={"response": (*example.response, *added)})


def _replaced(
    target: Target, pattern: re.Pattern[str], random: Random, known: Sequence[str] | None = None
) -> KeyedExample | None:
    """Replace one match of a pattern that is neither a citation marker nor a list number.

    A known number replaces a number, a known name a name; by default a new number does.
    """
    text = target.text
    apart = [range(one.start, one.end) for one in find_markers(text)]
    apart += [range(*one.span()) for one in _LIST_NUMBER.finditer(text)]
    found = [one for one in pattern.finditer(text) if not any(one.start() in own for own in apart)]
    for match in random.sample(found, len(found)):
        kind, others = _kind_of(match[0]), known
        if others is None:
            tried = [f"{int(match[1]) + step}{match[2]}" for step in _STEPS]
            others = [one for one in tried if one not in target.evidence]
        for other in others:
            if kind and kind == _kind_of(other) and other != match[0]:
                return target.saying(f"{text[: match.start()]}{other}{text[match.end() :]}")
    return None


def _some(others: Sequence[Target], random: Random) -> list[Target]:
    return random.sample(others, min(_OTHERS, len(others)))


def _lines(sentences: Iterable[Sentence]) -> str:
    return "\n".join(one.text for one in sentences)


def _kind_of(word: str) -> str:
    if word[0].isupper() and word.lower() not in STOP_WORDS:
        return "name"
    return "number" * word[0].isdigit()


KINDS = (
    # Numbers, names and details are such as no document of the record has.
    Kind("number", DAMAGED, "a number is another one", _number),
    Kind("name", DAMAGED, "a name is another one", _name),
    Kind("negation", DAMAGED, "it says the contrary", _negation),
    Kind("swap", DAMAGED, "a number or name from elsewhere in the documents", _swap),
    Kind("foreign", DAMAGED, "a sentence of another answer", _foreign),
    Kind("invented", DAMAGED, "a detail is added", _invented),
    Kind("deletion", EVIDENCE, "the supporting sentences are removed", _deletion),
    Kind(AGAIN, HARMLESS, "asked again, nothing changed", lambda one, *_: one.record.example),
    Kind("order", HARMLESS, "documents in the reverse order", _order),
    Kind("citations", HARMLESS, "the support is cited", _citations),
    Kind("padding", HARMLESS, "two sentences without content are added", _padding),
)
"""Kinds of copies, in the order of tables."""


class Sample(Generic[T]):
    """Chooses n values by the least digests of their content, however many there are."""

    def __init__(self, n: int) -> None:
        self._n, self._found = n, dict[str, T]()

    def add(self, content: object, value: T) -> None:
        """Add a value, unless one of equal content is known."""
        self._found.setdefault(digest(content), value)
        if len(self._found) > 4 * self._n:  # no more in memory than may be chosen
            self._found = dict(self.least())

    def least(self) -> list[tuple[str, T]]:
        """Return the chosen values and their digests; fewer than n if there are not so many."""
        return sorted(self._found.items())[: self._n]


def in_turn(groups: Iterable[Iterable[T]]) -> list[T]:
    """Return the first value of each group, then the second one of each, and so on."""
    return [one for one in chain.from_iterable(zip_longest(*groups)) if one is not None]


@dataclass(frozen=True)
class Difference:
    """Mean difference of values of the same copies or records, first minus second, at 95 %."""

    value: float
    interval: tuple[float, float]


def paired_difference(pairs: Iterable[tuple[float | None, float | None]]) -> Difference | None:
    """Return the mean difference, first minus second; ``None`` for fewer than 2 whole pairs."""
    found = [a - b for a, b in pairs if a is not None and b is not None]
    ends = paired_interval(found)
    if isinstance(ends, Undefined):
        return None
    return Difference(math.fsum(found) / len(found), (ends.low, ends.high))


def as_example(example: KeyedExample, name: str | None = None) -> Example:
    """Return a keyed example as a row with given sentences, so that it gets the same keys again."""

    def text(sentences: Iterable[Sentence]) -> str:
        return " ".join(one.text for one in sentences)

    documents = tuple(tuple(one.text for one in each) for each in example.documents)
    turns = [{"role": one.role, "text": text(one.sentences)} for one in example.history]
    calls = example.tool_outputs
    outputs = [{"name": one.name or "", "text": text(one.sentences)} for one in calls]
    return Example(
        id=name or example.id,
        question=example.question,
        documents=tuple(map(" ".join, documents)),
        response=text(example.response),
        reference=None if example.reference is None else text(example.reference),
        metadata=example.metadata,
        documents_sentences=documents,
        response_sentences=tuple(one.text for one in example.response),
        history=turns or None,
        tool_outputs=outputs or None,
    )


def asked_like(record: LabelRecord) -> dict[str, Any]:
    """Return the options of :func:`labeler.label` that ask what a label's judge was asked."""
    signature = record.signature
    asked = {"profile": profile_of(signature.response_schema.name).name}
    if record.retrieval is not None:
        asked["relevance"] = "blind"
    return asked | ({"instructions": signature.instructions} if signature.instructions else {})


class Asking:
    """Asks judges in several runs within one budget in US dollars.

    Counts ``requests``, and keeps the message of the first failure in ``why``.
    """

    def __init__(self, budget: Any = None) -> None:  # noqa: ANN401 - checked here
        self._left, self.requests, self.why = dollars("--budget", budget), 0, ""

    def __call__(
        self, rows: Sequence[Example], options: Mapping[str, Any], *, are_copies: bool = True
    ) -> list[Outcome]:
        """Return the outcome for each row, in order; copies stay in :data:`COPIES`."""
        import labeler  # noqa: PLC0415 - the front door, which is above

        if not rows:
            return []
        asked, store = dict(options), options.get("store", DEFAULT_STORE)
        folder = getattr(store, "directory", store)
        if are_copies and isinstance(folder, str | Path):
            asked["store"] = Path(folder) / COPIES
        if self._left is not None:
            asked["budget"] = self._left  # the first run rejects what no budget is
        labels = labeler.label(rows, **asked)
        self.requests += labels.cost.requests
        if self._left is not None:
            spent = Decimal(str(labels.cost.dollars or 0))
            self._left = _LEAST if labels.cost.unmetered else max(self._left - spent, _LEAST)
        outcomes = list(labels)
        if not self.why:
            lost = [one.message for one in outcomes if isinstance(one, LabelFailure)]
            self.why = lost[0] if lost else ""
        return outcomes
