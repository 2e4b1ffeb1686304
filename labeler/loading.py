"""Stored labels as one object, read when they are needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import overload

from labeler.calculators.frame import UNKNOWN, Given
from labeler.calculators.outcomes import source_state, stored_outcomes
from labeler.catalog import named_keywords
from labeler.data.label_files import is_store, is_table, parts_of
from labeler.data.label_view import LabelView
from labeler.data.lines import STDIO, is_gzipped, is_remote
from labeler.errors import UsageError, path_in
from labeler.labels.metering import RunCost
from labeler.labels.record import Outcome, records_of
from labeler.labels_object import Labels


class _Streamed(Sequence[Outcome]):
    """Labels that are read from the beginning each time, such as those of a store."""

    def __init__(self, path: str) -> None:
        self._path, self._state = path, source_state(path)

    def __iter__(self) -> Iterator[Outcome]:
        if source_state(self._path) != self._state:
            raise UsageError(f"{self._path} has changed since it was opened: load it again")
        return records_of(stored_outcomes(self._path), "label")

    def __len__(self) -> int:
        return self._length

    @cached_property
    def _length(self) -> int:
        return sum(1 for _ in self)

    @overload
    def __getitem__(self, place: int) -> Outcome: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Outcome]: ...
    def __getitem__(self, place: int | slice) -> Outcome | Sequence[Outcome]:
        if isinstance(place, slice):
            wanted = range(len(self))[place]
            found = [one for number, one in enumerate(self) if number in wanted]
            return found if wanted.step > 0 else found[::-1]
        return next(islice(self, range(len(self))[place], None))


@named_keywords
def load(path: str | Path) -> Labels:
    """Return stored labels as one object; records are read when they are needed.

    Args:
        path: a label file of JSON Lines or Parquet, a folder of Parquet files, a pattern, a store's
            folder, or ``-`` for standard input, which is kept in memory. Of uncompressed JSON Lines
            each record is found directly; others are read from the beginning for each look-up.

    Returns:
        The labels and failures; other outcomes, such as scores, are left out.

    Raises:
        UsageError: the file or folder does not exist, has no labels, or a line is not an outcome.
        StoreError: the store is damaged.

    Example:
        >>> labeler.load(labels.save(folder / "labels.jsonl")).metrics()["tide-gate-height"].failed
    """
    return open_labels(path)


def open_labels(path: str | Path, cost: RunCost | None = None, given: Given = UNKNOWN) -> Labels:
    """Return stored labels, and the cost of the run that made them; see :func:`load`."""
    name = str(path_in("path", path) if not isinstance(path, str) else path)
    view: Sequence[Outcome]
    if name == STDIO or _is_pipe(name):
        view = list(records_of(stored_outcomes(name), "label"))
    elif _is_plain(name):
        view = LabelView(name)
        # What a run has just written is read when it is needed.
        if cost is None and not view:
            others = f"; numbers of other records: labeler metrics {name}" if view.others else ""
            raise UsageError(f"{name} has no labels{others}")
    else:
        view = _Streamed(name)
        next(iter(view), None)  # a path that cannot be read is reported here
    named = Path(name).name or name
    own = None if isinstance(view, list) else name
    return Labels(view, name=named, path=own, cost=cost, given=given)


def _is_plain(name: str) -> bool:
    path = Path(name)
    if is_remote(name) or is_store(path) or is_table(name) or parts_of(name) or path.is_dir():
        return False
    return path.is_file() and not is_gzipped(path)


def _is_pipe(name: str) -> bool:
    """Return True for what can be read once, such as the output of another command."""
    path = Path(name)
    return not is_remote(name) and path.exists() and not path.is_file() and not path.is_dir()
