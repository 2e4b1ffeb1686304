"""The store of one part, in front of other stores that are only read to save repeated requests.

The store of a part has the part's name, which tells a row group and the first row. The last row
follows from the part sizes that the folder was ever used with: each is recorded in it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from itertools import chain
from pathlib import Path

from labeler.data.label_files import is_store
from labeler.errors import LabelerError, StoreError, UsageError
from labeler.integrations.ray.parts import InputPart, parse_part_name
from labeler.labels.record import AnyRecord, LabelFailure
from labeler.store.disk import DiskStore
from labeler.store.protocol import Closing, Lease
from labeler.store.reader import FILE

FOLDER = "shards"
"""Holds the stores of parts, inside the folder of a label store."""
_SIZE = ".rows-"
"""Prefix of empty files that record sizes of parts."""
_MOST_OVERLAPPING = 64
"""Most stores of other parts that a part reads: each needs open files."""
_LOCK_TIMEOUT = 2.0


class ShardStore(Closing):
    """Saves to the store of one part, and also reads the label store and stores of other parts.

    The store of a part has the part's name: any worker that labels it, also after a crash, finds
    the labels that were paid for.

    Args:
        store: folder of the label store; it need not hold labels itself.
        part: the part's name.
        overlapping: names of other parts whose stores are read too.

    Raises:
        UsageError: the path cannot be a store's.
        StoreError: a store cannot be read or written, or was tampered with.
    """

    def __init__(self, store: Path, part: str, overlapping: Iterable[str] = ()) -> None:
        create_private(store)
        create_private(store / FOLDER)
        folders = [store, *(store / FOLDER / name for name in overlapping)]
        with ExitStack() as opened:
            others = [
                opened.enter_context(DiskStore(one, create=False))
                for one in folders
                if is_store(one)
            ]
            self._shard = opened.enter_context(DiskStore(store / FOLDER / part))
            self._read = [self._shard, *others]
            self._opened = opened.pop_all()

    def get(self, key: str) -> AnyRecord | None:
        """Return the record of a key, or ``None``."""
        found = (store.get(key) for store in self._read)
        return next((record for record in found if record is not None), None)

    def failure(self, key: str) -> LabelFailure | None:
        """Return the latest failure of a key, or ``None``."""
        found = (store.failure(key) for store in self._read)
        return next((failure for failure in found if failure is not None), None)

    def __iter__(self) -> Iterator[AnyRecord]:
        return chain.from_iterable(self._read)

    def __len__(self) -> int:
        return sum(map(len, self._read))

    def close(self) -> None:
        """Make everything durable and release the files; calling it again has no effect."""
        self._opened.close()

    def put(self, record: AnyRecord) -> Future[bool]:
        """Save a record to the part's store."""
        return self._shard.put(record)

    def put_failure(self, failure: LabelFailure) -> Future[bool]:
        """Save a failure to the part's store."""
        return self._shard.put_failure(failure)

    def lease(self, key: str) -> Lease | None:
        """Reserve a key among the workers of this part."""
        return self._shard.lease(key)


def record_size(store: Path, part_rows: int) -> None:
    """Record the size of parts that have stores in a label store's folder.

    Raises:
        UsageError: the path cannot be a store's.
        StoreError: it cannot be written.
    """
    create_private(store)
    create_private(store / FOLDER)
    try:
        (store / FOLDER / f"{_SIZE}{part_rows}").touch(mode=0o600)
    except OSError as error:
        raise StoreError(f"label store {store / FOLDER} cannot be written: {error}") from error


def find_overlapping(
    left: Sequence[InputPart], parts: Sequence[InputPart], store: Path, part_rows: int
) -> tuple[list[InputPart], int]:
    """Find stores of other parts that may hold labels for the given ones.

    Args:
        left: the parts to be labeled.
        parts: all parts of the input.
        store: folder of the label store.
        part_rows: most rows of a part.

    Returns:
        The parts to be labeled, with the names of parts whose stores they read too; and the number
        of stores that may hold labels for them but are not read: those of files with the same name
        and other content, and those beyond the limit of one part.
    """
    sizes = sorted(_sizes(store) | {part_rows}, reverse=True)
    cut: dict[tuple[str, int], list[tuple[int, str]]] = {}
    stores = part_stores(store)
    for name in stores:
        if named := parse_part_name(name):
            cut.setdefault((named.digest, named.group), []).append((named.start, name))
    for starts in cut.values():
        starts.sort()
    found, unread = [], _of_changed_files(left, parts, stores)
    for part in left:
        named = parse_part_name(part.name)
        starts = cut.get((named.digest, named.group), []) if named else []
        near = _overlapping(part, starts, sizes)
        unread += len(near[_MOST_OVERLAPPING:])
        found.append(part.model_copy(update={"overlapping": tuple(near[:_MOST_OVERLAPPING])}))
    return found, unread


def _of_changed_files(
    left: Iterable[InputPart], parts: Iterable[InputPart], stores: Iterable[str]
) -> int:
    """Count stores of files named like those to be labeled that are not in the input."""
    stems = {named.stem for part in left if (named := parse_part_name(part.name))}
    digests = {named.digest for part in parts if (named := parse_part_name(part.name))}
    names = filter(None, map(parse_part_name, stores))
    return sum(named.stem in stems and named.digest not in digests for named in names)


def _overlapping(part: InputPart, starts: list[tuple[int, str]], sizes: Sequence[int]) -> list[str]:
    """Return the names of other parts of a row group that may share rows, by first row.

    Args:
        part: the part.
        starts: first rows and names of parts that have stores.
        sizes: most rows of parts, the largest first.
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
    """Return the recorded sizes of parts."""
    notes = (file.name.removeprefix(_SIZE) for file in (store / FOLDER).glob(f"{_SIZE}*"))
    return {int(note) for note in notes if note.isascii() and note.isdigit() and int(note) > 0}


def labels_stored(store: Path, parts: Iterable[str]) -> int:
    """Count the labels in the stores of parts, as far as they can be read.

    Args:
        store: folder of the label store.
        parts: names of parts.
    """
    count = 0
    for name in part_stores(store) & set(parts):
        with (
            suppress(LabelerError),
            DiskStore(store / FOLDER / name, create=False, lock_timeout=_LOCK_TIMEOUT) as one,
        ):
            count += len(one)
    return count


def part_stores(store: Path) -> set[str]:
    """Return the names of the parts that have a store in a label store's folder."""
    return {file.parent.name for file in (store / FOLDER).glob(f"*/{FILE}")}


def create_private(folder: Path) -> None:
    """Create a folder that only its owner can access, unless it exists.

    Raises:
        UsageError: there is a file of that name.
        StoreError: it cannot be created.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError as error:
        raise UsageError(f"label store {folder} is a file; give a directory") from error
    except OSError as error:
        raise StoreError(f"label store {folder} cannot be made: {error}") from error
