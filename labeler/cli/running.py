"""Functions that several commands share: inputs, outputs, interrupted runs and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from labeler.catalog import Catalog
from labeler.cli.interrupt import ReaderGone, announce
from labeler.cli.terminal import plural
from labeler.data.lines import STDIO, is_remote
from labeler.errors import UsageError
from labeler.sentences.display import console

if TYPE_CHECKING:
    from labeler.calculators.numbers_file import NumbersFile
    from labeler.calculators.outcomes import CheckedOutcomes
    from labeler.cli.run_report import RunReport
    from labeler.labels.record import AnyOutcome

T = TypeVar("T", bound="AnyOutcome")
U = TypeVar("U")

SOME_FAILED = 1
BUDGET_REACHED = 4

MACHINES = "Several machines"
"""Heading of the options of an engine in help."""

LOCAL = "local"
ENGINES: Catalog[Callable[..., int]] = Catalog("engine", group="engines", extra=(LOCAL,))
"""Functions that label rows elsewhere, of rows, options, an output and a number of workers."""
EngineName = Annotated[
    str,
    typer.Option("--engine", help="local, or ray: several machines.", rich_help_panel=MACHINES),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1, help="With ray: worker processes; by default one per core.", rich_help_panel=MACHINES
    ),
]

OtelEvents = Annotated[
    str | None,
    typer.Option(
        "--otel-events",
        help="File for the metrics of each record as OpenTelemetry evaluation events (OTLP JSON).",
    ),
]


def reject_own_input(rows: list[str], output: str) -> None:
    """Reject an output that would overwrite an input.

    Raises:
        UsageError: both are the same file, whatever its name, or the output is one of a folder
            or pattern.
    """
    target = Path(output)
    if target.is_file() and any(_is_read(path, target) for path in _files(rows)):
        raise UsageError(f"{output} is an input: write to another file")


def reject_overwrite(inputs: list[str], output: str) -> None:
    """Reject an output that would overwrite an input or corrections of labels.

    Raises:
        UsageError: the output is one of these.
    """
    from labeler.data.corrections.file import keep_corrections

    reject_own_input(inputs, output)
    if output != STDIO:
        keep_corrections(output)


def check_label_target(inputs: list[str], output: str) -> None:
    """Reject an output that labels cannot be written to, before any request.

    Raises:
        UsageError: the next run would read it as rows; else see
            :func:`labeler.data.label_files.check_label_file` and :func:`reject_overwrite`.
    """
    from labeler.data.formats import row_files
    from labeler.data.label_files import check_label_file

    check_label_file(output)
    reject_overwrite(inputs, output)
    for name in inputs if output != STDIO else ():
        if row_files(name) != [name] and Path(output).resolve().parent == Path(name).resolve():
            raise UsageError(
                f"{output} is in {name}, whose files are the next run's rows: write to another "
                "folder"
            )


def _files(names: Iterable[str]) -> Iterator[str]:
    """Yield the files that names stand for: folders of Parquet files and patterns are expanded."""
    from labeler.data.label_files import parts_of

    for name in names:
        parts = None
        if not is_remote(name):
            with suppress(UsageError):  # reading it reports that no file matches
                parts = parts_of(name)
        yield from parts or [name]


def _is_read(path: str, target: Path) -> bool:
    """Return True if a file is the input of a path, or of standard input."""
    if path != STDIO:
        return Path(path).is_file() and target.samefile(path)
    try:
        return os.path.samestat(os.fstat(sys.stdin.fileno()), target.stat())
    except (AttributeError, OSError, ValueError):
        return False  # no standard input, or not a file of the operating system


@contextmanager
def watching(doing: str) -> Generator[Callable[[Iterable[U]], Iterator[U]]]:
    """Show the number of records read, if standard error is a terminal.

    The counter stays while the records are processed and disappears at the end.

    Args:
        doing: the activity, such as ``auditing``.

    Yields:
        A function that forwards records and counts them.
    """
    from rich import progress

    bar = progress.Progress(
        progress.SpinnerColumn(),
        progress.TextColumn(doing),
        progress.TextColumn("{task.completed:,.0f} records"),
        progress.TimeElapsedColumn(),
        console=console(stderr=True),
        disable=not sys.stderr.isatty(),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    task = bar.add_task("", total=None)

    def watched(records: Iterable[U]) -> Iterator[U]:
        for record in records:
            yield record
            bar.advance(task)

    with bar:
        yield watched


def check_target(labels: list[str], output: str | None) -> None:
    """Reject an output of unknown form, or one that would overwrite labels or corrections."""
    if output is not None:
        from labeler.calculators.export import check_table

        check_table(output)
        reject_overwrite(labels, output)


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
    from labeler import api

    try:
        with closing(run):
            outcomes: Iterator[T] = _calling(each, run)
            if consume:
                consume(outcomes)
            else:
                api.write_labels(outcomes, output)
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
    from labeler.labeling.run import GRACE_SECONDS

    announce(f"stopping: requests in flight may finish within {GRACE_SECONDS:g} s{more}")


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


def reject_repeats(names: Sequence[str]) -> None:
    """Reject a file that is named twice, such as by its name and by a pattern.

    Raises:
        UsageError: each of their rows would count twice.
    """
    from labeler.data.label_files import is_store, parts_of

    named: dict[str, str] = {}
    for name in names:
        alone = name == STDIO or is_store(Path(name))
        for part in [name] if alone else parts_of(name) or [name]:
            here = part.removeprefix("file://")
            place = part if is_remote(here) or part == STDIO else os.path.realpath(here)
            if place in named:
                raise UsageError(
                    f"{part} and {named[place]} are the same file: its rows would count twice; "
                    "name each file once"
                )
            named[place] = part


Threshold = Annotated[
    list[str] | None,
    typer.Option(
        help="Least probability of a positive verdict, such as support=0.8 (also relevance, "
        "utilization), for labels with probabilities; repeatable."
    ),
]


def outcomes_at(labels: str, threshold: Iterable[str] | None = None) -> CheckedOutcomes:
    """Return the outcomes of a label file, a store, or Parquet files, also remote ones.

    Args:
        labels: their place.
        threshold: thresholds that make the verdicts, such as ``support=0.8``.

    Raises:
        UsageError: it does not exist, or cannot be read.
    """
    from labeler.calculators.outcomes import checked_outcomes

    return at_threshold(checked_outcomes(labels), threshold)


def at_threshold(outcomes: CheckedOutcomes, threshold: Iterable[str] | None) -> CheckedOutcomes:
    """Return outcomes with the verdicts of other thresholds; the same ones if none is given.

    Raises:
        UsageError: a threshold is none; while they are read, a label has no probabilities.
    """
    if not threshold:
        return outcomes
    from labeler.labels.thresholds import outcomes_at, parse_thresholds

    moved = parse_thresholds(threshold)
    return outcomes.through(lambda found: outcomes_at(found, moved))


def outcomes_or_numbers(
    labels: str, threshold: Iterable[str] | None = None
) -> CheckedOutcomes | NumbersFile:
    """Return outcomes as :func:`outcomes_at` does, or the rows of a numbers file."""
    from labeler.calculators.outcomes import numbers_of

    if numbers := numbers_of(labels, ids=()):
        reject_thresholds(numbers.name, threshold)
        return numbers
    return outcomes_at(labels, threshold)


def reject_thresholds(numbers: str, threshold: Iterable[str] | None) -> None:
    """Reject thresholds for a numbers file.

    Raises:
        UsageError: one is given.
    """
    if threshold:
        raise UsageError(
            f"--threshold needs the probabilities of labels, and {numbers} holds numbers: name the "
            "label file"
        )


def require_engine(engine: str, **given: object) -> None:
    """Reject options that the engine would ignore.

    Raises:
        UsageError: one is given.
    """
    for name, value in given.items():
        if value:
            option = f"--{name.replace('_', '-')}"
            other = "ray" if engine == "local" else "local"
            raise UsageError(f"{option} needs --engine {other}, not {engine}")
