"""Merge label stores, which also rescues the sound records of a damaged one, and verify them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from labeler.data.label_files import is_store
from labeler.data.options import DEFAULT_STORE
from labeler.errors import StoreError, UsageError
from labeler.labels.record import AnyOutcome, AnyRecord, LabelFailure, LabelRecord
from labeler.store.disk import DiskStore, StoredRow

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
        rescued: an error for each row whose key is damaged; its record was copied.
        damaged: an error for each record or failure that was not copied.
    """

    stores: int = 0
    new: int = 0
    present: int = 0
    failures: int = 0
    differing: list[str] = field(default_factory=list)
    rescued: list[StoreError] = field(default_factory=list)
    damaged: list[StoreError] = field(default_factory=list)


def stores_in(path: str | Path) -> list[Path]:
    """Return the label store in a folder, or those in its subfolders.

    Raises:
        UsageError: there is none.
    """
    folder = Path(path)
    if is_store(folder):
        return [folder]
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    found = [one for one in inside if is_store(one)]
    if not found:
        raise UsageError(f"there is no label store in {folder}, nor in the folders inside it")
    return found


def merge_stores(sources: Sequence[str | Path], into: str | Path) -> MergeResult:
    """Copy the content of other stores into one; the sources are not changed.

    A key that the target already has keeps its first record, and its failure. Merging again changes
    nothing. Damaged records are skipped; a record whose row has a damaged key is copied under its
    own key. Sources whose settings or rows were tampered with can be read, so merging a damaged
    store into a new one rescues its sound records.

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
                _copy(opened.inspect(), store, result)
    return result


def _copy(rows: Iterable[StoredRow], store: DiskStore, result: MergeResult) -> None:
    queued: deque[tuple[AnyOutcome, Future[bool]]] = deque()
    for _, value, outcome, fault in rows:
        if fault is not None:
            (result.damaged if outcome is None else result.rescued).append(fault)
        if isinstance(outcome, LabelFailure):
            if store.failure(str(outcome.key)) is None:
                queued.append((outcome, store.put_failure(outcome)))
        elif outcome is not None:
            queued.append((outcome, store.copy(outcome, value)))
        if len(queued) >= _QUEUED:
            _count(*queued.popleft(), store, result)
    while queued:
        _count(*queued.popleft(), store, result)


def _count(outcome: AnyOutcome, saved: Future[bool], store: DiskStore, result: MergeResult) -> None:
    new = saved.result()
    if isinstance(outcome, LabelFailure):
        result.failures += 1
    elif new:
        result.new += 1
    else:
        result.present += 1
        kept = store.get(outcome.key)
        if kept is not None and kept.answer != outcome.answer:
            result.differing.append(outcome.id)


@dataclass
class StoreCheck:
    """What :func:`verify_store` found.

    Attributes:
        sound: sound rows by kind.
        damaged_keys: an error for each row whose key is damaged, and whose record is sound.
        damaged: an error for each other damaged row, and what SQLite says of the file.
        repeated: ids of records that are stored under two keys, one of them damaged: they were
            bought again.
    """

    sound: Counter[str] = field(default_factory=Counter)
    damaged_keys: list[StoreError] = field(default_factory=list)
    damaged: list[StoreError] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)


def verify_store(store: str | Path) -> StoreCheck:
    """Read every row of a store, and compare each with its checksum and its own key.

    Takes about 0.3 ms of a processor per record, and 100 bytes of memory.

    Raises:
        UsageError: there is no store.
        StoreError: the store cannot be read at all.
    """
    found = StoreCheck()
    seen = set[tuple[str, str | None]]()
    """Outcomes with a damaged key; the keys of all others differ."""
    with DiskStore(store, create=False) as opened:
        for defect in opened.integrity():
            found.damaged.append(StoreError(f"label store {store}: SQLite reports: {defect}"))
        for _, _, outcome, fault in opened.inspect():
            if outcome is None:
                found.damaged += [fault] if fault else []
            elif fault is None:
                found.sound[outcome.kind] += 1
            else:
                found.damaged_keys.append(fault)
                name = ("failure" if isinstance(outcome, LabelFailure) else "record", outcome.key)
                if name in seen or _is_sound(opened, outcome):
                    found.repeated.append(outcome.id)
                seen.add(name)
    return found


def _is_sound(store: DiskStore, outcome: AnyOutcome) -> bool:
    """Return true if a store has an outcome under its own key."""
    get = store.failure if isinstance(outcome, LabelFailure) else store.get
    try:
        return get(str(outcome.key)) is not None
    except StoreError:
        return False


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
    the same sentences are one. Failures are skipped. A label brings the retrieval label that it
    rests on, which is not counted.

    Args:
        outcomes: records and failures, such as those of a label file.
        store: the store's folder; it is made if it does not exist.

    Returns:
        How many records were new, present, and present with another label.

    Raises:
        StoreError: the store cannot be read or written.

    Example:
        >>> labeler.import_labels(labels, folder / "store").new
        14
    """
    new, present, differing = 0, 0, []
    queued: dict[str, tuple[AnyRecord, Future[bool]]] = {}
    rested: dict[str, AnyRecord] = {}
    with DiskStore(store) as labels:
        for record in (o for o in outcomes if not isinstance(o, LabelFailure)):
            kept = queued[record.key][0] if record.key in queued else labels.get(record.key)
            if kept is None:
                queued[record.key] = record, labels.put(record)
                rested |= _retrieval(record)
                new += 1
            elif kept.answer == record.answer:
                present += 1
            else:
                differing.append(record.id)
            if len(queued) >= _QUEUED:
                queued.pop(next(iter(queued)))[1].result()
        for _, saved in queued.values():
            saved.result()
        # Last, because the outcomes may hold them with the facts of the judge's reply.
        for saved in [labels.put(one) for key, one in rested.items() if labels.get(key) is None]:
            saved.result()
    return Imported(new, present, tuple(differing))


def _retrieval(record: AnyRecord) -> dict[str, AnyRecord]:
    """Return the retrieval label that a label rests on, by its key: else it is bought again."""
    if not isinstance(record, LabelRecord) or record.retrieval is None:
        return {}
    from labeler.labels.retrieval_record import retrieval_of  # noqa: PLC0415 - for these labels

    found = retrieval_of(record)
    return {} if found is None else {found.key: found}
