"""Facts of a row, besides its metrics: by them rows are distinguished, grouped and compared."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain
from operator import attrgetter
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

from labeler.calculators.tally import Tally
from labeler.errors import UsageError
from labeler.labels.answers import (
    BY_FAMILY,
    BY_OUTPUT,
    DEFAULT_PROFILE,
    PROFILES,
    Profile,
    family_of,
)
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord, Outcome
from labeler.labels.signature import CORRECTIONS, digest, shown
from labeler.sentences.example import KeyedExample

QUESTION = "question"
"""The column that every record has, by which records of one question are one observation."""


class Identity(NamedTuple):
    """Digests of 64 bits of what makes two records the same.

    Attributes:
        row: of the row's id and the printed signature; never 0, and the same in this process only.
        key: of the label key; 0 for a failure.
    """

    row: int
    key: int

    @classmethod
    def of(cls, id_: str, label: str | None, key: str | None) -> Identity:
        """Return the identity of a record, or of a failure, which has no key."""
        return cls(row_digest(id_, label), 0 if key is None else text_digest(key))


def row_digest(id_: str, label: str | None) -> int:
    """Return the digest, in this process, of a row's id and the signature or key of its label."""
    return hash((id_, label)) & _WORD or 1


def question_digest(question: str | None) -> int:
    """Return the digest of a question; 0 for none and for a blank one."""
    return text_digest(question) if question and not question.isspace() else 0


_WORD = (1 << 64) - 1


def text_digest(text: str) -> int:
    """Return 64 bits that stand for a text, in every process; never 0."""
    found = blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(found, "little") or 1


PARTS = ("question", "documents", "response", "history", "tool_outputs")
"""Parts of a record that two labels of it can share."""
COUNTED = ("relevant", "utilized", "supported")
"""Sets of sentences that a label counts."""


Counted = tuple[tuple[str, frozenset[str]], ...]
"""By field, the keys of the sentences that a label counts."""


def outcome_profile(outcome: Outcome) -> Profile:
    """Return the profile of a row's label; the leanest if it failed before one was chosen."""
    if isinstance(outcome, LabelRecord):
        return BY_OUTPUT[type(outcome.label)]
    schema = outcome.signature.response_schema.name if outcome.signature else ""
    return BY_FAMILY.get(family_of(schema), PROFILES[DEFAULT_PROFILE])


class RowFacts(NamedTuple):
    """The facts of a row, columns of a numbers file; facts of labels are empty for other rows.

    Attributes:
        position: the place among all rows, from 0.
        kind: ``label``, ``questions`` or ``score``: what was asked for.
        trial: the trial of its judgment.
        corrected: True if people corrected the label.
        profile: name of the profile of the label, or of the failed row.
        copies: further records of its id and key, which are left out.
        question: digest of the first of :data:`PARTS`, as those of the others; empty for none.
        retrieved: digest of the set of the documents' texts, and of the earlier turns, by which
            relevance is judged.
        sentences: number of sentences of the documents.
        relevant: keys of sentences that the label counts, as in the others of :data:`COUNTED`.
    """

    position: int = 0
    kind: str = ""
    trial: int = 0
    corrected: bool = False
    profile: str = ""
    copies: int = 0
    question: str = ""
    documents: str = ""
    response: str = ""
    history: str = ""
    tool_outputs: str = ""
    retrieved: str = ""
    sentences: int = 0
    relevant: frozenset[str] = frozenset()
    utilized: frozenset[str] = frozenset()
    supported: frozenset[str] = frozenset()

    @classmethod
    def of(cls, position: int, outcome: AnyOutcome, kind: str, tally: Tally | None = None) -> Self:
        """Return the facts of an outcome at a position; ``tally`` is that of a label."""
        signature, example = outcome.signature, getattr(outcome, "example", None)
        profile = ""
        if kind == "label" and isinstance(outcome, LabelRecord | LabelFailure):
            profile = outcome_profile(outcome).name
        if signature is None or example is None:
            return cls(position, kind, signature.trial if signature else 0, profile=profile)
        texts = shown(example) | {"question": example.question}
        documents = {" ".join(sentence.text for sentence in part) for part in example.documents}
        named: dict[str, Any] = {name: getattr(tally, name) for name in COUNTED} if tally else {}
        return cls(
            position,
            kind,
            signature.trial,
            CORRECTIONS in signature.sampling,
            profile,
            retrieved=_short([sorted(documents), texts.get("history")]),
            sentences=sum(map(len, example.documents)),
            **{part: _short(texts[part]) for part in PARTS if texts.get(part) is not None} | named,
        )

    @property
    def digests(self) -> tuple[str, ...]:
        """Digests of :data:`PARTS`."""
        return tuple(getattr(self, part) for part in PARTS)

    @property
    def counted(self) -> Counted:
        """The sentences that the label counts, in the order of :data:`COUNTED`."""
        return tuple((name, getattr(self, name)) for name in COUNTED)


def _short(value: object) -> str:
    """Return 64 bits of the digest of a JSON value: enough for the rows of one file."""
    return digest(value)[:16]


# Rows without repetitions.

REPEATED = "repeated records (same id and label key), each counted once: {}"
"""The notice of repeated records."""


class DigestMap:
    """A map from digests of 64 bits to others, in 24 to 48 bytes each, by open addressing.

    No value is 0.
    """

    def __init__(self) -> None:
        self._slots = array("Q", bytes(16 * 64))
        self._size = 0

    def add(self, digest: int, value: int) -> int:
        """Map a digest to a value unless it is mapped; return the value before, 0 for none."""
        if 3 * self._size >= len(self._slots):
            self._grow()
        place = self._place(digest)
        before = self._slots[place + 1]
        if not before:
            self._slots[place], self._slots[place + 1] = digest, value
            self._size += 1
        return before

    def present(self, values: Collection[int]) -> set[int]:
        """Return those of some values that a digest is mapped to."""
        return set(values).intersection(self._slots[1::2]) if values else set()

    def _place(self, digest: int) -> int:
        """Return the place of a digest, or the empty one where it belongs."""
        slots = self._slots
        mask = len(slots) - 2
        place = digest << 1 & mask
        while slots[place + 1] and slots[place] != digest:
            place = (place + 2) & mask
        return place

    def _grow(self) -> None:
        old, self._slots = self._slots, array("Q", bytes(16 * len(self._slots)))
        for key, value in zip(old[::2], old[1::2], strict=True):
            if value:
                place = self._place(key)
                self._slots[place], self._slots[place + 1] = key, value


class Identities:
    """A set of identities of labels."""

    def __init__(self) -> None:
        self._rows = DigestMap()

    def add(self, identity: Identity) -> bool:
        """Add an identity; return False if it is there already."""
        return not self._rows.add(identity.row ^ identity.key, identity.row)

    def labeled(self, rows: Collection[int]) -> set[int]:
        """Return those of some digests of rows that have a label."""
        return self._rows.present(rows)


class _Countable(Protocol):
    """A label or a failure that enters numbers; see :class:`MetricsRow`."""

    @property
    def id(self) -> str: ...
    @property
    def label(self) -> str | None: ...
    @property
    def failed(self) -> str | None: ...
    @property
    def identity(self) -> Identity | None: ...


R = TypeVar("R", bound=_Countable)


class DistinctRows(Generic[R]):
    """Rows without repetitions: each label once, each failure once and without a label.

    A failure without a signature is left out if every judge configuration has its row. Labels keep
    their order; failures come after them, because a row may be labeled later.

    Args:
        rows: the rows; consumed once.
    """

    def __init__(self, rows: Iterable[R]) -> None:
        self._rows = rows
        self.copies = Counter[Identity]()
        """Labels that were left out so far."""

    @property
    def repeated(self) -> int:
        """Number of labels that were left out so far."""
        return self.copies.total()

    def __iter__(self) -> Iterator[R]:
        """Yield the rows."""
        known, failures = Identities(), dict[int, R]()
        labels = set[str | None]()
        for row in self._rows:
            labels.add(row.label)
            if row.failed and row.identity:
                failures.setdefault(row.identity.row, row)
            elif row.identity is None or known.add(row.identity):
                if row.identity and (facts := getattr(row, "facts", None)) and facts.copies:
                    self.copies[row.identity] += facts.copies
                yield row
            else:
                self.copies[row.identity] += 1
        labels.discard(None)
        labeled = known.labeled(failures.keys())
        for own, row in failures.items():
            signed = {row_digest(row.id, label) for label in labels if row.label is None}
            elsewhere = known.labeled(signed) | (signed & failures.keys())
            if own not in labeled and (not signed or elsewhere < signed):
                yield row


NO_GROUP = "(none)"
"""Group of the records without a value in the grouping column."""


def group_key(metadata: Mapping[str, Any], by: str) -> str:
    """Return the value of the grouping column as a text; empty without a value.

    It is JSON, so that the number 1 and the text "1" are two groups.
    """
    value = metadata.get(by)
    if value is None:
        return ""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def group_names(keys: Iterable[str]) -> dict[str, str]:
    """Return the name of each group, by the text of :func:`group_key`.

    A text is its own name, unless another group has that name: then it stands in quotes.
    """
    plain = {key: _plain_name(key) for key in keys}
    counts = Counter(plain.values())
    return {
        key: key if counts[name] > 1 and key.startswith('"') else name
        for key, name in plain.items()
    }


def _plain_name(key: str) -> str:
    if not key:
        return NO_GROUP
    text = str(json.loads(key)) if key.startswith('"') else key
    return key if text in {"", NO_GROUP} else text


# The texts of each id: in one set of labels, an id names one row.

COMPARED = ("question", "documents", "response")
"""The parts that every label of a row shares; a judge may not be shown the others."""
_BITS = 64 // len(COMPARED)
_MASK = (1 << _BITS) - 1
_TEXT = attrgetter("text")


class RowTexts:
    """Where each id was first read and with what texts, in 48 to 72 bytes an id.

    Labels that other splitters cut are not compared: they differ in their sentences alone. Records
    of other kinds than labels are compared within their printed signature.
    """

    def __init__(self) -> None:
        self._numbers = DigestMap()
        self._texts, self._lines, self._files = array("Q"), array("Q"), array("L")
        self._names: dict[str, int] = {}

    def check(self, where: str, outcome: AnyOutcome) -> None:
        """Note the texts of a record, whose origin ``where`` may end in ``:LINE``.

        Raises:
            UsageError: the id was read before with other texts.
        """
        example = getattr(outcome, "example", None)
        if not isinstance(example, KeyedExample):
            return
        made_by = "" if outcome.kind == "label" else getattr(outcome, "printed", "")
        digest = row_digest(example.id, f"{outcome.kind}\0{made_by}\0{example.splitter}")
        documents = (*map(len, example.documents), *map(_TEXT, chain(*example.documents)))
        parts = (example.question, documents, tuple(map(_TEXT, example.response)))
        # A hash of each part, the same in this process only, side by side in 63 bits.
        first_two = hash(parts[0]) & _MASK | (hash(parts[1]) & _MASK) << _BITS
        texts = first_two | (hash(parts[2]) & _MASK) << 2 * _BITS
        number = len(self._texts) + 1
        if not (first := self._numbers.add(digest, number)):
            name, colon, line = where.rpartition(":")
            if not (colon and line.isdecimal()):
                name, line = where, "0"
            self._texts.append(texts)
            self._lines.append(int(line))
            self._files.append(self._names.setdefault(name, len(self._names)))
        elif differing := texts ^ self._texts[first - 1]:
            named = [
                part for place, part in enumerate(COMPARED) if differing >> place * _BITS & _MASK
            ]
            raise other_texts(where, example.id, named, self._place(first - 1))

    def _place(self, number: int) -> str:
        name, line = [*self._names][self._files[number]], self._lines[number]
        return f"{name}:{line}" if line else name


def other_texts(where: str, id_: str, parts: Sequence[str], first: str) -> UsageError:
    """Return the error about an id that names two rows, at ``where`` and ``first``."""
    remedy = (
        "a store also keeps the labels of earlier texts: name the label file of a run instead "
        "(labeler label -o)"
        if where == first
        else "compare two runs with 'labeler compare A B'; label rows that belong together with an "
        "id each (--id)"
    )
    *others, last = parts
    named = f"{', '.join(others)} and {last}" if others else last
    return UsageError(
        f"{where}: record {id_!r:.80} differs in {named} from the record of the same "
        f"id at {first}. An id names one row: {remedy}"
    )
