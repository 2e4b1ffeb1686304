"""What commands that pay a judge have in common: they write a file, and may be broken off."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, TypeVar

import typer

from labeler.cli.interrupt import ReaderGone, announce
from labeler.data.lines import STDIO, is_remote
from labeler.errors import UnknownName, UsageError

if TYPE_CHECKING:
    from labeler.cli.terminal import Progress
    from labeler.labels.record import AnyOutcome

T = TypeVar("T", bound="AnyOutcome")
U = TypeVar("U")

SOME_FAILED = 1
BUDGET_REACHED = 4

_LINES = re.compile(r"\.(jsonl?|ndjson|txt)(\.gz)?$|\.gz$", re.IGNORECASE)
"""How the names of files end that are no Parquet; all others mean folders or patterns of it."""

EngineName = Annotated[
    Literal["local", "ray"], typer.Option("--engine", help="local, or ray: several machines.")
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="With ray: processes; by default one a processor.")
]


def refuse_own_input(rows: list[str], output: str) -> None:
    """Refuse to write over a file that a command reads.

    Raises:
        UsageError: it is the very same file, under whatever name, or one of a folder or pattern.
    """
    target = Path(output)
    if target.is_file() and any(_is_read(path, target) for path in _files(rows)):
        raise UsageError(f"{output} is an input: write to another file")


def refuse_loss(inputs: list[str], output: str) -> None:
    """Refuse to write over a file that a command reads, or over what people said of labels.

    Raises:
        UsageError: it is one of these.
    """
    from labeler.data.corrections.file import keep_corrections

    refuse_own_input(inputs, output)
    if output != STDIO:
        keep_corrections(output)


def check_label_target(inputs: list[str], output: str) -> None:
    """Refuse what labels cannot be written to, before they are bought.

    Raises:
        UsageError: see :func:`labeler.data.label_files.check_label_file` and :func:`refuse_loss`.
    """
    from labeler.data.label_files import check_label_file

    check_label_file(output)
    refuse_loss(inputs, output)


def _files(names: Iterable[str]) -> Iterator[str]:
    """The files that names mean, where they are folders of Parquet or patterns."""
    from labeler.data.label_files import parts_of

    for name in names:
        parts = None
        if not is_remote(name):
            with suppress(UsageError):  # whoever reads it says that no file is like it
                parts = parts_of(name)
        yield from parts or [name]


def _is_read(path: str, target: Path) -> bool:
    """Whether a file is what a command reads under a path, or as its standard input."""
    if path != STDIO:
        return Path(path).is_file() and target.samefile(path)
    try:
        return os.path.samestat(os.fstat(sys.stdin.fileno()), target.stat())
    except (AttributeError, OSError, ValueError):
        return False  # there is no standard input, or it is not a file of the system


@contextmanager
def watching(doing: str) -> Generator[Callable[[Iterable[U]], Iterator[U]]]:
    """Show how many records a command has read, where standard error is a terminal.

    What is shown stays until the end, for work that comes after reading, and then goes.

    Args:
        doing: what is being done.

    Yields:
        What passes the records on and counts them.
    """
    from rich import progress

    from labeler.cli.terminal import console

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
    """Refuse to write numbers over what was paid for or said, or to a file of no known form."""
    if output is not None:
        from labeler.calculators.export import check_table

        check_table(output)
        refuse_loss(labels, output)


def write_run(
    run: Generator[T, None, None],
    output: str,
    progress: Progress,
    counts: Callable[[], tuple[str, ...]],
    each: Callable[[T], None] = lambda _: None,
) -> None:
    """Write what a run yields, and say how far it came if it does not come to its end.

    Args:
        run: closed here, so that a run that breaks off is over before anything is said of it.
        output: a file, or ``-``.
        progress: the run's listener.
        counts: where the outcomes came from, for people.
        each: told of each outcome before it is written.

    Raises:
        ReaderGone: whoever read our standard output has closed it.
    """
    from labeler import api

    try:
        with closing(run):
            told: Iterator[T] = _telling(run, each)
            api.write_labels(told, output)
    except BrokenPipeError:
        progress.break_off()
        rows_said = f"{progress.reached} row{'s' * (progress.reached != 1)}"
        raise ReaderGone(
            f"the reader left after {rows_said}; run it again to go on: what is stored costs "
            "nothing"
        ) from None
    except BaseException:
        progress.break_off(*counts(), left=_left(output))
        raise


def _telling(outcomes: Iterable[T], each: Callable[[T], None]) -> Iterator[T]:
    for outcome in outcomes:
        each(outcome)
        yield outcome


def announce_grace(more: str = "") -> None:
    """Say, when the run is interrupted, that requests in flight may finish."""
    from labeler.labeling.run import GRACE_SECONDS

    announce(f"stopping: requests in flight may finish within {GRACE_SECONDS:g} s{more}")


def exit_code(progress: Progress) -> int:
    """How a run that came to its end ends."""
    if progress.reasons["budget"]:
        return BUDGET_REACHED
    return SOME_FAILED if progress.failed else 0


def _left(output: str) -> str:
    """What a run that broke off leaves where its labels were to stand; pipes are their readers'."""
    path = Path(output)
    if output == "-" or (path.exists() and not path.is_file()):
        return ""
    return f"{output} {'keeps its older content' if path.exists() else 'was not written'}"


def located(names: Sequence[str]) -> list[str]:
    """Names of labels, with the files of folders and patterns that are at addresses.

    Raises:
        UsageError: there is no Parquet file there.
    """
    if not any(map(is_remote, names)):
        return list(names)

    from labeler.data.label_files import is_index
    from labeler.integrations.ray.parts import input_files

    found = []
    for name in names:
        files = input_files(name) if is_remote(name) and not _is_lines(name) else [name]
        found += [file for file in files if not is_index(file)]
    return found


def refuse_repeats(names: Sequence[str]) -> None:
    """Refuse a file that is named twice, such as by its name and by a pattern that it fits.

    Raises:
        UsageError: each of their rows would count twice.
    """
    from labeler.data.label_files import is_store, parts_of

    named: dict[str, str] = {}
    for name in names:
        alone = is_remote(name) or name == STDIO or is_store(Path(name))
        for part in [name] if alone else parts_of(name) or [name]:
            here = part.removeprefix("file://")
            place = part if is_remote(here) or part == STDIO else os.path.realpath(here)
            if place in named:
                raise UsageError(
                    f"{part} and {named[place]} are the same file: its rows would count twice; "
                    "name each file once"
                )
            named[place] = part


def outcomes_at(labels: str) -> Iterator[AnyOutcome]:
    """Outcomes of a label file, a store, or a folder or pattern of Parquet files, also remote.

    Raises:
        UsageError: nothing is there, or it cannot be read.
    """
    from labeler.calculators.outcomes import stored_outcomes

    for name in located([labels]):
        yield from stored_outcomes(name)


def _is_lines(address: str) -> bool:
    """Whether an address is that of a file of JSON Lines; one of the web may end in a query."""
    scheme = address.partition("://")[0].lower()
    path = address.partition("?")[0] if scheme in {"http", "https"} else address
    return bool(_LINES.search(path))


def require_engine(engine: str, **given: object) -> None:
    """Refuse options that the engine would ignore.

    Raises:
        UsageError: one is given.
    """
    for name, value in given.items():
        if value:
            option = f"--{name.replace('_', '-')}"
            other = "ray" if engine == "local" else "local"
            raise UsageError(f"{option} goes with --engine {other}, not with {engine}")


class Counters(NamedTuple):
    """Who counts.

    Attributes:
        engine: ``local`` or ``ray``.
        workers: how many of Ray there are to be; by default one a processor.
    """

    engine: str
    workers: int | None

    def require_metrics(self, unknown: Iterable[UnknownName]) -> None:
        """Refuse, for workers, names that may be of criteria: these are looked for in all scores.

        Raises:
            UsageError: there is one.
        """
        error = next(iter(unknown), None)
        if error and self.engine != "local":
            raise UsageError(
                f"{error}; --engine {self.engine} counts metrics of labels: leave it out for those "
                "of scores"
            )


def counters_of(engine: str, workers: int | None, *, alone: bool) -> Counters:
    """Who counts for numbers.

    Args:
        engine: its name.
        workers: how many there are to be.
        alone: whether something is asked for that one machine alone does.

    Raises:
        UsageError: the engine would ignore an option.
    """
    if engine == "local":
        require_engine(engine, workers=workers)
    elif alone:
        raise UsageError("--engine ray counts columns: it goes without --rows, --list, --no-index")
    return Counters(engine, workers)
