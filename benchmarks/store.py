"""Measure the cost of the label store, next to the same bytes in a plain file.

Run from the repository: ``python benchmarks/store.py [RECORDS] [DIRECTORY]``. The records are made
up, about as long as RAGBench's. The floor writes the same encoded bytes to one file, flushed
to the disk after every group of 500, as the store does, and reads them back.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from labeler.labels.answers import GPTLabelingOutput, SentenceSupport
from labeler.labels.record import AnyRecord, LabelRecord
from labeler.labels.signature import Artifact, Signature, label_key
from labeler.sentences.example import KeyedExample, Sentence
from labeler.store import decode, encode
from labeler.store.disk import DiskStore

GROUP = 500
SIGNATURE = Signature(
    judge="made-up",
    model="none-1",
    response_schema=Artifact(name="trace/v1", digest="0" * 64),
    splitter="general/1",
)


def main() -> None:
    """Time every act once on the same records and print a table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    where = sys.argv[2] if len(sys.argv) > 2 else None  # noqa: PLR2004 - the second argument
    words = random.Random(1).choices(range(10**6), k=4_000)
    records = [made_up(n, words) for n in range(count)]
    with tempfile.TemporaryDirectory(dir=where) as folder:
        times = measure(records, Path(folder))
        size = Path(folder, "store", "cache.db").stat().st_size
    report(times, count)
    encoded = sum(len(encode(record)) for record in records)
    json = sum(len(record.model_dump_json()) for record in records)
    print(f"\nbytes a record: JSON {json / count:.0f}, encoded {encoded / count:.0f}, ", end="")
    print(f"on disk {size / count:.0f} ({size / encoded:.2f} x encoded)")


def measure(records: list[LabelRecord], folder: Path) -> dict[str, float]:
    """Seconds of each act, in the order of the table."""
    times: dict[str, float] = {}

    def timed(name: str, act: Callable[[], object]) -> None:
        began = time.perf_counter()
        act()
        times[name] = time.perf_counter() - began

    encoded = [encode(record) for record in records]
    plain = folder / "plain"
    timed("write: plain file, flush per group", lambda: write_plain(plain, encoded))
    timed("write: encode only, no disk", lambda: [encode(record) for record in records])
    with DiskStore(folder / "store") as store:
        timed("write: store.put, all durable", lambda: put_all(store, records))
        timed("write: store.put, one at a time", lambda: put_one_by_one(store, records[:200]))
    timed("read: plain file", plain.read_bytes)
    keyed = [(record.key, data) for record, data in zip(records, encoded, strict=True)]
    timed(
        "read: decode only, no disk",
        lambda: [decode(key, data) for key, data in keyed],
    )
    with DiskStore(folder / "store", create=False) as store:
        shuffled = random.Random(2).sample(records, len(records))
        timed("read: store.get, random keys", lambda: [store.get(r.key) for r in shuffled])
        timed("read: iterate the store", lambda: exhaust(store))
    return times


def report(times: dict[str, float], count: int) -> None:
    """Print records a second, and how many times the floor's time each act took."""
    print(f"{count} records\n{'act':38}{'records/s':>12}{'x floor':>9}")
    for name, seconds in times.items():
        done = 200 if name.endswith("at a time") else count
        act = name.split(":")[0]
        floor = next(s for other, s in times.items() if other.startswith(f"{act}: plain"))
        print(f"{name:38}{done / seconds:12,.0f}{seconds / done * count / floor:9.1f}")


def write_plain(file: Path, encoded: list[bytes]) -> None:
    """The floor: append and flush, group by group."""
    with file.open("wb", buffering=0) as out:
        for start in range(0, len(encoded), GROUP):
            out.write(b"".join(encoded[start : start + GROUP]))
            os.fsync(out.fileno())


def put_all(store: DiskStore, records: Iterable[LabelRecord]) -> None:
    """Put everything, then wait until all of it is durable."""
    for saved in [store.put(record) for record in records]:
        saved.result()


def put_one_by_one(store: DiskStore, records: Iterable[LabelRecord]) -> None:
    """The worst case: each record waits for a flush of its own."""
    for record in records:
        renamed = record.example.model_copy(update={"question": record.example.question + "?"})
        key = label_key(renamed, SIGNATURE)
        store.put(record.model_copy(update={"example": renamed, "key": key})).result()


def exhaust(records: Iterable[AnyRecord]) -> None:
    """Read all."""
    for _ in records:
        pass


def made_up(n: int, words: list[int]) -> LabelRecord:
    """A record of 30 document and 5 response sentences, some 8 KB as JSON."""
    chance = random.Random(n)

    def text(length: int) -> str:
        return " ".join(f"w{word % 5000}" for word in chance.choices(words, k=length))

    def sentence(key: str) -> Sentence:
        return Sentence(key=key, text=(said := text(18)), start=0, end=len(said))

    documents = tuple(tuple(sentence(f"{d}{letter}") for letter in "abcdefghij") for d in range(3))
    example = KeyedExample(
        id=str(n),
        question=text(12),
        documents=documents,
        response=tuple(sentence(letter) for letter in "abcde"),
        splitter="general/1",
    )
    label = GPTLabelingOutput(
        relevance_explanation=text(60),
        all_relevant_sentence_keys=("0a", "1b", "2c"),
        overall_supported_explanation=text(60),
        overall_supported=True,
        sentence_support_information=tuple(
            SentenceSupport(
                response_sentence_key=letter,
                explanation=text(30),
                supporting_sentence_keys=("0a", "1b"),
                fully_supported=True,
            )
            for letter in "abcde"
        ),
        all_utilized_sentence_keys=("0a", "1b"),
    )
    key = label_key(example, SIGNATURE)
    return LabelRecord(key=key, example=example, label=label, signature=SIGNATURE)


if __name__ == "__main__":
    main()
