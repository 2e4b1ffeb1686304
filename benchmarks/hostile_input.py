"""Measure the memory that hostile files and hostile answers take.

    python benchmarks/reliability.py --only memory

Each case is read by a process of its own, as Linux counts its greatest memory. Files are compressed
and inflate to a gigabyte, or hold a structure whose objects or rows would take that much. 16
answers are in flight at once.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import feather, parquet

import labeler
from harness import Finding, at_most, peak_memory, spent
from labeler.api import open_rows
from labeler.data.label_files import read_outcomes
from labeler.errors import FatalJudgeError, UsageError
from labeler.store import MemoryStore
from wire.calls import Call
from wire.connections import Connection, Wire
from wire.provider import Behavior, Provider

MEGABYTE = 1 << 20
FILES_GOAL, ANSWERS_GOAL = 300, 500
"""Megabytes."""
IN_FLIGHT = 16
_CHUNK = b"x" * MEGABYTE
_MOST_ROWS = 1000
"""Rows of a file that are read; each of millions takes the same."""


def _long(start: bytes, size: int = 1000) -> Iterator[bytes]:
    yield start
    for _ in range(size):
        yield _CHUNK


def _repeated(start: bytes, part: bytes, size: int, end: bytes) -> Iterator[bytes]:
    yield start
    count = size * MEGABYTE // len(part)
    for _ in range(0, count, 4096):
        yield part * 4096
    yield end


def _shared(size: int = 2) -> Any:  # noqa: ANN401 - pyarrow has no types
    text = pa.array(["x" * MEGABYTE * size])
    return pa.table({"question": pa.DictionaryArray.from_arrays([0] * 1000, text)})


def _batch() -> Iterator[bytes]:
    sink, table = io.BytesIO(), pa.table({"question": ["x" * MEGABYTE] * 400})
    feather.write_feather(table, sink, compression="zstd", chunksize=400)
    yield sink.getvalue()


def _arrow() -> Iterator[bytes]:
    sink = io.BytesIO()
    feather.write_feather(_shared(), sink, compression="zstd")
    yield sink.getvalue()


def _parquet() -> Iterator[bytes]:
    sink = io.BytesIO()
    parquet.write_table(_shared(), sink, compression="zstd")
    yield sink.getvalue()


FILES: dict[str, Callable[[], Iterable[bytes]]] = {
    "line.jsonl.gz": lambda: _long(b'{"id": "'),
    "objects.jsonl.gz": lambda: _repeated(b'{"a": [', b"{},", 60, b"0]}\n"),
    "numbers.jsonl.gz": lambda: _repeated(b'{"a": [', b"300,", 60, b"0]}\n"),
    "brackets.jsonl.gz": lambda: _repeated(b"", b"[", 60, b"\n"),
    "emoji.jsonl.gz": lambda: _repeated('{"id": "😀'.encode(), b"x", 15, b'"}\n'),
    "text.jsonl.gz": lambda: _repeated(b'{"id": "', b"x", 60, b'"}\n'),
    "array.json.gz": lambda: _long(b'["'),
    "objects.json.gz": lambda: _repeated(b"[", b"{},", 60, b"{}]"),
    "document.json.gz": lambda: _long(b'{"rows": ["'),
    "quote.csv.gz": lambda: _long(b'id,question\n1,"'),
    "batch.arrow": _batch,
    "shared text.arrow": _arrow,
    "shared text.parquet": _parquet,
    "labels line.jsonl.gz": lambda: _long(b'{"kind": "label", "key": "'),
    "labels objects.jsonl.gz": lambda: _repeated(b'{"kind": [', b"{},", 60, b"0]}\n"),
    "labels text.jsonl.gz": lambda: _repeated(b'{"kind": "', b"x", 60, b'"}\n'),
}


def _bomb(size: int = 256) -> Behavior:
    body = gzip.compress(b" " * MEGABYTE * size)

    async def behave(_: Call, wire: Wire) -> None:
        await wire.respond(200, body, {"content-encoding": "gzip"})

    return behave


async def _endless(_: Call, wire: Wire) -> None:
    if not isinstance(wire, Connection):
        raise TypeError("only a connection sends without end")
    await wire.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")
    while wire.open:
        await wire.send(b" " * 65536)


def _objects() -> Behavior:
    body = b'{"choices": [' + b"{}," * (5 * MEGABYTE) + b"{}]}"

    async def behave(_: Call, wire: Wire) -> None:
        await wire.respond(200, body)

    return behave


ANSWERS: dict[str, Callable[[], Behavior]] = {
    "gzip that inflates to 256 MB": _bomb,
    "a body without end": lambda: _endless,
    "a body of 5 million objects": _objects,
}


def read_file(path: str) -> str:
    """Read a file of rows or labels; return what became of it."""
    reading = read_outcomes(path) if Path(path).name.startswith("labels") else open_rows(path)
    try:
        found = [getattr(one, "content", one) for one in islice(reading, _MOST_ROWS)]
    except UsageError:
        return "error of the file"
    return ", ".join(sorted({getattr(one, "reason", "row") for one in found}))


def ask(url: str) -> str:
    """Ask for as many labels as are in flight at once; return what became of them."""
    judge = labeler.OpenAIJudge("m", api_key="none", base_url=url, preflight=False, max_attempts=1)
    rows = [
        {"id": str(n), "question": f"{n}?", "documents": ["d."], "response": "r."}
        for n in range(2 * IN_FLIGHT)
    ]
    try:
        outcomes = labeler.label(rows, judge=judge, store=MemoryStore(), concurrency=IN_FLIGHT)
    except FatalJudgeError as error:
        return f"the run stopped: {error.reason}"
    return ", ".join(sorted({getattr(one, "reason", "label") for one in outcomes}))


def _measured(case: str, goal: int, *child: str) -> Finding:
    printed = spent(sys.executable, __file__, *child, keep=True).printed
    megabytes, outcome = json.loads(printed.splitlines()[-1])
    return at_most(f"{case} ({outcome})", megabytes, goal, " MB")


def measure() -> Iterator[Finding]:
    """Yield the memory of every case."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        for name, content in FILES.items():
            path = Path(folder) / name
            with gzip.open(path, "wb", 1) if name.endswith(".gz") else path.open("wb") as file:
                file.writelines(content())
            yield _measured(f"file {name}", FILES_GOAL, "file", str(path))
            path.unlink()
    for name, behave in ANSWERS.items():
        made = behave()
        with Provider(lambda _, made=made: made, record=False) as provider:  # type: ignore[misc]
            yield _measured(f"{IN_FLIGHT} answers: {name}", ANSWERS_GOAL, "answers", provider.url)


if __name__ == "__main__":  # as a child
    kind, given = sys.argv[1:]
    outcome = read_file(given) if kind == "file" else ask(given)
    print(json.dumps([round(peak_memory()), outcome]))
