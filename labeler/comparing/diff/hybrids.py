"""Labels between two labels of the same sentences: A's with some of B's decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from labeler.calculators import Tally, tally
from labeler.comparing.diff.decisions import SENTENCE_FIELDS, DecisionFlip, Field
from labeler.comparing.diff.flips import Side, flips_between
from labeler.comparing.diff.given import Answer, Given
from labeler.labels.record import LabelRecord

_KEPT = 1 << 10
"""Labels between two that are kept, so that several metrics can read them: those of all sets of a
few flips."""


class Hybrids:
    """All labels that lie between two, as metrics read them.

    A set of flips is a number whose bit ``n`` stands for the ``n``-th flip: 0 is A's label, and
    all bits together are B's.

    Args:
        a: the record with A's label.
        b: the same sentences with B's label.
    """

    def __init__(self, a: LabelRecord, b: LabelRecord) -> None:
        self._a = Side(a.label, tally(a))
        self._b = Side(b.label, tally(b))
        self.flips: tuple[DecisionFlip, ...]
        self.flips, self._given = flips_between(a.example, self._a, self._b)
        self._example = a.example
        self._places: dict[Field, list[tuple[int, str]]] = {}
        for place, flip in enumerate(self.flips):
            self._places.setdefault(flip.field, []).append((1 << place, flip.key))
        self.all = (1 << len(self.flips)) - 1
        self.answers_read = 0
        """How often a metric read an answer as it was given."""
        self._made: dict[int, Tally] = {}
        self._answers: dict[int, Answer] = {}
        self._shared = {name: getattr(self._a.tally, name) for name in _COUNTS}
        self._document = {
            sentence.key: number
            for number, document in enumerate(a.example.documents)
            for sentence in document
        }
        self._groups = [group for group in self._all_groups() if group.bits]

    def first(self) -> Tally:
        """What metrics read of A's label."""
        return self._tally(_counted(self._a.tally), lambda: self._answer_of(self._a.tally))

    def last(self) -> Tally:
        """What metrics read of B's label."""
        return self._tally(_counted(self._b.tally), lambda: self._answer_of(self._b.tally))

    def at(self, taken: int) -> Tally:
        """What metrics read of A's label with a set of B's decisions."""
        if taken not in self._made:
            _bound(self._made)
            self._made[taken] = self._tally(self._counted(taken), lambda: self._answer(taken))
        return self._made[taken]

    def shows(self, place: int) -> bool:
        """Whether a flip changes anything besides the answer as it was given."""
        flip, a, b = self.flips[place], self._a.tally, self._b.tally
        if flip.field == "supporting_keys":
            return any((flip.key in x) != (flip.key in y) for x, y in _cited(a, b))
        return flip.field != "as_given"

    def _tally(self, counts: dict[str, Any], answer: Callable[[], Answer]) -> Tally:
        return _Hybrid(counts, answer, self._document)

    def _counted(self, taken: int) -> dict[str, Any]:
        """What metrics count; what flips of some fields change is made once for each set."""
        found = dict(self._shared)
        for group in self._groups:
            found.update(group.counts(taken))
        return found

    def _all_groups(self) -> Iterator[_Group]:
        yield _Group(self._bits("relevant"), lambda taken: self._marked(taken, "relevant"))
        yield _Group(self._bits("utilized"), lambda taken: self._marked(taken, "utilized"))
        yield _Group(self._bits(*SENTENCE_FIELDS), self._judged)
        yield _Group(self._bits("claims"), lambda _: {"claims": self._b.tally.claims})
        yield _Group(
            self._bits("reference_claims"),
            lambda _: {"reference_claims": self._b.tally.reference_claims},
        )

    def _bits(self, *fields: Field) -> int:
        return sum(bit for field in fields for bit, _ in self._places.get(field, ()))

    def _marked(self, taken: int, field: Field) -> dict[str, Any]:
        return {field: getattr(self._a.tally, field) ^ self._keys(taken, field)}

    def _judged(self, taken: int) -> dict[str, Any]:
        from_b = self._keys(taken, *SENTENCE_FIELDS)
        return {
            name: (getattr(self._a.tally, name) - from_b) | (getattr(self._b.tally, name) & from_b)
            for name in _JUDGED
        }

    def _keys(self, taken: int, *fields: Field) -> frozenset[str]:
        """Sentences whose decisions of some fields are B's."""
        return frozenset(
            [key for field in fields for bit, key in self._places.get(field, ()) if taken & bit]
        )

    def _has(self, taken: int, field: Field) -> bool:
        """Whether the one decision of a field is among those taken from B."""
        return bool(taken & self._bits(field))

    def _answer_of(self, end: Tally) -> Answer:
        self.answers_read += 1
        return end.stored

    def _answer(self, taken: int) -> Answer:
        self.answers_read += 1
        if taken not in self._answers:
            _bound(self._answers)
            self._answers[taken] = self._mixed.mixed(
                relevant=self._keys(taken, "relevant"),
                utilized=self._keys(taken, "utilized"),
                judged=self._keys(taken, *SENTENCE_FIELDS),
                overall=self._overall(taken),
                rest=int(self._has(taken, "as_given")),
            )
        return self._answers[taken]

    def _overall(self, taken: int) -> bool:
        side = self._b if self._has(taken, "overall_supported") else self._a
        return side.tally.stored.overall_supported

    @cached_property
    def _mixed(self) -> Given:
        if self._given is not None:
            return self._given
        every: dict[Field, frozenset[str]] = {
            field: frozenset(key for _, key in pairs) for field, pairs in self._places.items()
        }
        return Given.of(self._example, (self._a.tally.stored, self._b.tally.stored), every)


class _Group:
    """Flips that change the same counts, and what the counts become.

    Args:
        bits: the flips.
        count: what the counts are, with a set of the flips that is not empty.
    """

    def __init__(self, bits: int, count: Callable[[int], dict[str, Any]]) -> None:
        self.bits, self._count = bits, count
        self._made: dict[int, dict[str, Any]] = {}

    def counts(self, taken: int) -> dict[str, Any]:
        """What a set of flips changes."""
        own = taken & self.bits
        if not own:
            return {}
        if own not in self._made:
            _bound(self._made)
            self._made[own] = self._count(own)
        return self._made[own]


class _Hybrid(Tally):
    """A tally whose answer is made when a metric reads it, and is counted as read.

    Args:
        counts: all else.
        answer: makes the answer.
        document: the document of each sentence, by key.
    """

    def __init__(
        self, counts: dict[str, Any], answer: Callable[[], Answer], document: Mapping[str, int]
    ) -> None:
        vars(self).update(counts, _answer=answer, _document=document)

    @property
    def stored(self) -> Answer:
        """The answer as it was given."""
        answer: Answer = vars(self)["_answer"]()
        return answer

    def ranks(self, keys: Iterable[str]) -> tuple[bool, ...]:
        """As of any tally, without reading the same keys again for every set of flips."""
        document: Mapping[str, int] = vars(self)["_document"]
        hit = {document[key] for key in keys}
        return tuple(index in hit for index in range(len(self.documents)))


def _bound(kept: dict[int, Any]) -> None:
    """Forget what was made for sets of flips, before a record of very many fills the memory."""
    if len(kept) >= _KEPT:
        kept.clear()


def _counted(whole: Tally) -> dict[str, Any]:
    return {name: getattr(whole, name) for name in _COUNTS}


_JUDGED = ("supported", "unsupported", "general", "citing")
_COUNTS = tuple(name for name in Tally.__dataclass_fields__ if name != "stored")


def _cited(a: Tally, b: Tally) -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    return (a.general, b.general), (a.citing, b.citing)
