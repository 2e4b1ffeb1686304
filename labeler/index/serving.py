"""Summaries of stored labels from columns: those of an index, or made while the labels are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from labeler.calculators.column_summary import Frame, summarize_columns
from labeler.calculators.definition import Metric
from labeler.calculators.summary import Intervals, SummaryRow
from labeler.errors import StoreError
from labeler.index import is_store, sidecar_of
from labeler.index.parquet import DamagedIndex
from labeler.index.rows import Unindexable
from labeler.index.sidecar import open_sidecar, stream
from labeler.index.stored import catch_up, read_others
from labeler.record import AnyOutcome, questions_among

_QUESTION = "question"


class Served(NamedTuple):
    """Summaries, and what else is stored there.

    Attributes:
        summary: of the labels.
        rows: how many labels and failures there are.
        others: outcomes of other kinds, such as scores.
    """

    summary: list[SummaryRow]
    rows: int
    others: list[AnyOutcome]


@dataclass
class _Seen:
    """Counts what passes by."""

    rows: int = 0
    unsigned: bool = False
    """Whether a row failed before it was known what was asked of it."""

    def passing(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        for frame in frames:
            self.rows += frame.rows
            self.unsigned |= bool((frame.coded("label").codes < 0).any())
            yield frame


@dataclass
class _Asked:
    """What is to be summarised; see :func:`summarize_stored`."""

    metrics: Sequence[Metric]
    by: str | None
    fitting: bool
    intervals: Intervals | None
    seen: _Seen = field(default_factory=_Seen)

    def summary(self, frames: Iterable[Frame]) -> list[SummaryRow]:
        self.seen = _Seen()
        drawn_by_question = self.intervals is not None and self.intervals.group == _QUESTION
        return summarize_columns(
            self.seen.passing(frames),
            self.metrics,
            self.by,
            fitting=self.fitting,
            intervals=self.intervals,
            question=_QUESTION if drawn_by_question else "",
        )


def summarize_stored(
    labels: str,
    metrics: Sequence[Metric],
    by: str | None = None,
    *,
    fitting: bool = False,
    intervals: Intervals | None = None,
    notice: Callable[[str], object],
) -> Served | None:
    """Summarise the labels of a file or a store without building a record for each.

    A store's index is brought up to date first. That of a file is used where it is that of the file
    as it is now; otherwise the file is read.

    Args:
        labels: the file, or the store's folder.
        metrics: the metrics.
        by: name of a metadata column.
        fitting: whether rows have only those metrics that labels of their profile have the fields
            for; otherwise all have all.
        intervals: how intervals of the means are found.
        notice: told why an index is left aside or made anew.

    Returns:
        ``None`` where the records must be read one by one: a metric has no vectorised form, or
        things of several kinds stand side by side.

    Raises:
        UsageError: the file cannot be read, or no row has a column that is named.
        StoreError: the store is damaged.
    """
    asked = _Asked(metrics, by, fitting, intervals)
    if not metrics or any(metric.vector is None for metric in metrics):
        return None
    path = Path(labels)
    try:
        return (_of_store if is_store(path) else _of_file)(path, asked, notice)
    except Unindexable as error:
        notice(f"{error}; the records are read one by one")
        return None


def _of_store(path: Path, asked: _Asked, notice: Callable[[str], object]) -> Served | None:
    for rebuild in (False, True):
        try:
            index = catch_up(path, rebuild=rebuild)
        except OSError as error:
            notice(f"the index of {path} cannot be written: {error.strerror}; its labels are read")
            return None
        except DamagedIndex as error:
            raise StoreError(f"the index of {path} cannot be read back: {error}") from error
        if index is None:
            return None
        with closing(index):
            try:
                summary = asked.summary(index.frames())
            except DamagedIndex as error:
                notice(f"the index of {path} is damaged: {error}; it is made anew")
                continue
            return _unless_mixed(asked, summary, list(read_others(path, index.others)))
    return None


def _of_file(path: Path, asked: _Asked, notice: Callable[[str], object]) -> Served | None:
    summary = _from_sidecar(path, asked, notice)
    if summary is not None:
        return Served(summary, asked.seen.rows, [])
    others: list[AnyOutcome] = []
    summary = asked.summary(stream(path, others.append))
    return _unless_mixed(asked, summary, others)


def _from_sidecar(
    path: Path, asked: _Asked, notice: Callable[[str], object]
) -> list[SummaryRow] | None:
    """The summary from the index of a file, where there is one to be believed."""
    try:
        segment = open_sidecar(path)
        if segment is None:
            return None
        with closing(segment):
            if segment.footer.others:
                return None
            return asked.summary(segment.frames(by_key=False))
    except DamagedIndex as error:
        notice(f"{sidecar_of(path)} is left aside: {error}; labeler index {path} makes it anew")
        return None


def _unless_mixed(
    asked: _Asked, summary: list[SummaryRow], others: list[AnyOutcome]
) -> Served | None:
    """What was found, unless its order decides what a row was that could not even be read."""
    if others and (asked.seen.unsigned or any(True for _ in questions_among(others))):
        return None
    return Served(summary, asked.seen.rows, others)
