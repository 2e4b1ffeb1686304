"""The columnar index: made by hand, and used where numbers are computed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labeler.errors import StoreError, UsageError

if TYPE_CHECKING:
    from labeler.calculators import Intervals, Metric, SummaryRow
    from labeler.record import ScoreOutcome


def index(
    labels: Annotated[str, typer.Argument(help="Store folder, or label file.")],
    *,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Make it anew.")] = False,
) -> None:
    """Index labels, so that metrics are computed at the speed of the disk."""
    from labeler.cli.terminal import say
    from labeler.index import FOLDER, is_store, sidecar_of
    from labeler.index.parquet import DamagedIndex
    from labeler.index.rows import Unindexable
    from labeler.index.sidecar import write_sidecar
    from labeler.index.stored import catch_up

    path = Path(labels)
    where = path / FOLDER if path.is_dir() else sidecar_of(path)
    if path.is_dir() and not is_store(path):
        raise UsageError(f"there is no label store in {path}; name a store's folder or a file")
    try:
        if path.is_dir():
            made = catch_up(path, rebuild=rebuild)
            count = made.rows if made else 0
        else:
            count = write_sidecar(path)
    except Unindexable as error:
        raise UsageError(f"{path} cannot be indexed: {error}; metrics read its records") from error
    except DamagedIndex as error:
        raise StoreError(f"{where} cannot be read back: {error}; check the disk") from error
    except OSError as error:
        raise UsageError(f"cannot write {where}: {error.strerror}; check the folder") from error
    say(f"{where}: {count} rows indexed")


def summarize_columns(
    labels: Sequence[str],
    metrics: Sequence[Metric],
    by: str | None,
    intervals: Intervals | None,
    *,
    fitting: bool,
    scores: list[ScoreOutcome],
) -> tuple[list[SummaryRow], int] | None:
    """Summarise labels from columns, and count their rows.

    Args:
        labels: files and stores; of several the records are read.
        metrics: the metrics.
        by: name of a metadata column.
        intervals: how intervals of the means are found.
        fitting: whether only those metrics count that labels have the fields for.
        scores: a list to put the scores on that are stored besides.

    Returns:
        ``None`` where the records must be read one by one.
    """
    from labeler.index import is_worthwhile

    if len(labels) != 1 or not is_worthwhile(labels[0]):
        return None

    from labeler.cli.terminal import say
    from labeler.index import serving
    from labeler.record import scores_among

    served = serving.summarize_stored(
        labels[0], metrics, by, fitting=fitting, intervals=intervals, notice=say
    )
    if served is None:
        return None
    scores += scores_among(served.others)
    return served.summary, served.rows
