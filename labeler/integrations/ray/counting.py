"""Numbers of label files counted by several workers, and added up in order where they are asked.

What a worker sends of a file is what one machine keeps of it: exact sums, how often each value
comes, and, where intervals draw records together, a column of numbers. So the numbers are those of
one machine, to the last bit, whoever counted what.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from labeler.calculators.column_summary import SummaryRequest
from labeler.calculators.index.rows import Unindexable
from labeler.calculators.index.summaries import (
    FileCounts,
    StoredSummary,
    combine_counts,
    count_file,
)
from labeler.errors import UsageError
from labeler.integrations.ray.parts import anywhere


class CountReport(NamedTuple):
    """What a worker found in a label file.

    Attributes:
        counts: what it counted, or why it cannot.
        notices: what there is to say of the file.
    """

    counts: FileCounts | UsageError | Unindexable
    notices: list[str]


CountEngine = Callable[[SummaryRequest, Sequence[str], int], Generator[CountReport, None, None]]
"""Counts files with so many workers; a report of each, in the order of the files."""


def report_of(file: str, asked: SummaryRequest, number: int) -> CountReport:
    """Count a label file.

    Args:
        file: path or address.
        asked: what is to be counted.
        number: how many files come before it.
    """
    notices: list[str] = []
    try:
        return CountReport(count_file(file, asked, number, notices.append), notices)
    except (UsageError, Unindexable) as error:
        return CountReport(error, notices)


def summarize_in_parts(
    files: Iterable[str],
    asked: SummaryRequest,
    engine: CountEngine,
    workers: int,
    notice: Callable[[str], object],
) -> StoredSummary | None:
    """Summarise label files that several workers count.

    Args:
        files: paths and addresses.
        asked: what is to be summarised.
        engine: has the files counted.
        workers: how many count.
        notice: told what there is to say of files.

    Returns:
        ``None`` where the records must be read one by one, on one machine.

    Raises:
        UsageError: a file cannot be read, or no row has a column that is named.
        FatalJudgeError: the engine cannot go on.
    """
    if not asked.is_vectorized(notice):
        return None
    try:
        with closing(engine(asked, [anywhere(file) for file in files], workers)) as reports:
            return combine_counts(_counts(reports, notice), asked)
    except Unindexable as error:
        notice(f"{error}; the records are read one by one")
        return None


def count_in_a_loop(
    asked: SummaryRequest, files: Sequence[str], workers: int
) -> Generator[CountReport, None, None]:
    """Count files in this process, one after the other, whatever the number of workers."""
    del workers
    for number, file in enumerate(files):
        yield report_of(file, asked, number)


def _counts(
    reports: Iterable[CountReport], notice: Callable[[str], object]
) -> Iterator[FileCounts]:
    for report in reports:
        for text in report.notices:
            notice(text)
        if isinstance(report.counts, Exception):
            raise report.counts
        yield report.counts
