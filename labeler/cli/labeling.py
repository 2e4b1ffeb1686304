"""Commands that label rows, and import and export labels."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labeler.cli import config
from labeler.cli.running import (
    ENGINES,
    LOCAL,
    EngineName,
    OtelEvents,
    Workers,
    announce_grace,
    check_label_target,
    exit_code,
    reject_overwrite,
    require_engine,
    write_run,
)
from labeler.cli.terminal import notify, print_display
from labeler.data.lines import STDIO
from labeler.errors import UsageError
from labeler.judges.opening import open_judge, price_of_run
from labeler.judges.options import JudgeOptions
from labeler.labeling.options import BLIND, LabelOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from labeler.calculators import SummaryRow
    from labeler.cli.run_report import RunReport
    from labeler.judges.judge import Judge
    from labeler.labels.record import Outcome


def label(
    rows: Annotated[
        list[str] | None,
        typer.Argument(
            help="Rows with question, documents, response: JSON Lines, JSON, CSV, Parquet, Arrow; "
            "- reads JSON Lines from stdin."
        ),
    ] = None,
    *,
    given: LabelOptions,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Label file to write, - for standard output; by default a terminal shows a "
            "summary.",
        ),
    ] = None,
    otel_events: OtelEvents = None,
    engine: EngineName = LOCAL,
    workers: Workers = None,
    show_config: Annotated[
        bool, typer.Option("--show-config", help="Print each setting with its source, and exit.")
    ] = False,
    context: typer.Context,
) -> int:
    """Label rows with one judge call each; stored labels are free."""
    from labeler.judges.opening import open_judges

    if show_config:
        config.show_config(context)
        return 0
    if not rows:
        raise UsageError("Missing argument 'ROWS...'.\ntry 'labeler label --help'")
    also = given.restrictions
    if given.judges is not None:
        judges = open_judges(given.judges, given, also=also)
    else:
        judges = [open_judge(given, also=also, notice=notify)]
    if engine != LOCAL:
        label_on_machines: Callable[..., int] = ENGINES[engine]
        blind = given.relevance == BLIND
        voting = {"judges": given.judges, "repeat": given.repeat > 1}
        require_engine(engine, otel_events=otel_events, relevance=blind, **voting)
        return label_on_machines(rows, given, output, workers)
    require_engine(engine, workers=workers)
    if output is None and not sys.stdout.isatty():
        output = STDIO
    if output is not None:
        check_label_target(rows, output)
    if otel_events is not None:
        reject_overwrite(rows, otel_events)
    return _label_here(rows, given, judges, output, otel_events)


def _label_here(
    rows: list[str],
    given: LabelOptions,
    judges: list[Judge],
    output: str | None,
    otel_events: str | None,
) -> int:
    """Label in this process, print the conclusion, counts and cost, and return the exit code."""
    from labeler import api
    from labeler.calculators.rater_agreement import Votes, conclude_agreement, show_agreement
    from labeler.cli.event_files import events_file
    from labeler.cli.run_report import RunReport

    announce_grace("; press Ctrl-C again to drop them")
    votes = Votes()
    asked = vars(given) | _asked(given, judges)
    measured = _Measured(output)
    report = RunReport("labeling", price_of_run(judges))
    with report as progress, events_file(otel_events) as written:
        also = {"votes": votes, "progress": False, "on_event": [progress, *written]}
        run = api.iter_labels(rows, **asked | also)
        counts = partial(_counts, progress, judges, given.repeat)
        write_run(run, output or STDIO, progress, counts, consume=measured.consume)
    measured.print(str(given.store))
    progress.close(*counts())
    if given.are_voting:
        found = votes.agreement()
        print_display(show_agreement(conclude_agreement(found, "The voters"), found), stderr=True)
    if output is None:
        notify(f"labels are stored in {given.store}; -o FILE writes them to a file")
    measured.print_next(str(given.store))
    return exit_code(progress)


class _Measured:
    """Measures the labels of a run while they are written.

    Args:
        output: the label file; ``None`` to show a summary instead of writing.
    """

    def __init__(self, output: str | None) -> None:
        from labeler.calculators import Intervals
        from labeler.calculators.headline import WorstIds

        self._output, self._intervals, self._worst = output, Intervals(), WorstIds()
        self._summary: list[SummaryRow] = []

    def consume(self, run: Iterator[Outcome]) -> None:
        """Write and measure the outcomes of a run."""
        from labeler.calculators import select_metrics, summarize
        from labeler.calculators.outcomes import measure_outcomes
        from labeler.data.label_files import write_outcomes

        shown = self._output is None
        outcomes = run if self._output is None else write_outcomes(run, self._output)
        metrics = select_metrics(None if shown else "adherence,adherence_fraction")
        rows = measure_outcomes(outcomes, None if shown else metrics, aliases=False)
        self._summary = summarize(self._worst.watch(rows), metrics, intervals=self._intervals)

    def print(self, store: str) -> None:
        """Print the conclusion, and the headline metrics if labels were not written."""
        from labeler.calculators.headline import conclusions
        from labeler.cli.summary_view import View, print_summary

        if self._output is None:
            view = View(self._intervals, worst=self._worst, next_command=False)
            print_summary(self._summary, view, store)
        else:
            for line in conclusions(self._summary, self._worst):
                notify(line)

    def print_next(self, store: str) -> None:
        """Print the command to run next."""
        from labeler.cli.summary_view import next_command

        source = {None: store, STDIO: ""}.get(self._output, self._output)
        for line in next_command(self._summary, str(source)):
            notify(line)


def _asked(given: LabelOptions, judges: list[Judge]) -> dict[str, Any]:
    """Return the judges of a run as options, in place of those that opened them."""
    return vars(JudgeOptions()) | ({"judges": judges} if given.are_voting else {"judge": judges[0]})


def _counts(progress: RunReport, judges: list[Judge], repeat: int) -> tuple[str, ...]:
    """Return the origins of the labels of a run."""
    judged, stored = progress.counts.origins["judge"], progress.counts.origins["store"]
    if len(judges) == 1 and repeat == 1:
        return f"{judged} labeled by {judges[0].spec}", f"{stored} from the store"
    by = ", ".join(str(judge.spec) for judge in judges)
    times = f", {repeat} times each" if repeat > 1 else ""
    return (f"{judged} labeled by the majority of {by}{times}",)
