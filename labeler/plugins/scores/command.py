"""Commands that score rows by criteria, and measure the effect of length on scores."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from labeler.cli import options
from labeler.cli.label import RunReport, announce_grace, exit_code, write_run
from labeler.cli.options import check_label_target
from labeler.cli.terminal import BUDGET_REACHED, notify, print_json
from labeler.errors import FatalJudgeError, UsageError
from labeler.judges.options import JudgeOptions
from labeler.plugins.scores import ScoreOptions
from labeler.version import __version__

if TYPE_CHECKING:
    from labeler.plugins.scores.records import ScoreOutcome


def score(rows: options.Rows, *, given: ScoreOptions, output: options.Output = "-") -> int:
    """Score rows by rubrics or by criteria of your own."""
    from labeler.judges.opening import price_of_run
    from labeler.labeling.starting import judges_of
    from labeler.plugins.scores.api import iter_scores
    from labeler.plugins.scores.collected import Scores

    judges = judges_of(given, default="openai")
    check_label_target(rows, output)
    announce_grace("; press Ctrl-C again to drop them")
    methods, raters = Counter[str](), Scores() if len(judges) > 1 or given.repeat > 1 else None

    def counts() -> tuple[str, ...]:
        origins = progress.counts.origins
        named = ", ".join(str(judge.spec) for judge in judges)
        by = ", ".join(f"{count} by {method}" for method, count in methods.most_common())
        scored = f"{origins['judge']} scored by {named}", f"{origins['store']} from the store"
        return (*scored, f"scores: {by}") if by else scored

    def take(outcome: ScoreOutcome) -> None:
        methods.update([outcome.method] if outcome.kind == "score" else [])
        if raters is not None:
            raters.add(outcome)

    with RunReport("scoring", price_of_run(judges)) as progress:
        also = {"judges": judges, "progress": False, "on_event": progress}
        run = iter_scores(rows, **vars(given) | vars(JudgeOptions()) | also)
        try:
            write_run(run, output, progress, counts, each=take)
        except FatalJudgeError as error:
            if error.reason != "budget":
                raise
            notify(str(error))
            return BUDGET_REACHED
    progress.close(*counts())
    if raters is not None:
        from labeler.plugins.scores.agreement import print_panels

        print_panels(raters.configurations, stderr=True)
    return exit_code(progress)


def length(
    scores: Annotated[str, typer.Argument(help="Score file, store folder, or - for stdin.")],
    *,
    as_json: options.Json = False,
) -> None:
    """Show whether longer responses get higher scores."""
    from labeler.plugins.scores.api import read_scores
    from labeler.plugins.scores.collected import Scores
    from labeler.plugins.scores.length import length_effects, print_length

    found = length_effects(Scores(read_scores(scores)).configurations)
    if not found:
        raise UsageError(f"{scores} holds no scores: 'labeler score' makes some")
    if as_json:
        print_json([one.as_json(__version__) for one in found])
    else:
        print_length(found, __version__)
