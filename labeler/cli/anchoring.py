"""The ``anchors`` commands: the same records again, to see whether the judge has changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from labeler.cli.exams import opened
from labeler.cli.options import Json
from labeler.cli.reading import Labels
from labeler.cli.running import SOME_FAILED, reject_overwrite
from labeler.cli.terminal import notify, print_json, print_lines
from labeler.errors import UsageError
from labeler.evidence.options import AskOptions

File = Annotated[str, typer.Argument(help="File of anchors, as 'labeler anchors make' writes it.")]


def make(
    labels: Labels,
    *,
    number: Annotated[int, typer.Option("-n", min=2, help="Number of records to keep.")] = 80,
    seed: Annotated[int, typer.Option(help="Another seed chooses other records.")] = 0,
    output: Annotated[
        str, typer.Option("--output", "-o", help="File of anchors to write.")
    ] = "anchors.jsonl",
) -> None:
    """Keep some labeled records, to ask the same judge about again."""
    from labeler import api
    from labeler.evidence.anchors import choose_anchors

    reject_overwrite([labels], output)
    if Path(output).exists():
        raise UsageError(
            f"{output} exists already, maybe with paid answers: name another file (-o FILE), or "
            "delete it first"
        )
    anchors = choose_anchors(api.read_labels(labels), number, seed=seed)
    anchors.save(output)
    notify(
        f"{output}: {len(anchors.records)} records of {labels}; "
        f"'labeler anchors check {output} --judge …' asks the judge again"
    )


def check(file: File, *, given: AskOptions, as_json: Json = False) -> int:
    """Ask the judge again, and say whether it has changed (exit 1 if so).

    The first check asks twice, later ones once. Answers are kept in the file and in the store. All
    checks together raise a false alarm in 5 % of all cases at most.
    """
    from labeler.evidence.anchors import Anchors

    anchors = Anchors.load(file)
    asked = len(anchors.records) * (1 if anchors.looks else 2)
    notify(f"{asked} requests, if none of them is stored")
    found = anchors.check(**vars(given) | opened(given))
    if as_json:
        print_json(found.as_json())
    else:
        print_lines(repr(found).split("\n"))
    return SOME_FAILED if found.changed else 0
