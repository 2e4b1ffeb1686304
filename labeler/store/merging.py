"""Several label stores made one: every sound record, failure and vector, each once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from labeler.errors import StoreError, UnstorableRecord, UsageError
from labeler.labels.record import AnyRecord, LabelFailure, LabelRecord
from labeler.labels.vectors import StoredVector
from labeler.store.checksums import BrokenSeal, unseal_vector
from labeler.store.disk import DiskStore
from labeler.store.reader import FILE, Database
from labeler.store.vectors import FOLDER as VECTORS
from labeler.store.vectors import DiskVectors

_UNDER_WAY = 1000
"""Records that are being saved at a time."""
_VECTORS_AT_ONCE = 500
_LOCK_TIMEOUT = 30.0


@dataclass
class Merged:
    """How a merger went.

    Attributes:
        stores: how many were read.
        new: records that were saved.
        present: records that were there already.
        failures: failures that were saved.
        vectors: vectors that were saved.
        differing: ids of records that are there with another answer, which was kept.
        damaged: what is left behind, each with its reason.
    """

    stores: int = 0
    new: int = 0
    present: int = 0
    failures: int = 0
    vectors: int = 0
    differing: list[str] = field(default_factory=list)
    damaged: list[StoreError] = field(default_factory=list)


def stores_in(path: str | Path) -> list[Path]:
    """The label store in a folder, or those in the folders inside it.

    Raises:
        UsageError: there is none.
    """
    folder = Path(path)
    if (folder / FILE).exists():
        return [folder]
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    found = [one for one in inside if (one / FILE).exists()]
    if not found:
        raise UsageError(f"there is no label store in {folder}, nor in the folders inside it")
    return found


def merge_stores(sources: Sequence[str | Path], into: str | Path) -> Merged:
    """Copy what other stores hold into one; they are left as they are.

    A key that is there already keeps its first record, and its failure. Merging again changes
    nothing. A record that was damaged is not copied, and the others are.

    Args:
        sources: stores, or folders of stores.
        into: the store's folder, made where it is missing.

    Raises:
        UsageError: one of the sources is the target, or no store.
        StoreError: a store cannot be read at all, or the target cannot be written.
    """
    found = [store for source in sources for store in stores_in(source)]
    target = Path(into)
    if any(one.resolve() == target.resolve() for one in found):
        raise UsageError(f"{target} is the store to merge into: name the others")
    merged = Merged()
    with DiskStore(target) as store:
        for source in dict.fromkeys(found):
            merged.stores += 1
            with DiskStore(source, create=False) as read:
                _copy_records(read.rows(), store, merged)
                _copy_failures(read.failures(), store, merged)
            if (source / VECTORS / FILE).exists():
                _copy_vectors(source / VECTORS, target, merged)
    return merged


def _copy_records(rows: Iterable[AnyRecord | StoreError], store: DiskStore, merged: Merged) -> None:
    under_way: deque[tuple[AnyRecord, Future[bool]]] = deque()
    for row in rows:
        if isinstance(row, StoreError):
            merged.damaged.append(row)
            continue
        under_way.append((row, store.put(row)))
        if len(under_way) >= _UNDER_WAY:
            _count(*under_way.popleft(), store, merged)
    while under_way:
        _count(*under_way.popleft(), store, merged)


def _count(record: AnyRecord, saved: Future[bool], store: DiskStore, merged: Merged) -> None:
    try:
        new = saved.result()
    except UnstorableRecord as error:
        merged.damaged.append(error)
        return
    if new:
        merged.new += 1
        return
    merged.present += 1
    kept = store.get(record.key)
    if kept is not None and _answer(kept) != _answer(record):
        merged.differing.append(record.id)


def _answer(record: AnyRecord) -> object:
    return record.label if isinstance(record, LabelRecord) else record.answer


def _copy_failures(
    rows: Iterable[LabelFailure | StoreError], store: DiskStore, merged: Merged
) -> None:
    for row in rows:
        if isinstance(row, StoreError):
            merged.damaged.append(row)
        elif row.key is not None and store.failure(row.key) is None:
            store.put_failure(row).result()
            merged.failures += 1


def _copy_vectors(source: Path, target: Path, merged: Merged) -> None:
    saved: deque[Future[bool]] = deque()
    with DiskVectors(target) as vectors:
        for vector in _vectors_of(source, merged):
            saved.append(vectors.put(vector))
            if len(saved) >= _UNDER_WAY:
                merged.vectors += saved.popleft().result()
        while saved:
            merged.vectors += saved.popleft().result()


def _vectors_of(source: Path, merged: Merged) -> Iterator[StoredVector]:
    with closing(Database(source, _LOCK_TIMEOUT)) as database:
        last = -1
        while rows := database.rows_after(last, _VECTORS_AT_ONCE):
            for last, row in rows:  # noqa: B007 - read on from there
                try:
                    yield unseal_vector(row.name, row.value)
                except BrokenSeal as error:
                    merged.damaged.append(
                        StoreError(f"vector store {source}: key {row.name}: {error}")
                    )
