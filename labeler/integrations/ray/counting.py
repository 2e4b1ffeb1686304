"""Summaries of label files counted by several workers.

For each file, a worker sends the counts that one machine keeps of it: exact sums, value
frequencies, and, where intervals group records, a column of numbers. Adding them in the order of
the files gives the numbers of one machine, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from labeler.calculators.column_summary import SummaryRequest
from labeler.calculators.index.rows import Unindexable
from labeler.calculators.index.summaries import (
    FileCounts,
    Selections,
    StoredSummary,
    combine_counts,
    count_file,
    zip_selections,
)
from labeler.calculators.selection import (
    DifferingRecords,
    RowDigests,
    SeenDigests,
    Selection,
)
from labeler.errors import UsageError
from labeler.integrations.ray.parts import absolute_name


class CountReport(NamedTuple):
    """A worker's counts of a label file.

    Attributes:
        counts: the counts, or the error.
        notices: messages about the file.
        digests: of its rows.
    """

    counts: FileCounts | UsageError | Unindexable
    notices: list[str]
    digests: Sequence[RowDigests] = ()


FileTask = tuple[str, Selection | None]
"""A label file's path or address, and the rows to count; ``None`` for all."""
CountEngine = Callable[
    [SummaryRequest, Sequence[FileTask], int], Generator[CountReport, None, None]
]
"""Counts files with a number of workers; yields a report of each, in the order of the files."""


def count_report(task: FileTask, asked: SummaryRequest, number: int) -> CountReport:
    """Count a label file.

    Args:
        task: the file.
        asked: the requested summary.
        number: how many files come before it.
    """
    notices: list[str] = []
    file, selection = task
    try:
        with closing(SeenDigests()) as seen:
            counts = count_file(file, asked, seen, number, notices.append, selection=selection)
            return CountReport(counts, notices, list(seen.batches()))
    except (UsageError, Unindexable) as error:
        return CountReport(error, notices)


def summarize_files(
    files: Iterable[str],
    asked: SummaryRequest,
    engine: CountEngine,
    workers: int,
    notice: Callable[[str], object],
) -> StoredSummary | None:
    """Summarize label files that several workers count.

    Args:
        files: paths and addresses.
        asked: the requested summary.
        engine: counts the files.
        workers: how many.
        notice: called with messages about files.

    Returns:
        ``None`` if the records must be read one by one, on one machine.

    Raises:
        UsageError: a file cannot be read, or no row has a named column.
        FatalJudgeError: the engine cannot go on.
    """
    if not asked.is_vectorized(notice):
        return None
    names = [absolute_name(file) for file in files]

    def count(selections: Selections, seen: SeenDigests) -> Iterator[FileCounts]:
        with closing(engine(asked, list(zip_selections(names, selections)), workers)) as reports:
            # Files that are counted again have had their notices.
            yield from _counts(reports, seen, notice if selections is None else lambda _: None)

    try:
        return combine_counts(count, asked)
    except (Unindexable, DifferingRecords) as error:
        notice(f"{error}; the records are read one by one")
        return None


def _counts(
    reports: Iterable[CountReport], seen: SeenDigests, notice: Callable[[str], object]
) -> Iterator[FileCounts]:
    for report in reports:
        for text in report.notices:
            notice(text)
        if isinstance(report.counts, Exception):
            raise report.counts
        for digests in report.digests:
            seen.add(digests)
        yield report.counts
