"""Traces of files as rows: read, sampled, joined, and counted where they give no row.

The spans of a trace may be far apart, or in several files: they are kept on disk, by trace.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from labeler.cli import options
from labeler.cli.options import check_label_target, watching
from labeler.cli.terminal import SOME_FAILED, notify
from labeler.data.formats import read_file
from labeler.data.label_files import is_table, replaced
from labeler.data.lines import STDIO
from labeler.data.parsing import to_example
from labeler.errors import BadRow, UsageError
from labeler.plugins.traces.joining import NOTES, REASONS, Unjoinable, has_root, rows_of
from labeler.plugins.traces.spans import Span, spans_of
from labeler.sentences.characters import plain_json
from labeler.sentences.display import plural


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
        faults: unreadable lines and spans, by reason.
        notes: traces, rows and spans by note, see ``NOTES``.
        examples: the first trace or place of each reason.
    """

    traces: int = 0
    rows: int = 0
    unjoined: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def fault(self, error: BadRow, where: str = "") -> None:
        """Count an unreadable line or span."""
        self.faults[error.reason] += 1
        self.examples.setdefault(error.reason, f"{where}{error}")

    def lines(self) -> Iterator[str]:
        """Yield lines about traces that give no row, and what was odd about the others."""
        for reason, count in self.unjoined.most_common():
            first = self.examples[reason]
            yield f"{plural(count, 'trace')} {REASONS[reason]} ({reason}); the first is {first}"
        for reason, count in self.faults.most_common():
            yield f"{count:,} unreadable ({reason}); the first: {self.examples[reason]}"
        for note, (noun, text) in NOTES.items():
            if count := self.notes[note]:
                yield f"{plural(count, noun)} {text}"


_NO_TRACE = "the files hold no trace, or --sample takes none of theirs"


def import_traces(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Spans as OTLP JSON (OpenInference, OpenTelemetry GenAI, OpenLLMetry), or from "
            "Phoenix, Langfuse, LangSmith, Logfire or MLflow: JSON Lines, JSON, CSV, Parquet; - "
            "reads JSON Lines from stdin."
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
    with closing(_SpanTable(choice, counts)) as table:
        for name in files:
            table.gather(name)
        days: Counter[int] = Counter()
        for trace, day, is_small in table.traces():
            counts.traces += 1
            if choice.per_day is not None and days[day] >= choice.per_day:
                counts.notes["over_limit"] += 1
                continue
            rows = table.rows(trace, is_small=bool(is_small))
            days[day] += bool(rows)
            counts.rows += len(rows)
            yield from rows


_DAY = 86_400 * 10**9
_MOST_SPANS, _MOST_BYTES = 10_000, 1 << 26
"""Spans of a trace, and bytes of their texts, that are joined."""
_CREATE = (
    "CREATE TABLE spans (trace TEXT, span TEXT, start INTEGER, hash BLOB, content BLOB, "
    "PRIMARY KEY (trace, span)) WITHOUT ROWID"
)
_TRACES = (
    f"SELECT trace, coalesce(min(nullif(start, 0)), 0) / {_DAY} AS day, "  # noqa: S608 - numbers
    f"count(*) <= {_MOST_SPANS} AND sum(length(content)) <= {_MOST_BYTES} "
    "FROM spans GROUP BY trace ORDER BY day, min(hash), trace"
)
_DECODER = msgspec.json.Decoder(Span)
_TOO_DEEP = BadRow("its values are nested too deeply", reason="too_deep")


class _SpanTable:
    """Spans in a temporary file, which the system removes with the process.

    Memory holds one trace at a time, however long the files are.
    """

    def __init__(self, choice: TraceChoice, counts: TraceCounts) -> None:
        self._choice, self._counts = choice, counts
        # An empty name is a private file of SQLite, deleted on close.
        self._table = sqlite3.connect("", isolation_level=None)
        for statement in ("PRAGMA journal_mode=OFF", "BEGIN", _CREATE):
            self._table.execute(statement)

    def gather(self, name: str) -> None:
        """Add the spans of a file that are in the sample.

        Raises:
            UsageError: the file cannot be read, or the temporary file cannot be written.
        """
        for raw in read_file(name):
            if isinstance(raw.fields, BadRow):
                self._counts.fault(raw.fields)
                continue
            try:
                for span in spans_of(raw.fields):
                    if fault := span if isinstance(span, BadRow) else self._add(span):
                        self._counts.fault(fault, f"{raw.where}: ")
            except RecursionError:
                self._counts.fault(_TOO_DEEP, f"{raw.where}: ")
            except sqlite3.Error as error:
                raise UsageError(
                    f"spans cannot be kept in a temporary file: {error}; free some space, name "
                    "another folder by TMPDIR, or take a smaller --sample"
                ) from error

    def _add(self, span: Span) -> BadRow | None:
        """Add a span if it is in the sample; return why it cannot be kept, if so."""
        ids = span.trace_id, span.span_id
        try:
            order = self._choice.order(span.trace_id)
            content = b"" if order is None else msgspec.json.encode(span)
        except UnicodeEncodeError:
            named = "span {1!a} of trace {0!a}".format(*ids)
            message = f"{named} has a lone surrogate: mend it at its source"
            return BadRow(message, reason="lone_surrogate")
        if order is None:
            return None
        row = (*ids, span.start, order, content)
        if self._table.execute("INSERT OR IGNORE INTO spans VALUES (?, ?, ?, ?, ?)", row).rowcount:
            return None
        find = "SELECT content FROM spans WHERE trace = ? AND span = ?"
        if self._table.execute(find, ids).fetchone() == (content,):
            self._counts.notes["repeated"] += 1
        else:
            self._counts.notes["replaced"] += 1
            self._table.execute("REPLACE INTO spans VALUES (?, ?, ?, ?, ?)", row)
        return None

    def traces(self) -> Iterator[tuple[str, int, int]]:
        """Yield traces by day, in a day by a hash: id, day, and 0 if it is too large to join."""
        yield from self._table.execute(_TRACES)

    def rows(self, trace: str, *, is_small: bool) -> list[dict[str, Any]]:
        """Return the rows of a trace; none if it is filtered out or cannot be joined."""
        counts = self._counts
        try:
            spans = self._spans(trace, is_small=is_small)
            rows = rows_of(spans)
            if not self._choice.fits(spans, rows):
                counts.notes["filtered"] += 1
                return []
            for row in rows:
                to_example(row, f"trace {trace}")
        except Unjoinable as error:
            counts.unjoined[str(error)] += 1
            counts.examples.setdefault(str(error), trace)
            return []
        except BadRow as error:
            counts.fault(error)
            return []
        except RecursionError:
            counts.fault(_TOO_DEEP, f"trace {trace}: ")
            return []
        counts.notes["without_root"] += not has_root(spans)
        counts.notes["with_media"] += sum("left_out" in row["metadata"] for row in rows)
        return rows

    def _spans(self, trace: str, *, is_small: bool) -> list[Span]:
        if not is_small:
            raise Unjoinable("too_large")
        find = "SELECT content FROM spans WHERE trace = ? ORDER BY start, span"
        return [_DECODER.decode(content) for (content,) in self._table.execute(find, (trace,))]

    def close(self) -> None:
        """Remove the table."""
        with suppress(sqlite3.Error):  # the disk may be full; what was raised before says so
            self._table.close()
