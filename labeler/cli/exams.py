"""The ``exam`` command."""

from __future__ import annotations

from labeler.cli import options
from labeler.cli.terminal import notify, print_json, print_lines
from labeler.evidence.options import ExamOptions
from labeler.judges.opening import open_judge
from labeler.judges.options import JudgeOptions


def exam(rows: options.Rows, *, given: ExamOptions, as_json: options.Json = False) -> None:
    """Find a judge's blind spots: errors planted in sentences that it called supported.

    Up to N rows are labeled, then up to N copies of each kind; answers are stored, and free the
    second time.
    """
    from labeler.evidence.exam import exam as take_exam
    from labeler.evidence.exam import most_requests

    judge = open_judge(given, also=given.restrictions, notice=notify)
    judges = 1 if given.against is None else 2
    notify(
        f"at most {judges * most_requests(given.n, given.n):,} requests; stored answers are free"
    )
    found = take_exam(rows, **vars(given) | vars(JudgeOptions()) | {"judge": judge})
    if as_json:
        print_json(found.as_json())
    else:
        print_lines(repr(found).split("\n"))
