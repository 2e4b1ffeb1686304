"""The tasks that ``speed.py`` measures, each in its own process.

    python benchmarks/speed_tasks.py TASK ARGUMENT…

Prints one JSON object: CPU seconds, megabytes of memory at most, what it counted. Imports of a task
stand in it, because its process alone needs them.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

import hashlib
import importlib
import json
import os
import random
import sqlite3
import sys
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from harness import peak_memory

_LINE = 10**6
"""Characters of a line that longer ones repeat."""
_PORTION = 64
"""Rows of a store that are read at once: as many as stay near the processor."""


def summarize(labels: str) -> int:
    """Compute the default metrics of a label file or a store."""
    from labeler import api

    return api.summary(labels)[0].labeled


def records(path: str) -> int:
    """Read every line as a checked label, and compute nothing."""
    from labeler import api

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
    import msgspec

    return _decoded(path, msgspec.json.decode)


def decode_models(path: str) -> int:
    """Decode every line by pydantic into a label, and check types and checksum."""
    from labeler.data.lines import without_checksum
    from labeler.labels.record import LabelRecord

    validate = LabelRecord.model_validate_json
    return _decoded(path, lambda line: validate(without_checksum(line)[0]))


def fill_store(folder: str, path: str, count: str) -> int:
    """Put labels of a file into a store."""
    from labeler import api
    from labeler.store.maintenance import import_labels

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
    from labeler.store.database import Database

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
    _tell(size, seconds)
    return size


def scan_unpacked(folder: str) -> int:
    """The same, decompressed."""
    return sum(len(zlib.decompress(value[36:])) for value in _values(folder))


def split(count: str) -> int:
    """Split documents: so many characters on one line, or as they are; counts their bytes.

    A line is a mix of all documents, the same million characters over and over: lines of two sizes
    differ in nothing but that, else one may have more sentences a megabyte than the other.
    """
    from labeler.sentences.splitting import SPLITTERS
    from ragbench_data import ragbench_rows

    texts = [text for row in ragbench_rows() for text in row["documents"]]
    texts = (
        texts or ["It is so. Is it? Dr. Who said 3.5 of 10 were, e.g. those.\n\n- One\n- Two"] * 999
    )
    if int(count):
        random.Random(0).shuffle(texts)
        line = " ".join(" ".join(texts).split())[:_LINE]
        texts = [(line * (int(count) // len(line) + 1))[: int(count)]]
    cutter = SPLITTERS["general"]
    cutter.split("It loads what it needs. Now.")
    begin = time.process_time()
    for text in texts:
        cutter.split(text)
    size = sum(len(text.encode()) for text in texts)
    _tell(size, time.process_time() - begin)
    return size


def trusting(task: Any) -> dict[str, Any]:  # noqa: ANN401 - any task
    """Answer that the first sentence supports everything."""
    keys = task.example.document_keys()
    return {
        "relevance_explanation": "The first one answers it.",
        "all_relevant_sentence_keys": keys[:3],
        "overall_supported_explanation": "All of it is there.",
        "overall_supported": True,
        "sentence_support_information": [
            {
                "response_sentence_key": key,
                "explanation": "The first sentence says so.",
                "supporting_sentence_keys": keys[:1],
                "fully_supported": True,
            }
            for key in task.example.response_keys()
        ],
        "all_utilized_sentence_keys": keys[:2],
    }


def label(rows: str, store: str, output: str) -> int:
    """Label a file of rows by a function that costs nothing."""
    import labeler

    judge = labeler.judge("trusting", version=1)(trusting)
    return len(labeler.label(rows, judge=judge, store=store, output=output))


def copy(rows: str, labels: str, output: str) -> int:
    """Read the rows and copy the labels: what no rerun can do without."""
    with Path(labels).open("rb") as source, Path(output).open("wb") as target:
        target.writelines(source)
    return sum(1 for _ in _lines(rows))


def read_rows(count: str) -> float:
    """Read made-up short rows; counts the bytes of memory that each one adds."""
    from labeler.data.formats.objects import python_source
    from labeler.data.rows import Rows, RowStream

    def stream(number: int) -> RowStream:
        return RowStream(Rows([python_source(_Short(number).__iter__, number)]))

    deque(stream(1000), maxlen=0)
    before, most, done = _memory(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            most[0] = max(most[0], _memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    counted = sum(1 for _ in stream(int(count)))
    done.set()
    watcher.join()
    return (max(most[0], _memory()) - before) / counted


class _Short(Sequence[dict[str, Any]]):
    """Short rows, made when they are read."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: Any) -> Any:  # noqa: ANN401 - of a sequence
        name = f"row-{place}"
        return {"id": name, "question": name, "documents": ["It is."], "response": "It is."}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(self.__getitem__, range(self._count))


def _memory() -> int:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


TASKS: dict[str, Callable[..., float]] = {
    task.__name__: task
    for task in (
        *(summarize, records, decode_json, decode_msgspec, decode_models, fill_store),
        *(scan_raw, scan_columns, scan_rows, hash_values, scan_checksums, scan_unpacked, split),
        *(label, copy, read_rows),
    )
}
BARE = frozenset({"scan_raw", "scan_columns", "split", "decode_json", "decode_msgspec", "copy"})
"""Tasks that load nothing of the program first."""
TELLING = frozenset({"split", "hash_values"})
"""Tasks that tell themselves how long a part of them took."""


def main() -> None:
    """Run one task."""
    name, *arguments = sys.argv[1:]
    if name not in BARE:
        # What a task alone takes is measured without the loading of the program.
        importlib.import_module("labeler.api")
    busy = time.process_time()
    count = TASKS[name](*arguments)
    if name not in TELLING:
        _tell(count, time.process_time() - busy)


def _tell(count: float, cpu: float) -> None:
    print(json.dumps({"counted": count, "cpu": cpu, "megabytes": peak_memory()}))


if __name__ == "__main__":
    main()
