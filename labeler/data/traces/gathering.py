"""Spans on disk, by trace: the spans of a trace may be far apart, or in several files."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from hashlib import sha256
from typing import NamedTuple

import msgspec

from labeler.data.traces.span import Span, Unjoinable

_DAY = 86_400 * 10**9
MOST_SPANS, MOST_BYTES = 10_000, 1 << 26
"""Spans of a trace, and bytes of their texts, that are joined."""
_DECODER = msgspec.json.Decoder(Span)


class Trace(NamedTuple):
    """One trace.

    Attributes:
        trace_id: its id.
        day: days from 1970 to its first span, in UTC.
        spans: number of its spans.
        bytes: bytes of their texts.
    """

    trace_id: str
    day: int
    spans: int
    bytes: int


class SpanTable:
    """A table of spans in a temporary file, which the system removes with the process.

    Memory holds one trace at a time, however long the files are.

    Attributes:
        repeated: spans that were there already, alike.
        replaced: spans that were there already with other content; the last one counts.
    """

    def __init__(self) -> None:
        # An empty name is a private file of SQLite, deleted on close.
        self._table = sqlite3.connect("", isolation_level=None)
        self._table.execute("PRAGMA journal_mode=OFF")
        self._table.execute("BEGIN")
        self._table.execute(
            "CREATE TABLE spans (trace TEXT, span TEXT, start INTEGER, hash BLOB, content BLOB, "
            "PRIMARY KEY (trace, span)) WITHOUT ROWID"
        )
        self.repeated = self.replaced = 0

    def add(self, span: Span, order: bytes) -> None:
        """Add a span.

        Args:
            span: the span.
            order: by these bytes the traces of a day are sorted; those of one trace are equal.

        Raises:
            UnicodeEncodeError: a text holds a lone surrogate.
        """
        content = msgspec.json.encode(span)
        row = (span.trace_id, span.span_id, span.start, order, content)
        ids = row[:2]
        if self._table.execute("INSERT OR IGNORE INTO spans VALUES (?, ?, ?, ?, ?)", row).rowcount:
            return
        find = "SELECT content FROM spans WHERE trace = ? AND span = ?"
        if self._table.execute(find, ids).fetchone() == (content,):
            self.repeated += 1
        else:
            self.replaced += 1
            self._table.execute("REPLACE INTO spans VALUES (?, ?, ?, ?, ?)", row)

    def traces(self) -> Iterator[Trace]:
        """Yield the traces by day; those of a day by their order."""
        yield from map(
            Trace._make,
            self._table.execute(
                f"SELECT trace, coalesce(min(nullif(start, 0)), 0) / {_DAY} AS day, count(*), "  # noqa: S608 - a number
                "sum(length(content)) FROM spans GROUP BY trace ORDER BY day, min(hash), trace"
            ),
        )

    def spans(self, trace: Trace) -> list[Span]:
        """Return the spans of a trace by their start.

        Raises:
            Unjoinable: they are too many or too large.
        """
        if trace.spans > MOST_SPANS or trace.bytes > MOST_BYTES:
            raise Unjoinable("too_large")
        find = "SELECT content FROM spans WHERE trace = ? ORDER BY start, span"
        return [_DECODER.decode(row[0]) for row in self._table.execute(find, (trace.trace_id,))]

    def close(self) -> None:
        """Remove the table."""
        with contextlib.suppress(sqlite3.Error):
            self._table.close()


def order_of(trace_id: str, seed: int) -> bytes:
    """Return the hash of a trace: by its rank traces are sampled, whatever the order of files."""
    return sha256(f"{seed}:{trace_id}".encode()).digest()
