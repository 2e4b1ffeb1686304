"""Measure a judge on real labeled rows, next to published results on the same rows.

    python benchmarks/judges.py [FOLDER] [--split test|development|all] [--judged LABELS]

The folder holds RAGBench rows as gzipped JSON Lines, one file a subset; by default it is the one
of ``ragbench_data.py``. The truth is the data set's own labels of the data set's own sentences,
which GPT-4-class models made. Any judge can be measured: label the rows, then name the label file::

    labeler label FOLDER/*.jsonl.gz --id dataset_name,id,generation_model_name --judge … -o LABELS

Without ``--judged`` the embedded judge labels on the spot, and its processor time is measured.

The tables are Markdown. A record's adherence score is the mean of its support scores; where the
judge gives none, the share of sentences that it calls supported. "This judge there" is the judge
on the very rows where the published column has a value. ``development`` rows (train and
validation) were used to choose the embedded judge's weights; ``test`` rows were not.
"""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import judge_figures as figures
import labeler
from judge_figures import Comparison, Figure, Joined, Kind, Rows
from labeler.errors import LabelerError
from labeler.judges.judge import Judge
from labeler.judges.task import JudgeReply, Task
from labeler.labeling.failures import record_or_failure
from labeler.labeling.options import LabelOptions
from labeler.labeling.tasks import label_tasks
from labeler.labels.record import LabelRecord, Outcome, records_of
from labeler.plugins.ragbench import read_ragbench
from labeler.sentences.example import Frozen
from ragbench_data import ragbench_files, ragbench_folder

# -- reading and labeling ------------------------------------------------------------------------


def true_labels(files: Iterable[Path], split: str) -> Iterator[Outcome]:
    """The published labels of a split; rows that cannot be read belong to every split."""
    for file in files:
        for outcome in read_ragbench(file):
            if not isinstance(outcome, LabelRecord) or split in ("all", split_of(outcome)):
                yield outcome


def split_of(record: LabelRecord) -> str:
    """Whether a published row is for testing or for development."""
    test = str(record.example.metadata["dataset_name"]).endswith("_test")
    return "test" if test else "development"


class Judged(NamedTuple):
    """What the judge said, and the processor time of the judging where it was done here."""

    outcomes: Iterable[Outcome]
    cpu_seconds: float | None


def judged_labels(file: str | None, truth: Iterable[Outcome]) -> Judged:
    """Read the judge's labels; without a file, let the embedded judge label the true records."""
    if file is not None:
        return Judged(labeler.api.read_labels(file), None)
    judge = labeler.EmbeddedJudge()
    how = label_tasks(judge, LabelOptions())
    requests = [how.keyed_task(t.example) for t in truth if isinstance(t, LabelRecord)]
    replies, cpu_seconds = asyncio.run(ask(judge, requests))
    return Judged(list(records_of(map(record_or_failure, requests, replies), "label")), cpu_seconds)


async def ask(judge: Judge, requests: Sequence[Task]) -> tuple[list[JudgeReply[Frozen]], float]:
    """Ask one by one; returns replies and CPU seconds."""
    started = time.process_time()
    replies = [await judge.label(one) for one in requests]
    return replies, time.process_time() - started


# -- tables ---------------------------------------------------------------------------------------


class Column(NamedTuple):
    """A table column: its title, and what it says of a group of rows."""

    title: str
    figure: Figure


def shown(value: float | None) -> str:
    """A figure as a cell."""
    return "n/a" if value is None else f"{value:.3f}".removeprefix("0")


def line(cells: Iterable[object]) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def table(rows: Rows, columns: Sequence[Column]) -> Iterator[str]:
    """One line a subset, then the mean over subsets and all rows pooled."""
    yield line(["", "rows", *(column.title for column in columns)])
    yield line(["---", *["--:"] * (len(columns) + 1)])
    groups = figures.by_subset(rows)
    for subset, group in groups.items():
        yield line([subset, len(group), *(shown(column.figure(group)) for column in columns)])
    means = [figures.mean_over(groups.values(), column.figure) for column in columns]
    yield line(["mean over subsets", "", *map(shown, means)])
    yield line(["pooled", len(rows), *(shown(column.figure(rows)) for column in columns)])


def comparisons(names: Iterable[str], compare: Callable[[str], Comparison]) -> Iterator[str]:
    """Published columns next to the judge on the very rows where each has a value."""
    pairs = ["mean over subsets", "this judge there", "pooled", "this judge there"]
    yield line(["published column", "rows used", "without value", "subsets", *pairs])
    yield line(["---", *["--:"] * 7])
    for name in names:
        found = compare(name)
        counts = [found.used, found.dropped, found.subsets]
        yield line([f"`{name}`", *counts, *map(shown, [*found.mean, *found.pooled])])


def adherence_section(rows: Rows) -> Iterator[str]:
    """Tables about support."""
    yield "### Adherence: AUROC, higher is better; a record scores the mean of its sentences"
    yield ""
    area, verdicts = figures.adherence_area, figures.verdicts
    yield from table(
        rows,
        [
            Column("sentence support AUROC", figures.support_area),
            Column("adherence AUROC", lambda group: area(group, lambda row: row.adherence)),
            Column("the same, minimum for mean", lambda group: area(group, lambda row: row.lowest)),
            Column("non-adherent in truth", lambda group: verdicts(group).prevalence),
            Column("flagged non-adherent", lambda group: verdicts(group).flagged),
            Column("precision", lambda group: verdicts(group).precision),
            Column("recall", lambda group: verdicts(group).recall),
        ],
    )
    yield ""
    yield from comparisons(
        figures.ADHERENCE_OTHERS, lambda name: figures.compare_adherence(rows, name)
    )


def ratio_section(rows: Rows, kind: Kind) -> Iterator[str]:
    """Tables about relevance or utilization."""
    yield f"### {kind.name.title()}: RMSE of the record's ratio, lower is better; F1 of sentences"
    yield ""
    yield from table(
        rows,
        [
            Column("RMSE", lambda group: figures.own_rmse(group, kind)),
            Column("RMSE of the rows' mean", lambda group: figures.constant_rmse(group, kind)),
            Column("sentence F1", lambda group: figures.sentence_f1(group, kind)),
            Column("F1 of always yes", lambda group: figures.constant_f1(group, kind)),
        ],
    )
    yield ""
    yield from comparisons(kind.others, lambda name: figures.compare_ratio(rows, name, kind))


def heading(rows: Rows, left_out: Counter[str], split: str) -> Iterator[str]:
    """Which judge was measured, and on what."""
    judges = sorted({str(row.judged.signature) for row in rows})
    yield f"## RAGBench, labeled by {' and '.join(f'`{judge}`' for judge in judges)}"
    yield ""
    yield f"Command: `{shlex.join(['python', *sys.argv])}`  "
    yield f"Date: {datetime.now(UTC):%Y-%m-%d}, labeler {labeler.__version__}, split: {split}  "
    yield (
        f"Rows: {len(rows):,}; response sentences: {sum(len(row.support) for row in rows):,}; "
        f"document sentences: {sum(row.sentences for row in rows):,}  "
    )
    reasons = "; ".join(f"{reason} ({count:,})" for reason, count in sorted(left_out.items()))
    yield f"Rows left out: {left_out.total():,}{f': {reasons}' if reasons else ''}  "


def report(joined: Joined, split: str, cpu_seconds: float | None) -> Iterator[str]:
    """The whole report, line by line."""
    rows = joined.rows
    yield from heading(rows, joined.left_out, split)
    if cpu_seconds is not None:
        yield f"Speed: {len(rows) / cpu_seconds:,.0f} records per CPU-second, scores and labels"
    yield ""
    yield from adherence_section(rows)
    for kind in (figures.RELEVANCE, figures.UTILIZATION):
        yield ""
        yield from ratio_section(rows, kind)


def main() -> None:
    """Read, label or read labels, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", nargs="?", type=Path, default=ragbench_folder())
    parser.add_argument("--split", choices=["test", "development", "all"], default="all")
    parser.add_argument("--judged", metavar="LABELS", help="label file of the judge to measure")
    options = parser.parse_args()
    files = ragbench_files(options.folder)
    if not files:
        parser.error(f"no RAGBench rows in {options.folder}; name a folder of .jsonl.gz files")
    try:
        truth = list(true_labels(files, options.split))
        judged, cpu_seconds = judged_labels(options.judged, truth)
        joined = figures.join(truth, judged)
    except LabelerError as error:
        parser.error(str(error))
    print("\n".join(report(joined, options.split, cpu_seconds)))


if __name__ == "__main__":
    main()
