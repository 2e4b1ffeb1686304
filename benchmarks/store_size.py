"""Measure how a label store of one SQLite file behaves as it grows to millions of labels.

Run the steps one after the other, each is a process of its own:
``python benchmarks/store_size.py grow FOLDER 1000000`` puts small labels into a store until it
holds so many, ``fill`` adds rows of random bytes that only make it larger, and the other tasks
measure one that is there. Labels are valid, made up, and encoded before the clock starts, because
encoding does not depend on other labels; ``encode 5000`` measures it, of RAGBench's size. They go
through the store's own writer: queue, transactions of 500, each flushed to the disk. Rates are by
the clock, of the labels before the count that is named.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import sqlite3
import time
import zlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from labeler.labels.answers import GPTLabelingOutput, SentenceSupport
from labeler.labels.record import LabelRecord
from labeler.labels.signature import Artifact, Signature, canonical_json, key_of, label_key, shown
from labeler.sentences.example import KeyedExample, Sentence
from labeler.store import MAGIC, disk
from labeler.store import encode as encode_record
from labeler.store.disk import DiskStore
from labeler.store.maintenance import merge_stores, verify_store
from speed_labels import Labels

PORTION = 100_000
"""Labels that are made, then put while the clock runs."""
FILLED = 500_000
"""Labels of a transaction that is not measured."""
IN_FLIGHT = 2_000
READS = 20_000
NUMBER = "9999999999"
"""Stands in the template where the number of a label goes."""
_COUNT = "SELECT value FROM Settings WHERE key = 'count'"
_FILL = """
WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers LIMIT ?)
INSERT INTO Cache(
    key, raw, store_time, expire_time, access_time, access_count, tag, size, mode, filename, value
)
SELECT key, 1, ?, NULL, ?, 0, NULL, 0, 1, NULL, randomblob(794)
FROM (SELECT lower(hex(randomblob(32))) AS key FROM numbers) ORDER BY key"""
"""The columns are those that diskcache writes."""
SIGNATURE = Signature(
    judge="made-up",
    model="none-1",
    response_schema=Artifact(name="trace/v1", digest="0" * 64),
    splitter="general/1",
)


class Encoded(NamedTuple):
    """A label as its bytes, which the store saves unchanged."""

    key: str
    id: str
    data: bytes
    kind: str = "label"

    def fault(self) -> None:
        """Pass the store's check, which is not what is measured."""


class Spent:
    """Seconds by the clock and of a processor, and what was written, since it was made."""

    def __init__(self) -> None:
        self._written = _of("io", "wchar") / 1e6
        self._began, self._busy = time.perf_counter(), time.process_time()

    def told(self, what: str, count: int, **more: object) -> None:
        """Print what was done, how often, and what it took."""
        seconds = time.perf_counter() - self._began
        facts = {
            "what": what,
            "count": count,
            "seconds": round(seconds, 3),
            "processor": round(time.process_time() - self._busy, 3),
            "per_second": round(count / seconds),
            "peak_megabytes": round(_of("status", "VmHWM") / 1024),
            "written_megabytes": round(_of("io", "wchar") / 1e6 - self._written),
            "load": round(os.getloadavg()[0], 1),
        }
        print(json.dumps(facts | more), flush=True)


def template() -> LabelRecord:
    """A label of two document sentences and one response sentence."""
    texts = ("Old files are removed after seven days.", "Logs are kept in one folder.")
    example = KeyedExample(
        id=f"row-{NUMBER}",
        question=f"When are the files of host {NUMBER} removed?",
        documents=(
            tuple(
                Sentence(key=f"0{letter}", text=text, start=0, end=len(text))
                for letter, text in zip("ab", texts, strict=True)
            ),
        ),
        response=(Sentence(key="a", text="After seven days.", start=0, end=17),),
        splitter="general/1",
    )
    support = SentenceSupport(
        response_sentence_key="a",
        explanation="The first sentence says so.",
        supporting_sentence_keys=("0a",),
        fully_supported=True,
    )
    label = GPTLabelingOutput(
        relevance_explanation="The first sentence answers the question.",
        all_relevant_sentence_keys=("0a",),
        overall_supported_explanation="It is what the document says.",
        overall_supported=True,
        sentence_support_information=(support,),
        all_utilized_sentence_keys=("0a",),
    )
    key = label_key(example, SIGNATURE)
    return LabelRecord(key=key, example=example, label=label, signature=SIGNATURE)


def encoder() -> Callable[[int], Encoded]:
    """Return what makes the label of a number, several times as fast as the models could."""
    record = template()
    text = record.model_dump_json().encode().replace(record.key.encode(), b"%(key)b")
    text = text.replace(NUMBER.encode(), b"%(number)b")
    seen = canonical_json(shown(record.example)).replace(NUMBER.encode(), b"%b")
    facts = canonical_json(SIGNATURE.facts())

    def encoded(number: int) -> Encoded:
        digits = b"%010d" % number
        key = key_of(seen % digits, facts)
        body = zlib.compress(text % {b"key": key.encode(), b"number": digits}, 1)
        return Encoded(key, digits.decode(), MAGIC + hashlib.sha256(body).digest() + body)

    return encoded


def grow(folder: str, upto: str, first: str = "0") -> None:
    """Put labels into a store until it holds so many; ``first`` is the number of its first one."""
    vars(disk)["encode"] = attrgetter("data")
    make = encoder()
    with DiskStore(folder) as store:
        while (begin := len(store)) < int(upto):
            end = min(begin // PORTION * PORTION + PORTION, int(upto))
            labels = [make(int(first) + number) for number in range(begin, end)]
            spent = Spent()
            _put(store, labels)
            spent.told("write", len(labels), upto=end, bytes=_bytes(folder))
            if store.get(labels[-1].key) is None:
                raise SystemExit("the last label is not there")


def encode(count: str) -> None:
    """Encode labels of RAGBench's size."""
    records = [LabelRecord.model_validate_json(line) for line in Labels().lines(int(count))]
    spent = Spent()
    spent.told("encode", len(records), bytes=sum(len(encode_record(one)) for one in records))


def fill(folder: str, upto: str) -> None:
    """Add rows of the same form, but of random bytes, until the store holds so many: in seconds."""
    with closing(sqlite3.connect(Path(folder, "cache.db"), isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        while (count := connection.execute(_COUNT).fetchone()[0]) < int(upto):
            spent, now = Spent(), time.time()
            more = min(FILLED, int(upto) - count)
            connection.execute(_FILL, (more, now, now))
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            spent.told("fill", more, upto=count + more, bytes=_bytes(folder))


def _put(store: DiskStore, labels: list[Encoded]) -> None:
    waiting: deque[Future[bool]] = deque()
    for label in labels:
        waiting.append(store.put(label))  # type: ignore[arg-type]  # encoded already
        if len(waiting) > IN_FLIGHT and not waiting.popleft().result():
            raise SystemExit(f"label {label.id} is there already")
    for saved in waiting:
        saved.result()


def read(folder: str, valid: str, first: str = "0") -> None:
    """Read labels by key, chosen at random among the valid ones, as bytes and decoded; twice."""
    make, rng = encoder(), random.Random(os.getpid())
    with DiskStore(folder, create=False) as store:
        count = len(store)
        named = store._database.first  # noqa: SLF001 - as bytes
        for name, get in (("bytes", named), ("records", store.get)):
            keys = [make(int(first) + rng.randrange(int(valid))).key for _ in range(READS)]
            for what in (f"read {name}", f"read {name} again"):
                spent = Spent()
                missing = sum(not get(key) for key in keys)
                spent.told(what, READS, upto=count, missing=missing)


def open_(folder: str) -> None:
    """What a run does first: open, count, look at all keys."""
    spent = Spent()
    with DiskStore(folder) as store:
        spent.told("open", 1)
        spent = Spent()
        count = len(store)
        spent.told("count", count)
        spent = Spent()
        store._database.require_findable_rows()  # noqa: SLF001 - what the first lease does
        spent.told("look at all keys", count)


def integrity(folder: str) -> None:
    """What SQLite says of the file."""
    with DiskStore(folder, create=False) as store:
        spent = Spent()
        defects = store._database.all("PRAGMA integrity_check(10)")  # noqa: SLF001 - what `verify` begins with
        spent.told("integrity", len(store), defects=defects, bytes=_bytes(folder))


def numbers(folder: str) -> None:
    """List the numbers of all rows by key, as an iteration, a merge and ``verify`` do first."""
    with DiskStore(folder, create=False) as store:
        spent = Spent()
        spent.told("numbers", len(store._database.salvaged()[0]))  # noqa: SLF001 - what others begin with


def iterate(folder: str, most: str) -> None:
    """Read records in the order of their keys."""
    with DiskStore(folder, create=False) as store:
        rows = iter(store)
        next(rows)
        spent = Spent()
        spent.told("iterate", sum(1 for _ in zip(range(int(most)), rows, strict=False)))


def merge(source: str, into: str) -> None:
    """Merge a store into another."""
    spent = Spent()
    result = merge_stores([Path(source)], into)
    facts = {"new": result.new, "present": result.present, "bytes": _bytes(into)}
    spent.told("merge", result.new + result.present, **facts)


def verify(folder: str) -> None:
    """Verify all labels."""
    spent = Spent()
    found = verify_store(Path(folder))
    spent.told("verify", sum(found.sound.values()), damaged=len(found.damaged))


def _bytes(folder: str) -> int:
    return sum(path.stat().st_size for path in Path(folder).glob("cache.db*"))


def _of(file: str, name: str) -> int:
    """A number that the system tells of this process."""
    lines = Path("/proc/self", file).read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


TASKS: dict[str, Callable[..., Any]] = {
    "open": open_,
    "grow": grow,
    "encode": encode,
    "fill": fill,
    "read": read,
    "integrity": integrity,
    "numbers": numbers,
    "iterate": iterate,
    "merge": merge,
    "verify": verify,
}


def main() -> None:
    """Carry out one task."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("task", choices=list(TASKS))
    parser.add_argument("arguments", nargs="*", help="arguments of the task's function")
    given = parser.parse_args()
    TASKS[given.task](*given.arguments)


if __name__ == "__main__":
    main()
