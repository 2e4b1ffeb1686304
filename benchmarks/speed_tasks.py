"""The tasks that ``speed.py`` measures, each in its own process: seconds, CPU time, memory.

Run as ``python benchmarks/speed_tasks.py TASK ARGUMENT…``; prints one JSON object.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import random
import resource
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

_CHUNK = 1 << 20
_LINE = 10**6
"""Characters of a line that longer ones repeat."""
_PORTION = 64
"""Rows of a store that are read at once: as many as stay near the processor."""


def read_bytes(path: str) -> int:
    """Read a file from beginning to end."""
    size = 0
    with Path(path).open("rb", buffering=0) as file:
        while block := file.read(_CHUNK):
            size += len(block)
    return size


def forget(path: str) -> int:
    """Ask the system to drop a file from its cache, so that the next reading is from the disk."""
    with Path(path).open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return 0


def index(path: str) -> int:
    """Write the index of a label file."""
    from labeler.calculators.index.sidecar import write_sidecar  # noqa: PLC0415 - this process alone needs it

    return write_sidecar(Path(path))


def multiply(path: str, copies: str, target: str) -> int:
    """Write the first batch of an index so many times over."""
    import numpy as np  # noqa: PLC0415 - as above

    from labeler.calculators.index.frames import Arrays  # noqa: PLC0415 - as above
    from labeler.calculators.index.segments import (  # noqa: PLC0415 - as above
        Header,
        Segment,
        SegmentWriter,
        StoredBatch,
    )

    class Copy:
        """A batch as one of other rows and questions, none of which are counted as repeated."""

        def __init__(self, batch: StoredBatch, number: int) -> None:
            self._batch, self._number, self.columns = batch, number, batch.columns

        def __len__(self) -> int:
            return len(self._batch)

        def read(self, name: str) -> Arrays:
            found = self._batch.read(name)
            if name in {"identity", "asked"}:
                return (found[0] + np.uint64(self._number),)
            return found

    writer = SegmentWriter(Path(target).parent)
    with closing(Segment(Path(path))) as segment:
        for number in range(int(copies)):
            writer.add(Copy(next(segment.batches()), number))
    writer.finish(Path(target), Header("copies", 0, 1, writer.rows))
    return writer.rows


def _summary(frames: Iterable[Any], *, intervals: bool) -> int:
    from labeler.calculators import Intervals, select_metrics  # noqa: PLC0415 - as above
    from labeler.calculators.column_summary import (  # noqa: PLC0415 - as above
        ColumnCounts,
        SummaryRequest,
    )

    metrics = [metric for metric in select_metrics("all") if metric.profile.name == "trace"]
    counts = ColumnCounts(SummaryRequest(metrics, intervals=Intervals() if intervals else None))
    for frame in frames:
        counts.add(frame)
    return counts.summary()[0].labeled


def metrics(path: str, intervals: str = "") -> int:
    """Compute all TRACe definitions and sentence ratios from an index."""
    from labeler.calculators.index.segments import Segment  # noqa: PLC0415 - as above

    with closing(Segment(Path(path))) as segment:
        return _summary(segment.frames(by_key=False), intervals=bool(intervals))


def stream(path: str) -> int:
    """Compute the same from the label file, line by line."""
    from labeler.calculators.index.sidecar import stream as frames  # noqa: PLC0415 - as above

    return _summary(frames(path, lambda _: None), intervals=False)


def records(path: str) -> int:
    """Compute the same by a model of each label."""
    from labeler import api  # noqa: PLC0415 - as above
    from labeler.calculators import select_metrics  # noqa: PLC0415 - as above

    ids = [metric.id for metric in select_metrics("all") if metric.profile.name == "trace"]
    return api.summary(api.read_labels(path), ids)[0].labeled


def _lines(path: str) -> Iterator[bytes]:
    with Path(path).open("rb", buffering=1 << 18) as file:
        yield from file


def _decoded(path: str, decode: Callable[[bytes], object]) -> int:
    return sum(decode(line) is not None for line in _lines(path))


def decode_json(path: str) -> int:
    """Decode every line by the standard library."""
    return _decoded(path, json.loads)


def decode_msgspec(path: str) -> int:
    """Decode every line by msgspec, into dicts and lists."""
    import msgspec  # noqa: PLC0415 - as above

    return _decoded(path, msgspec.json.decode)


def decode_structs(path: str) -> int:
    """Decode every line by msgspec into typed structs of all its fields, and check nothing else."""
    from labeler.calculators.index.structs import RECORD  # noqa: PLC0415 - as above

    return _decoded(path, RECORD.decode)


def decode_digests(path: str) -> int:
    """The same, and what no check can do without: the JSON of the sentences, and its SHA-256."""
    import hashlib  # noqa: PLC0415 - as above

    import msgspec  # noqa: PLC0415 - as above

    from labeler.calculators.index.structs import RECORD  # noqa: PLC0415 - as above

    decode, encode = RECORD.decode, msgspec.json.Encoder().encode

    def digest(line: bytes) -> str:
        example = decode(line).example
        return hashlib.sha256(encode([example.documents, example.response])).hexdigest()

    return _decoded(path, digest)


def decode_slim(path: str) -> int:
    """Decode of every line by msgspec what metrics count alone, and check nothing else."""
    import msgspec  # noqa: PLC0415 - as above

    sentence = msgspec.defstruct("Sentence", [("key", str), ("text", str)], gc=False)
    support = msgspec.defstruct(
        "Support",
        [
            ("response_sentence_key", str),
            ("supporting_sentence_keys", list[str]),
            ("fully_supported", bool),
        ],
        gc=False,
    )
    label = msgspec.defstruct(
        "Label",
        [
            ("all_relevant_sentence_keys", list[str]),
            ("all_utilized_sentence_keys", list[str]),
            ("sentence_support_information", list[support]),  # type: ignore[valid-type]  # made above
        ],
        gc=False,
    )
    example = msgspec.defstruct(
        "Example",
        [
            ("documents", list[list[sentence]]),  # type: ignore[valid-type]  # made above
            ("response", list[sentence]),  # type: ignore[valid-type]  # made above
        ],
        gc=False,
    )
    record = msgspec.defstruct("Record", [("example", example), ("label", label)], gc=False)
    return _decoded(path, msgspec.json.Decoder(record).decode)


def decode_labels(path: str) -> int:
    """Decode and check every line as the index does, and count nothing."""
    from labeler.calculators.index.decoding import decode_label  # noqa: PLC0415 - as above

    return _decoded(path, decode_label)


def fill_store(folder: str, path: str, count: str) -> int:
    """Put labels of a file into a store."""
    from labeler import api  # noqa: PLC0415 - as above
    from labeler.store.merge import import_labels  # noqa: PLC0415 - as above

    return import_labels(islice(api.stored_outcomes(path), int(count)), folder).new


def _select(folder: str, columns: str) -> Iterator[tuple[Any, ...]]:
    """Go through a store's file by SQLite alone."""
    file = Path(folder, "cache.db").absolute().as_uri()
    with closing(sqlite3.connect(f"{file}?mode=ro", uri=True)) as connection:
        yield from connection.execute(f"SELECT {columns} FROM Cache")  # noqa: S608 - our own words


def scan_raw(folder: str) -> int:
    """Go through the values of a store's file by SQLite alone."""
    return sum(len(value) for (value,) in _select(folder, "value"))


def scan_columns(folder: str) -> int:
    """The same with the columns that tell what a row is."""
    return sum(len(row[-1]) for row in _select(folder, "rowid, key, raw, mode, filename, value"))


def _portions(folder: str) -> Iterator[list[tuple[int, Any]]]:
    from labeler.store.reader import Database  # noqa: PLC0415 - as above

    with closing(Database(Path(folder).absolute(), 30.0)) as database:
        last = 0
        while rows := database.rows_after(last, _PORTION):
            yield rows
            last = rows[-1][0]


def _values(folder: str) -> Iterator[bytes]:
    return (row.value for rows in _portions(folder) for _, row in rows)


def _is_whole(value: bytes) -> bool:
    return hashlib.sha256(value[36:]).digest() == value[4:36]


def scan_rows(folder: str) -> int:
    """Go through the rows of a store, each seen to be one that a store writes."""
    return sum(map(len, _values(folder)))


def scan_checksums(folder: str) -> int:
    """The same, with the checksum of each."""
    return sum(map(len, filter(_is_whole, _values(folder))))


def hash_values(folder: str) -> int:
    """Work out the checksums of values that are in memory: what any scan with them takes."""
    size, seconds = 0, 0.0
    for rows in _portions(folder):
        values = [row.value for _, row in rows]
        begin = time.process_time()
        size += sum(map(len, filter(_is_whole, values)))
        seconds += time.process_time() - begin
    _tell(size, seconds, seconds)
    return size


def scan_unpacked(folder: str) -> int:
    """The same, decompressed."""
    from labeler.store.checksums import label_json  # noqa: PLC0415 - as above

    return sum(len(label_json(value) or b"") for value in _values(folder))


def index_store(folder: str) -> int:
    """Index a store from nothing: read, check, decompress, decode, count and write."""
    from labeler.calculators.index.store_index import update_index  # noqa: PLC0415 - as above

    with closing(update_index(Path(folder), print, rebuild=True)) as made:
        return made.rows


def split(name: str, count: str) -> int:
    """Split documents by a splitter: so many characters on one line, or as they are.

    A line is a mix of all documents, the same million characters over and over: lines of two sizes
    differ in nothing but that, else one may have more sentences a megabyte than the other.
    """
    from labeler.sentences.splitting import SPLITTERS  # noqa: PLC0415 - as above
    from ragbench_data import ragbench_rows  # noqa: PLC0415 - as above

    texts = [text for row in ragbench_rows() for text in row["documents"]]
    texts = (
        texts or ["It is so. Is it? Dr. Who said 3.5 of 10 were, e.g. those.\n\n- One\n- Two"] * 999
    )
    if int(count):
        random.Random(0).shuffle(texts)  # noqa: S311 - no secret
        line = " ".join(" ".join(texts).split())[:_LINE]
        texts = [(line * (int(count) // len(line) + 1))[: int(count)]]
    cutter = SPLITTERS[name]
    cutter.split("It loads what it needs. Now.")
    begin = time.process_time()
    for text in texts:
        cutter.split(text)
    taken = time.process_time() - begin
    print(json.dumps({"bytes": sum(len(t.encode()) for t in texts), "seconds": taken}))
    return 0


TASKS: dict[str, Callable[..., int]] = {
    task.__name__: task
    for task in (
        *(read_bytes, forget, index, multiply, metrics, stream, records),
        *(decode_json, decode_msgspec, decode_structs, decode_digests, decode_slim),
        decode_labels,
        *(fill_store, scan_raw, scan_columns, scan_rows, hash_values, scan_checksums),
        *(scan_unpacked, index_store, split),
    )
}


BARE = frozenset({"read_bytes", "forget", "scan_raw", "scan_columns", "split", "decode_json"})
"""Tasks that load nothing of the program first."""
TELLING = frozenset({"split", "hash_values"})
"""Tasks that tell themselves how long a part of them took."""
DECODING = frozenset(
    {"decode_slim", "decode_msgspec", "decode_structs", "decode_digests", "decode_labels"}
)
COLUMNS = frozenset({"index", "metrics", "stream", "multiply", "index_store"})
"""Tasks that load what decodes labels, and what counts by columns; the others load the rest."""


def peak_memory() -> float:
    """Megabytes that this process held at most."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    # What getrusage tells includes the parent's memory, from before this program was loaded.
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def _module(task: str) -> str:
    if task in DECODING:
        return "labeler.calculators.index.decoding"
    return "labeler.calculators.index.summaries" if task in COLUMNS else "labeler.api"


def main() -> None:
    """Run one task."""
    name, *arguments = sys.argv[1:]
    if name not in BARE:
        # What a task alone takes is measured without the loading of the program.
        importlib.import_module(_module(name))
    begin, busy = time.perf_counter(), time.process_time()
    count = TASKS[name](*arguments)
    if name not in TELLING:
        _tell(count, time.perf_counter() - begin, time.process_time() - busy)


def _tell(count: int, seconds: float, processor: float) -> None:
    facts = {"count": count, "seconds": seconds, "processor": processor}
    print(json.dumps(facts | {"megabytes": peak_memory()}))


if __name__ == "__main__":
    main()
