"""The texts of each id: in one set of labels, an id names one row."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import chain
from operator import attrgetter

from labeler.calculators.row_facts import DigestMap, text_digest
from labeler.errors import UsageError
from labeler.labels.record import AnyOutcome
from labeler.sentences.example import KeyedExample

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
        """Note the texts of a record.

        Args:
            where: its origin, which may end in ``:LINE``.
            outcome: a record or a failure.

        Raises:
            UsageError: the id was read before with other texts.
        """
        example = getattr(outcome, "example", None)
        if not isinstance(example, KeyedExample):
            return
        made_by = "" if outcome.kind == "label" else getattr(outcome, "printed", "")
        digest = text_digest(f"{outcome.kind}\0{made_by}\0{example.splitter}\0{example.id}")
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
    """Return the error about an id that names two rows.

    Args:
        where: the origin of the second.
        id_: the id.
        parts: the parts that differ.
        first: the origin of the first.
    """
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
