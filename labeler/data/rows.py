"""Input rows: read from files or Python objects, validated, and named.

:class:`Rows` yields one :class:`Row` per input row. A faulty row is a failure in its place, never
an exception. File formats are in :mod:`labeler.data.formats`, column names in
:mod:`labeler.data.columns` and :mod:`labeler.data.presets`, field types in
:mod:`labeler.data.parsing`. :class:`RowStream` reads them for a run: an id names one row, or its
copies. Of rows seen so far, ids and digests are kept, in a few megabytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from labeler.catalog import snake_case
from labeler.data.columns import AMBIGUOUS, Columns
from labeler.data.formats import Raw, Source
from labeler.data.notices import apart, notices_of
from labeler.data.parsing import (
    id_of,
    is_native,
    memory_of,
    metadata_of,
    read_values,
    reject_surrogates,
    to_example,
)
from labeler.errors import BadRow, BadRows, UsageError
from labeler.labels.record import LabelFailure
from labeler.labels.signature import canonical_json
from labeler.sentences.characters import normalized
from labeler.sentences.conversation import without_thoughts
from labeler.sentences.example import Example

FIRST_ROWS = 100
"""Rows that are read before the first request: a fault of all of them stops a run unpaid."""
_MOST_MEMORY = 64 << 20
"""Bytes of first rows that are held, roughly."""
_LONGEST_MESSAGE = 1_000
"""Characters of the first row's error in the error about all rows."""
_CACHE = 8_000
"""Kilobytes of memory; ids beyond it are in a temporary file, about 60 bytes a row."""


class Row(NamedTuple):
    """One input row: an example, or the failure that takes its place."""

    where: str
    """``FILE:LINE``, or ``row N`` for rows from Python."""
    content: Example | LabelFailure
    lacks: frozenset[str] = frozenset()
    """Required fields that the row does not have."""
    columns: Mapping[str, Any] | None = None
    """The row as it was given, if it lacks a required field."""
    is_named: bool = False
    """True if the row brings its id; else it is a digest."""

    @property
    def memory(self) -> int:
        """The bytes that the row takes while it is labeled, roughly."""
        return memory_of(self.content) if isinstance(self.content, Example) else 0


@dataclass(eq=False)
class Rows:
    """Input rows; each iteration reads their sources again.

    Attributes:
        sources: where the rows stand, in order.
        names: the files, as they were given.
        is_part: True if other rows may have a column that these lack.
        columns: the column of each field; by default the field's own name, or as a preset says
            that is the only one to fit.
        keep_thinking: True to keep thoughts in responses.
        notices: messages for people about how rows were read, once they were.
    """

    sources: Sequence[Source]
    _: KW_ONLY
    names: Sequence[str] = ()
    is_part: bool = False
    columns: Columns = field(default_factory=lambda: Columns({}))
    keep_thinking: bool = False
    notices: dict[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Row]:
        """Yield each row; one that is not an example becomes a failure in its place.

        Raises:
            UsageError: a source cannot be read, or a column named by the user is in none of the
                first rows.
        """
        noted, read = Counter[str](), 0
        for source in self.sources:
            # Later rows cost money before a column can be missed.
            required = not self.is_part and read < FIRST_ROWS
            converter = _RowConverter(self, noted, columns_required=required)
            for row in converter.rows(source.read()):
                read += 1
                yield row

    def total(self) -> int | None:
        """Return the number of rows where it can be counted exactly without reading them."""
        counts = [source.total() for source in self.sources]
        return None if None in counts else sum(filter(None, counts))


class _RowConverter:
    """Converts the raw rows of one source to rows; counts rows with notices in all sources."""

    def __init__(self, whole: Rows, noted: Counter[str], *, columns_required: bool) -> None:
        columns = self._columns = whole.columns
        self._keep_thinking = whole.keep_thinking
        self._notices, self._noted = whole.notices, noted
        self._preset: Columns | None = None
        self._is_early = columns_required
        self._unseen = dict(columns.expected()) if columns_required else {}
        self._first: tuple[str, Mapping[str, Any]] | None = None
        self._before: Mapping[str, Any] = {}

    def rows(self, raws: Iterable[Raw]) -> Iterator[Row]:
        """Yield each row as an example or a failure.

        Raises:
            UsageError: a column named by the user is in none of the first rows, or several presets
                fit one of these.
        """
        read = 0
        for read, raw in enumerate(raws, start=1):
            if raw.notice:
                self._notices.setdefault(raw.notice, raw.notice)
            row = self._row(raw)
            if read == FIRST_ROWS:
                self._is_early = False
                self._require_columns()
            yield row
        if read < FIRST_ROWS:
            self._require_columns()

    def _require_columns(self) -> None:
        if self._first and self._unseen:
            path, name = next(iter(self._unseen.items()))
            where, row = self._first
            raise UsageError(
                f"no row has {path.text!r}, named as the column of {name!r}; at {where} "
                f"{path.fault(row)}"
            )

    def _row(self, raw: Raw) -> Row:
        """Return an example, or a failure with the row's id and metadata if they are readable."""
        where, given = raw.where, raw.fields
        if isinstance(given, BadRow):
            return Row(where, _failure({}, where, given))
        fields = given
        try:
            if not isinstance(given, Mapping):
                return Row(where, to_example(given, where))
            columns = self._columns_of(given, where)
            if raw.text_only:
                given = fields = _without_blanks(given, columns)
            if columns.choices:
                self._first = self._first or (where, given)
                self._unseen = {p: name for p, name in self._unseen.items() if p.fault(given)}
                fields = columns.with_id(given, where)
                fields = columns.apply(given, where)
            fields, found = read_values(fields, where, columns.split), fields
            if raw.text_only:  # an empty cell is a column that the row does not have
                fields = {name: value for name, value in fields.items() if value is not None}
            self._count(*notices_of(given, found, fields, columns), *apart(fields, self._before))
            self._before = fields
            fields = self._without_thoughts(fields)
            return Row(where, to_example(fields, where), is_named=fields.get("id") is not None)
        except BadRow as error:
            if self._is_early and error.reason == AMBIGUOUS:  # nothing is paid yet
                raise UsageError(str(error)) from error
            lacks = error.lacks
            return Row(where, _failure(fields, where, error), lacks, given if lacks else None)

    def _without_thoughts(self, fields: dict[str, Any]) -> dict[str, Any]:
        response = fields.get("response")
        if self._keep_thinking or not isinstance(response, str) or "response_sentences" in fields:
            return fields
        answer = without_thoughts(response)
        if answer is response:
            return fields
        text = "thoughts in the response (<think>), which are left out; --keep-thinking keeps them"
        self._count(("thinking", text))
        return {**fields, "response": answer}

    def _count(self, *notices: tuple[str, str]) -> None:
        for kind, text in notices:
            count = self._noted[kind] = self._noted[kind] + 1
            have = "1 row has" if count == 1 else f"{count:,} rows have"
            self._notices[kind] = f"{have} {text}"

    def _columns_of(self, given: Mapping[str, Any], where: str) -> Columns:
        """Return the columns of a row: the user's, with those of the only preset that fits.

        Raises:
            BadRow: several presets fit.
        """
        if is_native(given, self._columns.choices):
            return self._columns
        if self._preset and self._preset.fits(given):
            return self._preset
        from labeler.data.presets import recognized  # noqa: PLC0415 - rare

        found, notices = recognized(given, where, self._columns)
        for kind, text in notices.items():
            self._notices.setdefault(kind, text)
        if found and "numbered" not in notices:  # of other rows the numbers may be others
            self._preset = found
        return found or self._preset or self._columns


def _without_blanks(row: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
    """Return a row of texts with null for empty cells; a question or response may be empty."""
    texts = [one for name in ("question", "response") for one in columns.choices.get(name, ())]
    kept = {"question", "response", *(path.text for choice in texts for path in choice.paths)}
    blank = {name for name, cell in row.items() if cell == "" and snake_case(name) not in kept}
    return {name: None if name in blank else cell for name, cell in row.items()}


def _failure(fields: Mapping[str, Any], where: str, error: BadRow) -> LabelFailure:
    """Return the failure of a row, with its id and metadata if they are readable."""
    name, metadata = where, dict[str, Any]()
    with contextlib.suppress(BadRow, AttributeError):
        metadata = metadata_of(fields, where)
        reject_surrogates({"id": fields.get("id")}, where)
        name = where if fields.get("id") is None else id_of(fields, where)
    return LabelFailure(id=name, reason=error.reason, message=str(error), metadata=metadata)


class RowStream:
    """Rows under their ids; iterate over it once.

    The first rows are read at once, so that a fault of all of them stops a run before any spend.

    Args:
        rows: the rows.
        needed: optional fields of an example, such as ``reference``, that nothing can be asked
            without.
        notice: receives messages for people about how rows are read.

    Attributes:
        first: the first rows.

    Raises:
        BadRows: the first rows all lack a field, or all fail for one reason.
        UsageError: the rows cannot be read, or there are none.
    """

    def __init__(
        self,
        rows: Rows,
        needed: Collection[str] = (),
        notice: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._rows, self._notice = rows, notice
        self._reported: set[str] = set()
        self._rest = iter(rows)
        self.first: list[Row] = []
        memory = 0
        for row in self._rest:
            self.first.append(row)
            memory += row.memory
            if len(self.first) == FIRST_ROWS or memory > _MOST_MEMORY:
                break
        self._report()
        if not rows.is_part:  # other parts may have rows, and the field
            self._check(needed)

    def __iter__(self) -> Iterator[Row]:
        yield from identified(chain(self._taken(), self._rest), self._rows.notices)
        self._report()

    def total(self) -> int | None:
        """Return the number of rows where it can be counted exactly without reading them."""
        return self._rows.total()

    def _report(self) -> None:
        """Report messages that are new, or count more rows than before."""
        for text in self._rows.notices.values():
            if text not in self._reported:
                self._notice(text)
                self._reported.add(text)

    def _taken(self) -> Iterator[Row]:
        """Yield the first rows, and hold each no longer."""
        first, self.first = self.first[::-1], []
        while first:
            yield first.pop()

    def _check(self, needed: Collection[str]) -> None:
        _check_fields(self.first, needed)
        if not self.first and self._rows.names:
            raise UsageError(
                f"{', '.join(self._rows.names) or 'the input'} has no rows, so nothing was sent; a "
                "file of rows has one JSON object a line, or a line of column names and lines below"
            )
        failures = [row.content for row in self.first if isinstance(row.content, LabelFailure)]
        reasons = {failure.reason for failure in failures}
        if len(failures) == len(self.first) == FIRST_ROWS and len(reasons) == 1:
            raise BadRows(
                f"none of the first {FIRST_ROWS} rows can be read ({reasons.pop()}), so nothing "
                f"was asked: {failures[0].message:.{_LONGEST_MESSAGE}}"
            )


def _check_fields(rows: Sequence[Row], needed: Collection[str]) -> None:
    """Raise an error if each row lacks a field; lines without columns are left out.

    Raises:
        BadRows: it names the fields, and how to read them from other columns.
    """
    read = [(row, _lacks(row, needed)) for row in rows]
    read = [(row, lacks) for row, lacks in read if lacks or isinstance(row.content, Example)]
    if not read or not all(lacks for _, lacks in read):
        return
    lacking = {name for _, lacks in read for name in lacks}
    field, *others = (name for name in Example.model_fields if name in lacking)
    first = read[0][0].content
    is_wrong = getattr(first, "reason", "") == "wrong_type"  # there in a wrong form
    if isinstance(first, Example):
        fields = [name for name in Example.model_fields if getattr(first, name)]
        fault = f"{read[0][0].where} has {', '.join([*fields, *first.metadata])}"
    else:
        fault = first.message
    remedy = ""
    if not is_wrong and field != "id":
        from labeler.data.presets import remedy_of  # noqa: PLC0415 - rare

        contents = ((row.content, row.columns or {}) for row, _ in read)
        columns = (one.metadata if isinstance(one, Example) else own for one, own in contents)
        remedy = remedy_of([field, *others], columns)
    more = f" (nor {', '.join(map(repr, others))})" if others else ""
    which = f"{'the first ' * (len(read) == FIRST_ROWS)}{len(read):,}"
    count = f"none of {which} rows has" if len(read) > 1 else "the row has no"
    fault = f"{fault:.{_LONGEST_MESSAGE}}{remedy}"
    raise BadRows(f"{count} {field!r}{more}, so nothing was asked: {fault}")


def _lacks(row: Row, needed: Collection[str]) -> frozenset[str]:
    example = row.content
    if isinstance(example, Example):
        return frozenset(name for name in needed if not (getattr(example, name) or "").strip())
    return row.lacks


def identified(rows: Iterable[Row], notices: dict[str, str] | None = None) -> Iterator[Row]:
    """Yield each row under an id that names it alone, or a copy of an earlier row under its id.

    A row without an id of its own that repeats an earlier one is named by the same digest with its
    number, ``sha256-…-2``. A row whose given id names another content is a failure. A notice names
    the first two ids that look the same and are not the same text.
    """
    with contextlib.closing(_SeenRows({} if notices is None else notices)) as seen:
        for row in rows:
            example = row.content
            first = seen.add(row.where, example) if isinstance(example, Example) else None
            if not isinstance(example, Example) or first is None or (row.is_named and first[1]):
                yield row
            elif not row.is_named:
                yield Row(row.where, seen.numbered(row.where, example))
            else:
                fault = (
                    f"{row.where}: id {example.id!r} is already used at {first[0]} with other "
                    "content; give each row its own, name rows by several columns (--id), or leave "
                    "ids out"
                )
                error = BadRow(fault, reason="id_conflict")
                yield Row(row.where, _failure({"metadata": example.metadata}, row.where, error))


class _SeenRows:
    """Ids of the rows seen so far, each with a digest of all fields of its first row, 16 bytes.

    SQLite keeps them: a database without a name is in memory up to its cache, beyond that in a file
    that no other program sees and that ends with the process.
    """

    def __init__(self, notices: dict[str, str]) -> None:
        self._notices = notices
        self._table = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self.close = self._table.close
        self._files: dict[str, int] = {}
        for setting in (f"cache_size = -{_CACHE}", "journal_mode = OFF", "synchronous = OFF"):
            self._table.execute(f"PRAGMA {setting}")
        self._table.execute(
            "CREATE TABLE seen (id TEXT PRIMARY KEY, content BLOB, file INTEGER, line, "
            "copies INTEGER) WITHOUT ROWID"
        )
        self._table.execute("BEGIN")

    def add(self, where: str, row: Example) -> tuple[str, bool] | None:
        """Add a row.

        Returns:
            The place of the first row with its id, and True if that has the same content; ``None``
            if this is the first.

        Raises:
            UsageError: they do not fit on the disk.
        """
        file = where.rstrip("0123456789")
        number, line = self._files.setdefault(file, len(self._files)), where[len(file) :]
        fields = row.model_dump_json(exclude={"metadata"}).encode() + canonical_json(row.metadata)
        content = hashlib.sha256(fields).digest()[:16]
        try:
            added = self._table.execute(
                "INSERT OR IGNORE INTO seen VALUES (?, ?, ?, ?, 1)", (row.id, content, number, line)
            )
            if added.rowcount:
                if not row.id.isascii():
                    self._compare_forms(where, row.id)
                return None
            known, first = self._known(row.id) or (b"", "")
        except sqlite3.Error as error:
            raise UsageError(
                f"{where}: no temporary file for the ids of rows: {error}; free about 60 bytes a "
                "row, or name a folder with space in the environment: SQLITE_TMPDIR=FOLDER"
            ) from error
        return first, known == content

    def _known(self, name: str) -> tuple[bytes, str] | None:
        """Return digest and place of the row with an id."""
        find = "SELECT content, file, line FROM seen WHERE id = ?"
        found = self._table.execute(find, (name,)).fetchone()
        if found is None:
            return None
        content, file, line = found
        return content, f"{list(self._files)[file]}{line}"

    def _compare_forms(self, where: str, name: str) -> None:
        """Note an id that an earlier row has in the other of Unicode's two forms of accents."""
        for other in {normalized("NFC", name), normalized("NFD", name)} - {name}:
            if known := self._known(other):
                self._notices.setdefault(
                    "forms",
                    f"{where} has the id {name!r:.80} of {known[1]} in another Unicode form "
                    "(NFC, NFD), so they are two records: write ids in one form",
                )

    def numbered(self, where: str, row: Example) -> Example:
        """Add a row without an id of its own under the next number of its digest, from 2."""
        name, add = (row.id,), "UPDATE seen SET copies = copies + 1 WHERE id = ?"
        while True:
            self._table.execute(add, name)
            found = self._table.execute("SELECT copies FROM seen WHERE id = ?", name)
            named = row.model_copy(update={"id": f"{row.id}-{found.fetchone()[0]}"})
            if self.add(where, named) is None:
                return named
