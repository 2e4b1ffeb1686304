"""Input rows: read from files or Python objects, validated, and named.

:class:`Rows` yields one :class:`Row` per input row. A faulty row is a failure in its place, never
an exception. File formats are in :mod:`labeler.data.formats`, column
names in :mod:`labeler.data.columns` and :mod:`labeler.data.presets`, field types in
:mod:`labeler.data.parsing`.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from labeler.catalog import snake_case
from labeler.data.columns import Columns
from labeler.data.documents import SPLIT_REMEDY
from labeler.data.formats import (
    Raw,
    check_file,
    count_rows,
    is_rereadable,
    json_rows,
    read_file,
    row_files,
)
from labeler.data.lines import read_lines
from labeler.data.parsing import (
    id_of,
    is_native,
    joined_id,
    memory_of,
    metadata_of,
    read_values,
    reject_surrogates,
    to_example,
)
from labeler.data.written_values import written_or_same
from labeler.errors import BadRow, UsageError
from labeler.labels.record import LabelFailure
from labeler.sentences.conversation import media_of, without_thoughts
from labeler.sentences.example import Example

if TYPE_CHECKING:
    from labeler.data.formats.objects import Table


FIRST_ROWS = 100
"""Rows that are read before the first request: a fault of all of them stops a run unpaid."""


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


class Source(NamedTuple):
    """Rows of one origin."""

    read: Callable[[], Iterable[Raw]]
    """Reads the rows, as often as it is called."""
    total: Callable[[], int | None] = lambda: None
    """Returns their number where it can be counted exactly without reading them."""


class Rows:
    """Input rows; each iteration reads their sources again.

    Args:
        sources: where the rows stand, in order.
        names: the files, as they were given.
        is_part: True if other rows may have a column that these lack.
        id_from: columns that are joined by ``/`` to the row id; by default the column ``id``.
        columns: the column of each field; by default the field's own name, or as a preset says
            that is the only one to fit.
        keep_thinking: True to keep thoughts in responses.

    Attributes:
        notices: messages for people about how rows were read, once they were.

    Raises:
        UsageError: both ``id_from`` and ``columns`` define the row id.
    """

    def __init__(
        self,
        sources: Iterable[Source],
        *,
        names: Sequence[str] = (),
        is_part: bool = False,
        id_from: Sequence[str] = (),
        columns: Columns | None = None,
        keep_thinking: bool = False,
    ) -> None:
        if id_from and columns and "id" in columns.named:
            raise UsageError("both --id and --map id=… name the rows: give one of the two")
        self.names, self.is_part = names, is_part
        self.id_from, self.columns, self.keep_thinking = id_from, columns, keep_thinking
        self.notices: dict[str, str] = {}
        self._sources = list(sources)

    def __iter__(self) -> Iterator[Row]:
        """Yield each row; one that is not an example becomes a failure in its place.

        Raises:
            UsageError: a source cannot be read, or a column named by the user is in none of the
                first rows.
        """
        left_out, read = Counter[str](), 0
        for source in self._sources:
            # Later rows cost money before a column can be missed.
            required = not self.is_part and read < FIRST_ROWS
            converter = _RowConverter(self, left_out, columns_required=required)
            for row in converter.rows(source.read()):
                read += 1
                yield row

    def total(self) -> int | None:
        """Return the number of rows where it can be counted exactly without reading them."""
        counts = [source.total() for source in self._sources]
        return None if None in counts else sum(filter(None, counts))


def file_sources(paths: Iterable[str | Path]) -> Iterator[Source]:
    """Yield the sources of files, in order.

    A source that can be read only once, such as standard input or a pipe, is JSON Lines and kept
    in memory. The format of other files follows from their names, see :mod:`labeler.data.formats`.

    Args:
        paths: files; or folders that hold a saved data set, or names such as
            ``hf:owner/name:split`` and ``s3://bucket/rows.csv``.

    Raises:
        UsageError: a source that can be read only once holds no rows.
    """
    for name in (name for path in paths for name in row_files(str(path))):
        if is_rereadable(name):
            yield Source(partial(read_file, name), partial(count_rows, name))
        else:
            lines = list(read_lines(name))
            check_file(name, lines[0].content if lines else b"")
            yield Source(partial(json_rows, lines), lines.__len__)


def python_source(rows: Sequence[Any] | Table) -> Source:
    """Return the source of examples, mappings with the same fields, or objects with them."""

    def raws() -> Iterator[Raw]:
        return (_raw(f"row {number}", row) for number, row in enumerate(rows, start=1))

    total = len(rows) if isinstance(rows, Sized) else rows.total
    return Source(raws, lambda: total)


def _raw(where: str, row: object) -> Raw:
    if isinstance(row, Example):
        return Raw(where, row.model_dump())
    from labeler.data.formats.objects import row_of  # noqa: PLC0415 - for rows from Python only

    try:
        return Raw(where, row_of(row, where))
    except BadRow as error:
        return Raw(where, error)


_OPENING = frozenset("[{(")
"""The first characters of most lists and objects written as text."""


class _RowConverter:
    """Converts the raw rows of one source to rows.

    Args:
        whole: how rows are read; it gets the notices about that.
        left_out: counts rows in which something is left out, in all sources.
        columns_required: raise if a column named by the user is in no row.
    """

    def __init__(self, whole: Rows, left_out: Counter[str], *, columns_required: bool) -> None:
        columns = self._columns = whole.columns
        self._id_from, self._keep_thinking = whole.id_from, whole.keep_thinking
        self._notices, self._left_out = whole.notices, left_out
        self._preset: Columns | None = None
        self._unseen = dict(columns.expected()) if columns and columns_required else {}
        self._first: tuple[str, Mapping[str, Any]] | None = None

    def rows(self, raws: Iterable[Raw]) -> Iterator[Row]:
        """Yield each row as an example or a failure.

        Raises:
            UsageError: a column named by the user is in none of the first rows.
        """
        read = 0
        for raw in raws:
            if raw.notice:
                self._notices.setdefault(raw.notice, raw.notice)
            if isinstance(raw.fields, BadRow):
                row = Row(raw.where, _failure(raw.where, raw.fields))
            else:
                row = self._row(raw, raw.fields)
            read += 1
            if read == FIRST_ROWS:
                self._require_columns()
            yield row
        if read < FIRST_ROWS:
            self._require_columns()

    def _require_columns(self) -> None:
        if self._first and self._unseen:
            path, field = next(iter(self._unseen.items()))
            where, row = self._first
            raise UsageError(
                f"no row has {path.text!r}, named as the column of {field!r}; at {where} "
                f"{path.fault(row)}"
            )

    def _row(self, raw: Raw, given: Mapping[str, Any]) -> Row:
        """Return an example, or a failure with the row's id and metadata if they are readable."""
        fields = given
        try:
            if not isinstance(given, Mapping):
                return Row(raw.where, to_example(given, raw.where))
            columns = self._columns_of(given, raw.where)
            if raw.text_only:
                given = fields = _without_blanks(given, columns)
            if columns:
                fields = columns.with_id(given, raw.where)
                fields = self._renamed(columns, given, raw.where)
            split, remedy = (columns.split, columns.remedy) if columns else (None, SPLIT_REMEDY)
            fields = self._read(fields, raw.where, split, remedy)
            if raw.text_only:  # an empty cell is a column that the row does not have
                fields = {name: value for name, value in fields.items() if value is not None}
            fields = self._shown(given, fields, columns)
            if self._id_from:
                fields = {**fields, "id": joined_id(given, self._id_from, raw.where)}
            is_named = fields.get("id") is not None
            return Row(raw.where, to_example(fields, raw.where), is_named=is_named)
        except BadRow as error:
            failure = _row_failure(fields, raw.where, error)
            return Row(raw.where, failure, error.lacks, columns=given if error.lacks else None)

    def _read(
        self, fields: Mapping[str, Any], where: str, split: str | None, remedy: str
    ) -> dict[str, Any]:
        """Return fields by :func:`read_values`; a notice counts texts taken for missing values."""
        read = read_values(fields, where, split, remedy)
        for name, value in fields.items():
            if read.get(name, value) is None and isinstance(value, str) and value.strip():
                self._note(
                    f"missing {name}",
                    f"have {value.strip()!r} or the like as {name!r}, which is read as missing",
                )
        return read

    def _shown(
        self, given: Mapping[str, Any], fields: dict[str, Any], columns: Columns | None
    ) -> dict[str, Any]:
        """Return a row as judges are shown it; notices count rows in which that is surprising."""
        messages = columns.messages(given) if columns else []
        for name in ("history", "tool_outputs"):
            messages += fields[name] if isinstance(fields.get(name), list | tuple) else []
        if messages and (kinds := media_of(messages)):
            self._note("media", f"have messages with parts that no judge is shown ({kinds[0]})")
        documents = fields.get("documents")
        if (
            documents
            and documents[0][:1] in _OPENING
            and written_or_same(documents[0]) != documents[0]
        ):
            self._note(
                "written",
                "have documents that are lists or objects written as text, which are judged as "
                "they are; a path reads their texts: --map 'documents=COLUMN[].FIELD' or "
                "documents=COLUMN[][]",
            )
        response = fields.get("response")
        if self._keep_thinking or not isinstance(response, str) or "response_sentences" in fields:
            return fields
        answer = without_thoughts(response)
        if answer is response:
            return fields
        self._note(
            "thinking",
            "have thoughts in the response (<think>), which are left out; "
            "--keep-thinking keeps them",
        )
        return {**fields, "response": answer}

    def _note(self, kind: str, text: str) -> None:
        self._left_out[kind] += 1
        count = self._left_out[kind]
        rows = "1 row has" if count == 1 else f"{count:,} rows have"
        self._notices[kind] = f"{rows}{text.removeprefix('have')}"

    def _columns_of(self, given: Mapping[str, Any], where: str) -> Columns | None:
        """Return the columns of a row: the user's, with those of the only preset that fits.

        Raises:
            UsageError: several presets fit.
        """
        own = self._columns
        if is_native(given, own.choices if own else ()):
            return own
        if self._preset and self._preset.fits(given):
            return self._preset
        from labeler.data.presets import only_preset, with_numbered  # noqa: PLC0415 - rare

        if found := only_preset(given, where, own):
            self._preset = self._note_preset(given, where, *found)
        elif numbered := with_numbered(given, own):
            read = str(numbered.choices["documents"][0]).replace(",", ", ")
            text = f"{where} has numbered documents, read in this order: {read}"
            self._notices.setdefault("numbered", text)
            if not is_native(given, numbered.choices) and (
                found := only_preset(given, where, numbered)
            ):
                return self._note_preset(given, where, *found)
            return numbered
        return self._preset or own

    def _note_preset(
        self, given: Mapping[str, Any], where: str, name: str, columns: Columns
    ) -> Columns:
        used = ", ".join(f"{field}={path}" for field, path in columns.used(given).items())
        text = f"{where} has the columns of {name}: reading by --preset {name} ({used})"
        self._notices.setdefault(name, text)
        return columns

    def _renamed(self, columns: Columns, given: Mapping[str, Any], where: str) -> dict[str, Any]:
        self._first = self._first or (where, given)
        for path in [path for path in self._unseen if not path.fault(given)]:
            del self._unseen[path]
        return columns.apply(given, where)


def _without_blanks(row: Mapping[str, Any], columns: Columns | None) -> dict[str, Any]:
    """Return a row of texts with null for empty cells; a question or response may be empty."""
    kept = {"question", "response"} | (columns.text_columns() if columns else set())
    blank = {name for name, cell in row.items() if cell == "" and snake_case(name) not in kept}
    return {name: None if name in blank else cell for name, cell in row.items()}


def _row_failure(fields: Mapping[str, Any], where: str, error: BadRow) -> LabelFailure:
    name, metadata = where, {}
    with contextlib.suppress(BadRow, AttributeError):
        metadata = metadata_of(fields, where)
        reject_surrogates({"id": fields.get("id")}, where)
        name = where if fields.get("id") is None else id_of(fields, where)
    return _failure(name, error, metadata)


def _failure(name: str, error: BadRow, metadata: dict[str, Any] | None = None) -> LabelFailure:
    return LabelFailure(id=name, reason=error.reason, message=str(error), metadata=metadata or {})
