"""Merge label stores: every sound record and failure is copied once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from labeler.data.options import DEFAULT_STORE
from labeler.errors import StoreError, UnstorableRecord, UsageError
from labeler.labels.record import AnyOutcome, AnyRecord, LabelFailure, LabelRecord
from labeler.store.disk import DiskStore
from labeler.store.reader import FILE

_QUEUED = 1000
"""Most records that are being saved at a time."""


@dataclass
class MergeResult:
    """Counts of a merge.

    Attributes:
        stores: stores that were read.
        new: records that were saved.
        present: records that the target already had.
        failures: failures that were saved.
        differing: ids of records whose key has another answer in the target, which was kept.
        damaged: an error for each record or failure that was not copied.
    """

    stores: int = 0
    new: int = 0
    present: int = 0
    failures: int = 0
    differing: list[str] = field(default_factory=list)
    damaged: list[StoreError] = field(default_factory=list)


def stores_in(path: str | Path) -> list[Path]:
    """Return the label store in a folder, or those in its subfolders.

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


def merge_stores(sources: Sequence[str | Path], into: str | Path) -> MergeResult:
    """Copy the content of other stores into one; the sources are not changed.

    A key that the target already has keeps its first record, and its failure. Merging again changes
    nothing. Damaged records are skipped. Sources whose settings or rows were tampered with can be
    read, so merging a damaged store into a new one rescues its sound records.

    Args:
        sources: stores, or folders of stores.
        into: the target store's folder; created if missing.

    Raises:
        UsageError: one of the sources is the target, or no store.
        StoreError: a store cannot be read at all, or the target cannot be written.
    """
    found = [store for source in sources for store in stores_in(source)]
    target = Path(into)
    if any(one.resolve() == target.resolve() for one in found):
        raise UsageError(f"{target} is the store to merge into: name the others")
    result = MergeResult()
    with DiskStore(target) as store:
        for source in dict.fromkeys(found):
            result.stores += 1
            with DiskStore(source, create=False) as opened:
                _copy_records(opened.rows(), store, result)
                _copy_failures(opened.failures(), store, result)
    return result


def _copy_records(
    rows: Iterable[AnyRecord | StoreError], store: DiskStore, result: MergeResult
) -> None:
    queued: deque[tuple[AnyRecord, Future[bool]]] = deque()
    for row in rows:
        if isinstance(row, StoreError):
            result.damaged.append(row)
            continue
        queued.append((row, store.put(row)))
        if len(queued) >= _QUEUED:
            _count(*queued.popleft(), store, result)
    while queued:
        _count(*queued.popleft(), store, result)


def _count(record: AnyRecord, saved: Future[bool], store: DiskStore, result: MergeResult) -> None:
    try:
        new = saved.result()
    except UnstorableRecord as error:
        result.damaged.append(error)
        return
    if new:
        result.new += 1
        return
    result.present += 1
    kept = store.get(record.key)
    if kept is not None and _answer(kept) != _answer(record):
        result.differing.append(record.id)


def _answer(record: AnyRecord) -> object:
    return record.label if isinstance(record, LabelRecord) else record.answer


def _copy_failures(
    rows: Iterable[LabelFailure | StoreError], store: DiskStore, result: MergeResult
) -> None:
    for row in rows:
        if isinstance(row, StoreError):
            result.damaged.append(row)
        elif row.key is not None and store.failure(row.key) is None:
            store.put_failure(row).result()
            result.failures += 1


class Imported(NamedTuple):
    """Counts of records that were put into a store."""

    new: int
    present: int
    """Judgments that the store already held, or that came twice, with the same label."""
    differing: tuple[str, ...]
    """Ids of records whose judgment the store holds with another label; it keeps its own."""


def import_labels(outcomes: Iterable[AnyOutcome], store: str | Path = DEFAULT_STORE) -> Imported:
    """Put records of any kind into a store; a key that it holds already keeps its first record.

    A store holds judgments, not rows: records of different rows that request the same judgment of
    the same sentences are one. Failures are skipped.
    """
    known: dict[str, object] = {}
    saved, present, differing = [], 0, []
    with DiskStore(store) as labels:
        for record in (o for o in outcomes if not isinstance(o, LabelFailure)):
            if record.key not in known:
                stored = labels.get(record.key)
                known[record.key] = _answer(stored or record)
                if stored is None:
                    saved.append(labels.put(record))
                    continue
            if known[record.key] == _answer(record):
                present += 1
            else:
                differing.append(record.id)
        for future in saved:
            future.result()
    return Imported(len(saved), present, tuple(differing))
