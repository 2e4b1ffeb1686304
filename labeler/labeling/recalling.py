"""Rows that were labeled before, known by their lines: a rerun neither parses nor splits them.

Only the plain path is recalled: lines of JSON without named columns, labels of one judge without
retrieval labels, in a store on disk. All else is looked up as in a first run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pydantic

from labeler.data.label_files import LabelLine, to_line
from labeler.data.rows import Recalled, RecalledRows, Row, RowFile
from labeler.judges.judge import JudgeSpec
from labeler.judges.task import Task
from labeler.labeling.cache import Settled
from labeler.labeling.tasks import LabelTasks
from labeler.labels.record import AnyOutcome, LabelRecord
from labeler.labels.resources import names
from labeler.labels.signature import Signature, canonical_json
from labeler.sentences.example import Example, KeyedExample
from labeler.sentences.splitting import GIVEN
from labeler.store.disk import DiskStore
from labeler.store.memo import Entry, Memo, digest_of
from labeler.store.protocol import LabelStore
from labeler.version import __version__

_CODE = [
    2,  # version of this module: of what a line's name and an entry mean
    __version__,
    pydantic.VERSION,
    *(list(model.model_fields) for model in (Example, KeyedExample, LabelRecord)),
]
"""What else decides how a line is read, keyed and written: other code recalls nothing."""


@dataclass
class Recalling:
    """The rows of a run, of which a memo knows some.

    Attributes:
        rows: plain rows.
        factory: builds the tasks of rows without retrieval labels.
        store: where the labels are.
        memo: the store's memo.
        as_lines: whether labels are returned as lines, and not as records.
    """

    rows: RowFile
    factory: LabelTasks
    store: DiskStore
    memo: Memo
    as_lines: bool
    _spec: JudgeSpec = field(init=False)
    _signatures: list[Signature] = field(init=False)
    _context: Any = field(init=False)

    def __post_init__(self) -> None:
        self._spec = self.factory.judge.spec
        splitter = str(self.factory.splitter)
        formats = [name for name in names("schemas", ".json") if name.startswith("record/")]
        facts: list[object] = [_CODE, formats, self.rows.id_from, str(GIVEN), splitter]
        self._signatures = self._made()
        facts += [signature.facts() for signature in self._signatures]
        self._context = hashlib.sha256(canonical_json(facts))

    @property
    def first_pass(self) -> RecalledRows:
        """The rows, of which known ones have their digests only."""
        return RecalledRows(self.rows, self._digests)

    @property
    def labeled(self) -> RecalledRows:
        """The rows, of which known ones have their labels."""
        return RecalledRows(self.rows, self._labels)

    def outcome(self, line: bytes, record: LabelRecord | None = None) -> LabelRecord:
        """Return a known label; a line stands for its record where it is only written."""
        if self.as_lines:
            return LabelLine(line, record)  # type: ignore[return-value] # see its class
        return record or LabelRecord.model_validate_json(line)

    def remembering(self, row: Row, task: Task[Any]) -> Callable[[Settled], AnyOutcome] | None:
        """Return what keeps the row's label in the memo and returns it; ``None`` if nothing does.

        A label that is only written is returned as its line, which is not made twice then.
        """
        example = row.content
        if row.line is None or row.digests is None or not isinstance(example, Example):
            return None
        if not self._is_current():  # the name is of another output mode than the label
            return None
        key, name, digests = task.key, self._name(row.line), row.digests

        def remember(found: Settled) -> AnyOutcome:
            outcome = found.outcome
            # Other output modes have other keys, and are looked up as in a first run.
            if outcome.key != key or not isinstance(outcome, LabelRecord):
                return outcome
            line = found.line or to_line(outcome).encode()
            self.memo.add(name, Entry(key, digest_of(line), digests))
            return self.outcome(line, outcome)

        return remember

    def _made(self) -> list[Signature]:
        splitter = str(self.factory.splitter)
        return [self.factory.signature(splitter, *one) for one in self.factory.asked]

    def _is_current(self) -> bool:
        """Return True if the judge asks as at the start: a server can refuse an output mode."""
        spec = self.factory.judge.spec
        if spec is not self._spec and self._made() == self._signatures:
            self._spec = spec
        return spec is self._spec

    def _name(self, line: bytes) -> bytes:
        """Return a line's name: the digest of all that decides its label and its output."""
        name = self._context.copy()
        name.update(line)
        return bytes(name.digest()[:16])

    def _entries(self, lines: Sequence[bytes]) -> list[Entry | None]:
        if not self._is_current():
            return [None] * len(lines)
        names = [self._name(line) for line in lines]
        entries = self.memo.find(names)
        return [entries.get(name) for name in names]

    def _digests(self, lines: Sequence[bytes]) -> Iterator[Recalled | None]:
        for entry in self._entries(lines):
            yield entry and Recalled(entry.row)

    def _labels(self, lines: Sequence[bytes]) -> Iterator[Recalled | None]:
        entries = self._entries(lines)
        labels = self.store.label_lines([entry.key for entry in entries if entry])
        for entry in entries:
            label = labels.get(entry.key) if entry else None
            # A row with another id or other metadata than the one that was judged is written anew.
            is_same = entry and label is not None and digest_of(label) == entry.output
            yield Recalled(entry.row, label) if entry and is_same else None


def recall_rows(
    rows: RowFile, factory: LabelTasks, store: LabelStore, closing: ExitStack, *, as_lines: bool
) -> Recalling | None:
    """Open the memo of a store.

    Args:
        rows: plain rows.
        factory: builds the tasks of the rows.
        store: where the labels are.
        closing: closes the memo.
        as_lines: as of :class:`Recalling`.

    Returns:
        ``None`` if labels rest on retrieval labels, or are not on disk.
    """
    if factory.relevance is not None or not isinstance(store, DiskStore):
        return None
    memo = closing.enter_context(Memo(store.directory))
    return Recalling(rows, factory, store, memo, as_lines)
