"""The command that imports published rows of RAGBench."""

from __future__ import annotations

from typing import Annotated

import typer

from labeler.cli import options
from labeler.cli.files import check_label_target
from labeler.cli.terminal import SOME_FAILED


def import_ragbench(
    files: Annotated[
        list[str],
        typer.Argument(
            help="RAGBench rows: Parquet or JSON Lines, folders of the former, patterns, or - for "
            "standard input."
        ),
    ],
    *,
    output: options.Output = "-",
) -> int:
    """Import published RAGBench rows as label records."""
    from labeler import api
    from labeler.cli.label import RunReport
    from labeler.plugins.ragbench import read_ragbench

    check_label_target(files, output)
    with RunReport("importing") as progress:
        api.write_labels(progress.watching(read_ragbench(*files)), output)
    progress.close(f"{progress.counts.origins['row']} imported")
    return SOME_FAILED if progress.counts.failed else 0
