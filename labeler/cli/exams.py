"""The commands that ask a judge again: ``exam``, and ``anchors make`` and ``check``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labeler.cli import options
from labeler.cli.files import reject_overwrite
from labeler.cli.options import Labels
from labeler.cli.terminal import SOME_FAILED, notify, print_json, print_lines
from labeler.errors import UsageError
from labeler.evidence.options import AskOptions, ExamOptions
from labeler.judges.opening import open_judge
from labeler.judges.options import JudgeOptions

if TYPE_CHECKING:
    from labeler.evidence.anchors import AnchorCheck
    from labeler.evidence.exam import Exam

File = Annotated[str, typer.Argument(help="File of anchors, as 'labeler anchors make' writes it.")]


def exam(rows: options.Rows, *, given: ExamOptions, as_json: options.Json = False) -> None:
    """Find a judge's blind spots: errors planted in sentences that it called supported.

    Up to N rows are labeled, then up to N copies of each kind; answers are stored, and free the
    second time.
    """
    from labeler.evidence.exam import exam as take_exam
    from labeler.evidence.exam import most_requests

    asked = _asked(given)
    judges = 1 if given.against is None else 2
    notify(f"at most {judges * most_requests(given.n):,} requests; stored answers are free")
    found = take_exam(rows, **asked)
    _print(found, as_json=as_json)


def make_anchors(
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


def check_anchors(file: File, *, given: AskOptions, as_json: options.Json = False) -> int:
    """Ask the judge again, and say whether it has changed (exit 1 if so).

    The first check asks twice, later ones once. Answers are kept in the file and in the store. All
    checks together raise a false alarm in 5 % of all cases at most.
    """
    from labeler.evidence.anchors import Anchors

    anchors = Anchors.load(file)
    asked = len(anchors.records) * (1 if anchors.looks else 2)
    notify(f"{asked} requests, if none of them is stored")
    found = anchors.check(**_asked(given))
    _print(found, as_json=as_json)
    return SOME_FAILED if found.changed else 0


def _asked(given: AskOptions | ExamOptions) -> dict[str, Any]:
    """Return options with the judge that they name, in place of the options that open it."""
    judge = open_judge(given, also=given.restrictions, notice=notify)
    return vars(given) | vars(JudgeOptions()) | {"judge": judge}


def _print(found: Exam | AnchorCheck, *, as_json: bool) -> None:
    if as_json:
        print_json(found.as_json())
    else:
        print_lines(repr(found).split("\n"))
