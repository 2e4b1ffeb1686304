"""Traces of files as rows: read, sampled, joined, and counted where they give no row.

The spans of a trace may be far apart, or in several files: they are kept on disk, by trace.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import typer

from labeler.cli import options
from labeler.cli.files import check_label_target, watching
from labeler.cli.terminal import SOME_FAILED, notify, plural
from labeler.data.formats import read_source
from labeler.data.label_files import is_table, replaced
from labeler.data.lines import STDIO
from labeler.data.parsing import to_example
from labeler.errors import BadRow, UsageError
from labeler.plugins.traces.joining import REASONS, Unjoinable, has_root, rows_of
from labeler.plugins.traces.spans import Span, SpanFault, spans_of
from labeler.sentences.characters import plain_json


@dataclass(frozen=True, kw_only=True)
class TraceChoice:
    """Which traces become rows.

    Attributes:
        sample: share of the traces, from 0 to 1, by a hash of their ids.
        seed: of the hash.
        per_day: maximum number of traces with rows for each day in UTC.
        where: texts ``KEY=VALUE``; a trace needs a span with each attribute, or a row with each
            metadata field.

    Raises:
        UsageError: a value is out of range, or a text has no ``=``.
    """

    sample: float = 1.0
    seed: int = 0
    per_day: int | None = None
    where: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.sample <= 1:
            raise UsageError(f"--sample {self.sample:g}: a share from 0 to 1")
        for pair in self.where:
            if not pair.partition("=")[0] or "=" not in pair:
                raise UsageError(f"--where {pair!r:.80} is not KEY=VALUE: write --where user.id=7")

    def order(self, trace_id: str) -> bytes | None:
        """Return the rank of a trace by a hash, or ``None`` if it is not in the sample."""
        rank = sha256(f"{self.seed}:{trace_id}".encode()).digest()
        return rank if int.from_bytes(rank[:8]) < self.sample * 2**64 else None

    def fits(self, spans: Iterable[Span], rows: Iterable[dict[str, Any]]) -> bool:
        """Return True if a trace has all that is asked for."""
        known = [span.attributes for span in spans] + [row["metadata"] for row in rows]
        pairs = (pair.partition("=") for pair in self.where)
        return all(
            any(key in one and _printed(one[key]) == value for one in known)
            for key, _, value in pairs
        )


def _printed(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass
class TraceCounts:
    """What became of traces, filled while rows are read.

    Attributes:
        traces: traces in the files that are in the sample.
        rows: rows made.
        unjoined: traces without a row, by reason, see ``REASONS``.
        filtered: traces that ``where`` leaves out.
        over_limit: traces beyond ``per_day``.
        without_root: traces with rows whose root span is in no file.
        repeated: spans that occur again, alike.
        replaced: spans that occur again with other content; the last one counts.
        with_media: rows with images or files in their messages, which no judge is shown.
        faults: unreadable lines and spans, by reason.
        examples: the first trace or place of each reason.
    """

    traces: int = 0
    rows: int = 0
    unjoined: Counter[str] = field(default_factory=Counter)
    filtered: int = 0
    over_limit: int = 0
    without_root: int = 0
    repeated: int = 0
    replaced: int = 0
    with_media: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def fault(self, reason: str, message: str) -> None:
        """Count an unreadable line or span."""
        self.faults[reason] += 1
        self.examples.setdefault(reason, message)

    def lines(self) -> Iterator[str]:
        """Yield lines about traces that give no row, and what was odd about the others."""
        for reason, count in self.unjoined.most_common():
            first = self.examples[reason]
            yield f"{plural(count, 'trace')} {REASONS[reason]} ({reason}); the first is {first}"
        for reason, count in self.faults.most_common():
            yield f"{count:,} unreadable ({reason}); the first: {self.examples[reason]}"
        notes = {
            "filtered out by --where": self.filtered,
            "over --per-day": self.over_limit,
            "joined without their root, which is in no file": self.without_root,
        }
        for note, count in notes.items():
            if count:
                yield f"{plural(count, 'trace')} {note}"
        if self.with_media:
            yield f"{plural(self.with_media, 'row')} with images or files, which no judge is shown"
        if self.repeated:
            yield f"{plural(self.repeated, 'span')} occurred twice, alike, and counted once"
        if self.replaced:
            yield f"{plural(self.replaced, 'span')} occurred twice, unlike: the last one counts"


_NO_TRACE = "the files hold no trace, or --sample takes none of theirs"


def import_traces(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Spans as OTLP JSON (OpenInference, OpenTelemetry GenAI), or from Phoenix, "
            "Langfuse or MLflow: JSON Lines, JSON, CSV, Parquet; - reads JSON Lines from stdin."
        ),
    ],
    *,
    output: options.Output = STDIO,
    sample: Annotated[
        float, typer.Option(help="Share of the traces, from 0 to 1, by a hash of their ids.")
    ] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of that hash.")] = 0,
    per_day: Annotated[
        int | None, typer.Option(min=1, help="Only N traces of each day in UTC, by that hash.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            help="Only traces with this attribute or metadata: KEY=VALUE, such as user=7; "
            "repeatable, all must hold."
        ),
    ] = None,
) -> int:
    """Join the spans of traces into rows: question, documents, response."""
    check_label_target(files, output)
    if is_table(output):
        raise UsageError(f"{output}: rows of traces are JSON Lines: name a file such as rows.jsonl")
    choice = TraceChoice(sample=sample, seed=seed, per_day=per_day, where=where or ())
    counts = TraceCounts()
    with watching("joining") as watched:
        _write(watched(read_traces(files, choice, counts)), output, counts)
    for line in counts.lines():
        notify(line)
    where_to = "standard output" if output == STDIO else output
    notify(
        f"{plural(counts.rows, 'row')} of {plural(counts.traces, 'trace')} written to {where_to}"
    )
    return SOME_FAILED if counts.faults else 0


def _write(rows: Iterable[dict[str, Any]], output: str, counts: TraceCounts) -> None:
    """Write rows as JSON Lines.

    Raises:
        UsageError: there is none; an existing file is kept.
    """
    is_shown = output == STDIO
    with nullcontext(sys.stdout) if is_shown else replaced(Path(output)) as file:
        for row in rows:
            line = json.dumps(row, ensure_ascii=False)
            file.write(f"{plain_json(line) if is_shown else line}\n")
        if not counts.rows:
            why = "; ".join(line.strip() for line in counts.lines()) or _NO_TRACE
            raise UsageError(f"no trace gives a row: {why}")


def read_traces(
    files: Sequence[str], choice: TraceChoice | None = None, counts: TraceCounts | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of traces, by day; in a day by a hash of the trace.

    Args:
        files: JSON Lines, JSON, CSV or Parquet; the spans of a trace may be in several.
        choice: which traces; all by default.
        counts: filled while the rows are read.

    Raises:
        UsageError: a file cannot be read.
    """
    choice, counts = choice or TraceChoice(), counts if counts is not None else TraceCounts()
    with closing(SpanTable()) as table:
        for name in files:
            _gather(name, table, choice, counts)
        counts.repeated, counts.replaced = table.repeated, table.replaced
        days: Counter[int] = Counter()
        for trace in table.traces():
            counts.traces += 1
            if choice.per_day is not None and days[trace.day] >= choice.per_day:
                counts.over_limit += 1
                continue
            rows = _joined(trace, table, choice, counts)
            days[trace.day] += bool(rows)
            counts.rows += len(rows)
            yield from rows


def _gather(name: str, table: SpanTable, choice: TraceChoice, counts: TraceCounts) -> None:
    for raw in read_source(name):
        if isinstance(raw.fields, BadRow):
            counts.fault(raw.fields.reason, str(raw.fields))
            continue
        try:
            for span in spans_of(raw.fields):
                fault = span if isinstance(span, SpanFault) else _add(span, table, choice)
                if fault:
                    counts.fault(fault.reason, f"{raw.where}: {fault.message}")
        except RecursionError:
            counts.fault("too_deep", f"{raw.where}: its values are nested too deeply")


def _add(span: Span, table: SpanTable, choice: TraceChoice) -> SpanFault | None:
    """Add a span that is in the sample; return why it cannot be kept, if so.

    Raises:
        UsageError: the temporary file cannot be written.
    """
    named = f"span {span.span_id!a} of trace {span.trace_id!a}"
    try:
        if (order := choice.order(span.trace_id)) is not None:
            table.add(span, order)
    except UnicodeEncodeError:
        return SpanFault("lone_surrogate", f"{named} has a lone surrogate: mend it at its source")
    except sqlite3.Error as error:
        raise UsageError(
            f"spans cannot be kept in a temporary file: {error}; free some space, name another "
            "folder by TMPDIR, or take a smaller --sample"
        ) from error
    return None


def _joined(
    trace: Trace, table: SpanTable, choice: TraceChoice, counts: TraceCounts
) -> list[dict[str, Any]]:
    """Return the rows of a trace; none if it is filtered out or cannot be joined."""
    try:
        spans = table.spans(trace)
        rows = rows_of(spans)
        if not choice.fits(spans, rows):
            counts.filtered += 1
            return []
        for row in rows:
            to_example(row, f"trace {trace.trace_id}")
    except Unjoinable as error:
        counts.unjoined[str(error)] += 1
        counts.examples.setdefault(str(error), trace.trace_id)
        return []
    except BadRow as error:
        counts.fault(error.reason, str(error))
        return []
    except RecursionError:
        counts.fault("too_deep", f"trace {trace.trace_id}: its values are nested too deeply")
        return []
    counts.without_root += not has_root(spans)
    counts.with_media += sum("left_out" in row["metadata"] for row in rows)
    return rows


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
            order: the bytes that sort the traces of a day; spans of one trace have the same.

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
        """Yield the traces by day, and within a day by their order."""
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
