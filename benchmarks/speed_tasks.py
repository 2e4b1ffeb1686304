"""The tasks that ``speed.py`` measures, each in its own process: seconds, CPU time, memory.

Run as ``python benchmarks/speed_tasks.py TASK ARGUMENT…``; prints one JSON object.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import random
import resource
import sqlite3
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

_LINE = 10**6
"""Characters of a line that longer ones repeat."""
_PORTION = 64
"""Rows of a store that are read at once: as many as stay near the processor."""


def summarize(labels: str) -> int:
    """Compute the default metrics of a label file or a store."""
    from labeler import api  # noqa: PLC0415 - this process alone needs it

    return api.summary(labels)[0].labeled


def records(path: str) -> int:
    """Read every line as a checked label, and compute nothing."""
    from labeler import api  # noqa: PLC0415 - as above

    return sum(1 for _ in api.read_labels(path))


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


def decode_models(path: str) -> int:
    """Decode every line by pydantic into a label, and check types and checksum."""
    from labeler.data.lines import without_checksum  # noqa: PLC0415 - as above
    from labeler.labels.record import LabelRecord  # noqa: PLC0415 - as above

    validate = LabelRecord.model_validate_json
    return _decoded(path, lambda line: validate(without_checksum(line)[0]))


def fill_store(folder: str, path: str, count: str) -> int:
    """Put labels of a file into a store."""
    from labeler import api  # noqa: PLC0415 - as above
    from labeler.store.maintenance import import_labels  # noqa: PLC0415 - as above

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


def _values(folder: str) -> Iterator[bytes]:
    from labeler.store.database import Database  # noqa: PLC0415 - as above

    with closing(Database(Path(folder).absolute())) as database:
        for row in database.records():
            yield row.data()


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
    found = _values(folder)
    while values := [*islice(found, _PORTION)]:
        begin = time.process_time()
        size += sum(map(len, filter(_is_whole, values)))
        seconds += time.process_time() - begin
    _tell(size, seconds, seconds)
    return size


def scan_unpacked(folder: str) -> int:
    """The same, decompressed."""
    return sum(len(zlib.decompress(value[36:])) for value in _values(folder))


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
        random.Random(0).shuffle(texts)
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
        *(summarize, records, decode_json, decode_msgspec, decode_models, fill_store),
        *(scan_raw, scan_columns, scan_rows, hash_values, scan_checksums, scan_unpacked, split),
    )
}
BARE = frozenset({"scan_raw", "scan_columns", "split", "decode_json", "decode_msgspec"})
"""Tasks that load nothing of the program first."""
TELLING = frozenset({"split", "hash_values"})
"""Tasks that tell themselves how long a part of them took."""


def peak_memory() -> float:
    """Megabytes that this process held at most."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    # What getrusage tells includes the parent's memory, from before this program was loaded.
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def main() -> None:
    """Run one task."""
    name, *arguments = sys.argv[1:]
    if name not in BARE:
        # What a task alone takes is measured without the loading of the program.
        importlib.import_module("labeler.api")
    begin, busy = time.perf_counter(), time.process_time()
    count = TASKS[name](*arguments)
    if name not in TELLING:
        _tell(count, time.perf_counter() - begin, time.process_time() - busy)


def _tell(count: int, seconds: float, processor: float) -> None:
    facts = {"count": count, "seconds": seconds, "processor": processor}
    print(json.dumps(facts | {"megabytes": peak_memory()}))


if __name__ == "__main__":
    main()
