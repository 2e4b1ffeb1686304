"""The store of one part, before others that are only read: what these hold is not bought again.

The stores of parts have the parts' names, which tell a row group and the first row. Up to which row
one goes is told by the sizes of parts that the folder was ever used with: each is noted in it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

from labeler.errors import LabelerError, StoreError, UsageError
from labeler.integrations.ray.parts import Part, part_name
from labeler.labels.record import AnyRecord, LabelFailure
from labeler.store.disk import DiskStore
from labeler.store.protocol import Closing, Lease
from labeler.store.reader import FILE

FOLDER = "shards"
"""Where the stores of parts are, inside the folder of a label store."""
_SIZE = ".rows-"
"""What the names of the empty files begin with that note sizes of parts."""
_MOST_BESIDES = 64
"""Stores of other parts that a part looks into at most: each takes open files."""
_LOCK_TIMEOUT = 2.0


class ShardStore(Closing):
    """Saves into the store of one part, and finds what the whole store holds as well.

    The store of a part has the part's name: whoever labels it, after whatever happened, finds what
    was bought for it.

    Args:
        store: folder of the label store; that it holds labels itself is not needed.
        part: the part's name.
        besides: names of other parts, in whose stores is looked as well.

    Raises:
        UsageError: the path cannot be a store's.
        StoreError: a store cannot be read or written, or was tampered with.
    """

    def __init__(self, store: Path, part: str, besides: Iterable[str] = ()) -> None:
        make_private(store)
        make_private(store / FOLDER)
        with ExitStack() as opened:
            self._shard = opened.enter_context(DiskStore(store / FOLDER / part))
            # Where machines have disks of their own, another one may have the others.
            self._read = [
                opened.enter_context(DiskStore(one, create=False))
                for one in (store, *(store / FOLDER / name for name in besides))
                if (one / FILE).exists()
            ]
            self._opened = opened.pop_all()

    def get(self, key: str) -> AnyRecord | None:
        """The record of a key, or ``None``."""
        found = (store.get(key) for store in (self._shard, *self._read))
        return next((record for record in found if record is not None), None)

    def put(self, record: AnyRecord) -> Future[bool]:
        """Save a record into the part's store."""
        return self._shard.put(record)

    def failure(self, key: str) -> LabelFailure | None:
        """The latest failure of a key, or ``None``."""
        found = (store.failure(key) for store in (self._shard, *self._read))
        return next((failure for failure in found if failure is not None), None)

    def put_failure(self, failure: LabelFailure) -> Future[bool]:
        """Save a failure into the part's store."""
        return self._shard.put_failure(failure)

    def lease(self, key: str) -> Lease | None:
        """Reserve a key among those who label this part."""
        return self._shard.lease(key)

    def __iter__(self) -> Iterator[AnyRecord]:
        return iter(self._shard)

    def __len__(self) -> int:
        return len(self._shard)

    def close(self) -> None:
        """Make everything durable and let go of the files; again is harmless."""
        self._opened.close()


def note_size(store: Path, part_rows: int) -> None:
    """Note that stores of parts of so many rows are in a label store's folder.

    Raises:
        UsageError: the path cannot be a store's.
        StoreError: it cannot be written.
    """
    make_private(store)
    make_private(store / FOLDER)
    try:
        (store / FOLDER / f"{_SIZE}{part_rows}").touch(mode=0o600)
    except OSError as error:
        raise StoreError(f"label store {store / FOLDER} cannot be written: {error}") from error


def besides(
    left: Sequence[Part], parts: Sequence[Part], store: Path, part_rows: int
) -> tuple[list[Part], int]:
    """Find out in which stores of other parts labels for these may be.

    Args:
        left: what is to be labelled.
        parts: all parts of the input.
        store: folder of the label store.
        part_rows: rows of a part at most.

    Returns:
        What is to be labelled, with the names of the parts in whose stores is to be looked as well;
        and how many stores may hold labels for it in which no part looks: those of files of the
        same name and another content, and those that are too many for one part.
    """
    sizes = sorted(_sizes(store) | {part_rows}, reverse=True)
    cut: dict[tuple[str, int], list[tuple[int, str]]] = {}
    there = stores_of_parts(store)
    for name in there:
        if named := part_name(name):
            cut.setdefault((named.digest, named.group), []).append((named.start, name))
    for starts in cut.values():
        starts.sort()
    looking, unread = [], _of_changed_files(left, parts, there)
    for part in left:
        named = part_name(part.name)
        starts = cut.get((named.digest, named.group), []) if named else []
        near = _overlapping(part, starts, sizes)
        unread += len(near[_MOST_BESIDES:])
        looking.append(replace(part, besides=tuple(near[:_MOST_BESIDES])))
    return looking, unread


def _of_changed_files(left: Iterable[Part], parts: Iterable[Part], there: Iterable[str]) -> int:
    """How many stores are of files named like those to be labelled, and of no file of the input."""
    stems = {named.stem for part in left if (named := part_name(part.name))}
    digests = {named.digest for part in parts if (named := part_name(part.name))}
    stores = filter(None, map(part_name, there))
    return sum(named.stem in stems and named.digest not in digests for named in stores)


def _overlapping(part: Part, starts: list[tuple[int, str]], sizes: Sequence[int]) -> list[str]:
    """The names of other parts of a row group, sorted by their first rows, that may share rows.

    Args:
        part: the part.
        starts: first rows and names of those that have stores.
        sizes: rows of parts at most, the largest first.
    """
    first = bisect_left(starts, (max(0, part.start - sizes[0] + 1), ""))
    last = bisect_left(starts, (part.stop, ""))
    return [
        name
        for start, name in starts[first:last]
        if name != part.name
        and start + next((size for size in sizes if start % size == 0), 0) > part.start
    ]


def _sizes(store: Path) -> set[int]:
    """The sizes of parts that were noted."""
    notes = (file.name.removeprefix(_SIZE) for file in (store / FOLDER).glob(f"{_SIZE}*"))
    return {int(note) for note in notes if note.isascii() and note.isdigit() and int(note) > 0}


def labels_stored(store: Path, parts: Iterable[str]) -> int:
    """How many labels the stores of parts hold, as far as they can be read.

    Args:
        store: folder of the label store.
        parts: names of parts.
    """
    count = 0
    for name in stores_of_parts(store) & set(parts):
        with (
            suppress(LabelerError),
            DiskStore(store / FOLDER / name, create=False, lock_timeout=_LOCK_TIMEOUT) as one,
        ):
            count += len(one)
    return count


def stores_of_parts(store: Path) -> set[str]:
    """The names of the parts that have a store inside a label store's folder."""
    return {file.parent.name for file in (store / FOLDER).glob(f"*/{FILE}")}


def make_private(folder: Path) -> None:
    """Make a folder that is its owner's alone, where it is missing.

    Raises:
        UsageError: there is a file of that name.
        StoreError: it cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError as error:
        raise UsageError(f"label store {folder} is a file; give a directory") from error
    except OSError as error:
        raise StoreError(f"label store {folder} cannot be made: {error}") from error
