"""The ``index`` command, and summaries from the index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labeler.cli.terminal import notify
from labeler.errors import StoreError, UsageError

if TYPE_CHECKING:
    from labeler.calculators import Intervals, Metric, SummaryRow
    from labeler.calculators.column_summary import SummaryRequest
    from labeler.calculators.index.summaries import StoredSummary
    from labeler.cli.running import Engine
    from labeler.labels.score_record import ScoreOutcome


def index(
    labels: Annotated[
        str, typer.Argument(help="Store folder, label file, or folder of Parquet label files.")
    ],
    *,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Rebuild even a valid index.")] = False,
) -> None:
    """Index labels, which makes metrics fast."""
    from labeler.calculators.index.frames import DamagedIndex
    from labeler.calculators.index.rows import Unindexable

    path = Path(labels)
    where, make = _maker(labels, rebuild=rebuild)
    try:
        count = make()
    except Unindexable as error:
        raise UsageError(f"{path} cannot be indexed: {error}; metrics read its records") from error
    except DamagedIndex as error:
        raise StoreError(f"{where} cannot be read back: {error}; check the disk") from error
    except OSError as error:
        raise UsageError(f"cannot write {where}: {error.strerror}; check the folder") from error
    notify(f"{where}: {count} rows indexed")


def _maker(labels: str, *, rebuild: bool) -> tuple[Path, Callable[[], int]]:
    """Return the path of the index of labels, and a function that builds it and counts its rows."""
    from labeler.calculators.index.sidecar import write_indexes, write_sidecar
    from labeler.data.label_files import (
        INDEX_FOLDER,
        PARTS_INDEX_FOLDER,
        is_store,
        parts_of,
        sidecar_of,
    )

    path = Path(labels)
    if is_store(path):
        return path / INDEX_FOLDER, partial(_catch_up, path, rebuild=rebuild)
    if not path.is_dir():
        return sidecar_of(path), partial(write_sidecar, path)
    parts = [Path(part) for part in parts_of(labels) or ()]
    if not parts:
        raise UsageError(
            f"there is no label store and no Parquet file in {path}; name a store's folder, a "
            "folder of Parquet label files, or a label file"
        )
    return path / PARTS_INDEX_FOLDER, partial(write_indexes, parts, rebuild=rebuild)


def _catch_up(store: Path, *, rebuild: bool) -> int:
    from contextlib import closing

    from labeler.calculators.index.store_index import update_index

    with closing(update_index(store, notify, rebuild=rebuild)) as made:
        return made.rows


def summarize_columns(
    labels: Sequence[str],
    metrics: Sequence[Metric],
    by: str | None,
    intervals: Intervals | None,
    engine: Engine,
    *,
    fitting: bool,
    scores: list[ScoreOutcome],
) -> tuple[list[SummaryRow], int] | None:
    """Summarize labels from columns, and count their rows.

    Args:
        labels: label files, folders of Parquet files and patterns, or one store.
        metrics: the metrics.
        by: name of a metadata column.
        intervals: settings of the intervals of means.
        engine: this process, or workers of Ray.
        fitting: True to skip metrics whose fields the labels lack.
        scores: list to which the scores among the labels are appended.

    Returns:
        Summaries and the number of rows; ``None`` if the records must be read one by one.
    """
    from labeler.calculators.column_summary import SummaryRequest
    from labeler.calculators.index.summaries import summarize_stored
    from labeler.labels.record import records_of

    single = [] if fitting else [metric for metric in metrics if not metric.vectorized]
    counted = [metric for metric in metrics if metric not in single] or metrics
    request = SummaryRequest(counted, by, fitting, intervals)
    if engine.name == "local":
        served = summarize_stored(labels, request, notify)
    else:
        served = _on_ray(labels, request, engine.workers)
    if served is None:
        return None
    scores += records_of(served.others, "score")
    if len(counted) == len(metrics):
        return served.summary, served.rows
    notify(f"no vectorised form of {', '.join(m.id for m in single)}: computed record by record")
    rows = [*served.summary, *_summarize_rows(labels, single, by, intervals)]
    order = {metric: place for place, metric in enumerate(metrics)}
    rows.sort(key=lambda row: (row.label or "", row.group or "", order[row.metric]))
    return rows, served.rows


def _summarize_rows(
    labels: Sequence[str], metrics: Sequence[Metric], by: str | None, intervals: Intervals | None
) -> list[SummaryRow]:
    """Summarize metrics that are not vectorized; see :func:`summarize_columns`."""
    from labeler.calculators import summarize
    from labeler.calculators.outcomes import checked_outcomes, measure_outcomes, split_scores

    outcomes = split_scores(checked_outcomes(*labels), [])
    column = (intervals.group if intervals else None) or ""
    rows = measure_outcomes(outcomes, metrics, questions=(), column=column)
    return summarize(rows, metrics, by, intervals=intervals)


def _on_ray(
    labels: Sequence[str], asked: SummaryRequest, workers: int | None
) -> StoredSummary | None:
    """Return the summary that Ray workers compute of label files."""
    from labeler.data.label_files import files_of
    from labeler.integrations.ray.cluster import count_on_ray, processor_count
    from labeler.integrations.ray.counting import summarize_files

    files = files_of(labels)
    if not files:
        raise UsageError(
            "--engine ray counts label files, such as the partitions of 'labeler label --engine "
            f"ray': {', '.join(labels)} holds none, or is a store; leave --engine out"
        )
    return summarize_files(files, asked, count_on_ray, workers or processor_count(), notify)
