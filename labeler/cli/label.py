"""The commands ``label``, ``estimate`` and ``quickstart``, and runs of commands that judge rows."""

from __future__ import annotations

import shlex
import sys
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar, cast

import typer

from labeler.catalog import Catalog
from labeler.cli import options
from labeler.cli.options import OtelEvents, check_label_target, place_of, reject_overwrite
from labeler.cli.terminal import (
    BUDGET_REACHED,
    SOME_FAILED,
    ReaderGone,
    announce,
    counted,
    next_command,
    notify,
    notify_repeated,
    print_display,
    print_json,
)
from labeler.data.label_files import write_outcomes
from labeler.data.lines import STDIO
from labeler.data.options import RowsOptions
from labeler.errors import UsageError
from labeler.extensions import call_declared
from labeler.judges.opening import open_judge, open_judges, price_of_run
from labeler.labeling.options import BLIND, EstimateOptions, LabelOptions
from labeler.labeling.progress import Progress, RunEvent, RunEvents
from labeler.labeling.starting import label_rows
from labeler.labels.answering import UNKNOWN_TOKENS
from labeler.sentences.display import plural

if TYPE_CHECKING:
    from labeler.calculators import SummaryRow
    from labeler.judges.judge import Judge
    from labeler.judges.pricing import Price
    from labeler.labeling.progress import OnEvent
    from labeler.labels.record import AnyOutcome, Outcome

T = TypeVar("T", bound="AnyOutcome")

MACHINES = "Several machines"
"""Heading of the options of an engine in help."""
LOCAL = "local"
ENGINES: Catalog[Callable[..., int]] = Catalog(
    "engine", group="engines", of=Callable, extra=(LOCAL,)
)
"""Functions that label rows elsewhere, of rows, options, an output and a number of workers."""
EngineName = Annotated[
    str,
    typer.Option("--engine", help="local, or ray: several machines.", rich_help_panel=MACHINES),
]
_SHOWN_MODELS = 5


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
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="With ray: worker processes; by default one per core.",
            rich_help_panel=MACHINES,
        ),
    ] = None,
    show_config: Annotated[
        bool, typer.Option("--show-config", help="Print each setting with its source, and exit.")
    ] = False,
    context: typer.Context,
) -> int:
    """Label rows with one judge call each; stored labels are free."""
    if show_config:
        from labeler.cli.config import show_config as show

        show(context)
        return 0
    if not rows:
        raise UsageError("Missing argument 'ROWS...'.\ntry 'labeler label --help'")
    judges = _opened(given)
    if engine != LOCAL:
        label_on_machines: Callable[..., int] = ENGINES[engine]
        voting = {"judges": given.judges, "repeat": given.repeat > 1}
        blind = given.relevance == BLIND
        _reject(engine, LOCAL, otel_events=otel_events, relevance=blind, **voting)
        code: int = call_declared(
            "engines", engine, label_on_machines, rows, given, output, workers
        )
        return code
    _reject(LOCAL, "ray", workers=workers)
    if output is None and not sys.stdout.isatty():
        output = STDIO
    _check_targets(rows, output, otel_events)
    return _label_here(rows, given, judges, output, otel_events)


def _check_targets(rows: list[str], output: str | None, otel_events: str | None) -> None:
    """Reject output files that are inputs or the same file."""
    if output is not None:
        check_label_target(rows, output)
    if otel_events is not None:
        reject_overwrite(rows, otel_events)
        if place_of(otel_events) == place_of(output or STDIO):
            raise UsageError(f"--output and --otel-events are both {otel_events}: name two files")


def _opened(given: LabelOptions) -> list[Judge]:
    """Return the judges that options name: several that vote, or one."""
    also = given.restrictions
    if given.judges is not None:
        return open_judges(given.judges, given, also=also)
    return [open_judge(given, also=also, notice=notify)]


def _reject(engine: str, other: str, **given: object) -> None:
    """Reject options that an engine would ignore.

    Raises:
        UsageError: one is given.
    """
    for name, value in given.items():
        if value:
            raise UsageError(f"--{name.replace('_', '-')} needs --engine {other}, not {engine}")


def _label_here(
    rows: list[str],
    given: LabelOptions,
    judges: list[Judge],
    output: str | None,
    otel_events: str | None,
) -> int:
    """Label in this process, print the conclusion, counts and cost, and return the exit code."""
    announce_grace("; press Ctrl-C again to drop them")
    votes = None
    if given.are_voting:
        from labeler.calculators.rater_agreement import Votes

        votes = Votes()
    measured = _Measured(output)
    report = RunReport("labeling", price_of_run(judges))
    with report as progress, events_file(otel_events) as written:
        listeners: list[OnEvent] = [progress, *written]
        options = replace(given, votes=votes, progress=False, on_event=listeners)
        run = label_rows(rows, options, judges)
        counts = partial(_counts, progress, judges, given.repeat)
        write_run(run, output or STDIO, progress, counts, consume=measured.consume)
    measured.print(str(given.store))
    progress.close(*counts())
    if votes is not None:
        from labeler.calculators.rater_agreement import conclude_agreement, show_agreement

        found, named = votes.agreement(), ("vote 1", "vote 2")  # as the run has announced them
        title = conclude_agreement(found, "The voters")
        print_display(show_agreement(title, found, sides=named), stderr=True)
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
        from labeler.calculators.tables import WorstIds

        self._output, self._intervals, self._worst = output, Intervals(), WorstIds()
        self._summary: list[SummaryRow] = []

    def consume(self, run: Iterator[Outcome]) -> None:
        """Write and measure the outcomes of a run."""
        from labeler.calculators import select_metrics, summarize
        from labeler.calculators.outcomes import measure_outcomes

        shown = self._output is None
        outcomes = run if self._output is None else write_outcomes(run, self._output)
        metrics = select_metrics(None if shown else "adherence,adherence_fraction")
        rows = measure_outcomes(outcomes, None if shown else metrics, aliases=False)
        self._summary = summarize(self._worst.watch(rows), metrics, intervals=self._intervals)

    def print(self, store: str) -> None:
        """Print the conclusion, and the headline metrics if labels were not written."""
        from labeler.calculators.summary_text import View, conclusions
        from labeler.cli.measure import print_summary, repeated

        if self._output is None:
            view = View(self._intervals, worst=self._worst, next_command=False)
            print_summary(self._summary, view, store)
        else:
            for line in conclusions(self._summary, self._worst):
                notify(line)
        notify_repeated(repeated(self._summary))

    def print_next(self, store: str) -> None:
        """Print the command to run next."""
        source = {None: store, STDIO: ""}.get(self._output, self._output)
        for line in next_command(self._summary, str(source)):
            notify(line)


def _counts(progress: RunReport, judges: list[Judge], repeat: int) -> tuple[str, ...]:
    """Return the origins of the labels of a run."""
    judged, stored = progress.counts.origins["judge"], progress.counts.origins["store"]
    if len(judges) == 1 and repeat == 1:
        return f"{judged:,} labeled by {judges[0].spec}", f"{stored:,} from the store"
    by = ", ".join(str(judge.spec) for judge in judges)
    times = f", {repeat} times each" if repeat > 1 else ""
    return (f"{judged:,} labeled by the majority of {by}{times}",)


@contextmanager
def events_file(path: str | None) -> Iterator[list[OnEvent]]:
    """Yield the listeners that write the metrics of a run as evaluation events to a file."""
    if path is None:
        yield []
        return
    from labeler.calculators.export import events_file as opened

    with opened(path) as write:

        def listener(event: RunEvent) -> None:
            if event.kind == "result":
                write(cast("Outcome", event.outcome))  # labels are the only results

        yield [listener]
    notify(f"evaluation events written to {path}")


class RunReport(Progress):
    """Progress of a command; its notices and its end are printed on standard error.

    Use as a context manager.

    Args:
        doing: name of the activity, such as ``labeling``.
        price: price of the judge's tokens, if known.
    """

    def __init__(self, doing: str, price: Price | None = None) -> None:
        super().__init__(doing)
        self._price = price

    def __call__(self, event: RunEvent) -> None:
        """Draw an event; print a message above the bar if there is one."""
        super().__call__(event)
        if self.bar is None and event.kind == "notice":
            notify(event.text)

    def write(self, line: str) -> None:
        """Print a line of progress on standard error, which is not a terminal."""
        notify(line)

    def watching(self, outcomes: Iterable[T]) -> Iterator[T]:
        """Yield outcomes that were made from rows without a judge, and count them."""
        events = RunEvents([self])
        for outcome in outcomes:
            events.result(outcome, "row")
            yield outcome

    def close(self, *counts: str, not_reached: str = "") -> None:
        """Print the counts, failures by reason, cost, and the first failure messages."""
        seen = self.counts
        parts = [*counts, f"{seen.failed:,} failed{_by_frequency(seen.reasons)}"]
        if not_reached:
            parts.append(not_reached)
        if seen.repairs:
            parts.append(f"repaired or kept as stored{_by_frequency(seen.repairs)}")
        notify(", ".join(parts))
        if seen.usage.prompt_tokens or seen.unmetered:
            notify(self._spending())
        if len(seen.models) > 1:
            notify(self._served_models())
        for message in seen.failures:
            notify(f"  {message}")
        if seen.failed > len(seen.failures):
            notify(
                f"  … and {seen.failed - len(seen.failures)} more, each with its reason in its line"
            )

    def _spending(self) -> str:
        """Return requests, contract violations, tokens and cost."""
        seen = self.counts
        usage, reasked = seen.usage, f", {seen.reasks} re-asked" if seen.reasks else ""
        written = f", {usage.cache_write_tokens} written" if usage.cache_write_tokens else ""
        unknown = f", {seen.unmetered} of unknown usage" if seen.unmetered else ""
        tokens = (
            f"{usage.prompt_tokens} prompt tokens ({usage.cached_tokens} cached{written}); "
            f"{usage.completion_tokens} completion tokens"
        )
        if seen.unmetered and not usage.prompt_tokens:
            unknown, tokens = "", UNKNOWN_TOKENS
        asked = f"{plural(seen.requests, 'request')}{reasked}{_by_frequency(seen.broken)}{unknown}"
        return f"{asked}; {tokens}; {self._dollars()}"

    def _dollars(self) -> str:
        seen = self.counts
        if self._price is None or seen.spent is None:
            return "price unknown"
        doubtful = seen.spent.doubtful
        more = f" and up to ${doubtful:.4f} for requests of unknown cost" if doubtful else ""
        if seen.unmetered and not doubtful:
            more = " and an unknown amount for requests of unknown usage"
        return f"${seen.spent.known:.4f}{more} by {self._price.source}"

    def break_off(self, *counts: str, left: str = "") -> None:
        """Print the progress and cost of a run that ended early.

        Args:
            counts: as for :meth:`close`; if empty, only the cost is printed.
            left: state of the output file.
        """
        seen = self.counts
        self.__exit__()
        if counts and seen.started:
            rest = "the other rows not reached"
            if seen.total is not None:
                rest = f"{seen.total - seen.reached:,} of {plural(seen.total, 'row')} not reached"
            # Requests and tokens of these rows were not reported; the budget has their cost.
            priced = " and counted in dollars alone" if self._price else ""
            self.close(
                *counts, not_reached=f"{rest}, answers that came for them are stored{priced}"
            )
        elif seen.usage.prompt_tokens or seen.unmetered:
            notify(self._spending())
        if not seen.usage.prompt_tokens and seen.spent is not None and seen.spent.spent:
            notify(f"spent: {self._dollars()}")
        if left and seen.started:
            notify(left)

    def _served_models(self) -> str:
        """List the models that answered; a server may change the model behind a name."""
        seen = self.counts
        named = [f"{model} {n:,}" for model, n in seen.models.most_common(_SHOWN_MODELS)]
        if len(seen.models) > len(named):
            named.append(f"and {len(seen.models) - len(named)} more")
        return f"answered by {len(seen.models)} models: {', '.join(named)}"


def _by_frequency(counter: Counter[str]) -> str:
    return counted(dict(counter.most_common()))


def write_run(
    run: Generator[T, None, None],
    output: str,
    progress: RunReport,
    counts: Callable[[], tuple[str, ...]],
    *,
    each: Callable[[T], None] = lambda _: None,
    consume: Callable[[Iterator[T]], object] | None = None,
) -> None:
    """Write the outcomes of a run, and report its progress if it is interrupted.

    Args:
        run: closed here, so an interrupted run has ended before it is reported.
        output: a file, or ``-``.
        progress: the run's listener.
        counts: origins of the outcomes, for people.
        each: called for each outcome before it is written.
        consume: takes the outcomes, instead of writing them.

    Raises:
        ReaderGone: the reader closed standard output.
    """
    try:
        with closing(run):
            outcomes: Iterator[T] = _calling(each, run)
            if consume:
                consume(outcomes)
            else:
                deque(write_outcomes(outcomes, output), maxlen=0)
    except BrokenPipeError:
        progress.break_off()
        raise ReaderGone(
            f"the reader left after {plural(progress.counts.reached, 'row')}; run it again to go "
            "on: what is stored costs nothing"
        ) from None
    except BaseException:
        progress.break_off(*counts(), left=_output_state(output))
        raise


def _calling(each: Callable[[T], None], outcomes: Iterable[T]) -> Iterator[T]:
    for outcome in outcomes:
        each(outcome)
        yield outcome


def announce_grace(more: str = "") -> None:
    """Set the message of an interrupt: requests in flight may finish."""
    from labeler.labeling.engine import hurry
    from labeler.labeling.run import GRACE_SECONDS

    announce(f"stopping: requests in flight may finish within {GRACE_SECONDS:g} s{more}", hurry)


def exit_code(progress: RunReport) -> int:
    """Return the exit code of a completed run."""
    if progress.counts.reasons["budget"]:
        return BUDGET_REACHED
    return SOME_FAILED if progress.counts.failed else 0


def _output_state(output: str) -> str:
    """Describe the output file of an interrupted run; empty for pipes."""
    path = Path(output)
    if output == "-" or (path.exists() and not path.is_file()):
        return ""
    return f"{output} {'keeps its older content' if path.exists() else 'was not written'}"


def quickstart(
    folder: Annotated[str, typer.Argument(metavar="[DIR]", help="Folder to write to.")] = ".",
) -> None:
    """Write five rows and a commented configuration to begin with."""
    source, target = Path(__file__).with_name("quickstart"), Path(folder)
    files = [target / "labeler.toml", target / "rows.jsonl"]
    if there := [str(path) for path in files if path.exists()]:
        raise UsageError(f"{' and '.join(there)}: never overwritten; name another DIR")
    try:
        target.mkdir(parents=True, exist_ok=True)
        for path in files:
            with path.open("xb") as file:
                file.write((source / path.name).read_bytes())
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror}") from error
    go = "" if folder == "." else f"cd {shlex.quote(folder)} && "
    typer.echo(f"wrote {' and '.join(map(str, files))}; next:\n")
    typer.echo(f"  {go}labeler label rows.jsonl -o labels.jsonl && labeler metrics labels.jsonl")


def estimate(
    rows: options.Rows,
    *,
    given: EstimateOptions,
    as_json: options.Json = False,
) -> None:
    """Estimate requests, cost and time; nothing is sent."""
    from labeler import api

    opened = given.open(rows)
    found = api.estimate(opened, **vars(given) | vars(RowsOptions()))
    for text in opened.notices.values():
        notify(text)
    if as_json:
        print_json(found.as_json())
    else:
        print_display(found)
