"""The ``exam`` command, and the judge of commands that ask about copies or stored texts."""

from __future__ import annotations

from typing import Any

from labeler.cli import options
from labeler.cli.terminal import notify, print_json, print_lines
from labeler.evidence.options import AskOptions, ExamOptions
from labeler.judges.opening import open_judge
from labeler.judges.options import JudgeOptions


def exam(rows: options.Rows, *, given: ExamOptions, as_json: options.Json = False) -> None:
    """Find a judge's blind spots: errors planted in sentences that it called supported.

    Up to N rows are labeled, then up to N copies of each kind; answers are stored, and free the
    second time.
    """
    from labeler.evidence.exam import exam as take_exam
    from labeler.evidence.exam import most_requests

    asked = vars(given) | opened(given)
    judges = 1 if given.against is None else 2
    notify(f"at most {judges * most_requests(given.n):,} requests; stored answers are free")
    found = take_exam(rows, **asked)
    if as_json:
        print_json(found.as_json())
    else:
        print_lines(repr(found).split("\n"))


def opened(given: AskOptions | ExamOptions) -> dict[str, Any]:
    """Return the judge that options name, in place of the options that open it."""
    judge = open_judge(given, also=given.restrictions, notice=notify)
    return vars(JudgeOptions()) | {"judge": judge}
