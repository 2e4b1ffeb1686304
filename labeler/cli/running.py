"""What commands that pay a judge have in common: they write a file, and may be broken off."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from labeler.cli.interrupt import ReaderGone, announce
from labeler.data.lines import STDIO, is_remote
from labeler.errors import UsageError

if TYPE_CHECKING:
    from labeler.cli.terminal import Progress
    from labeler.labels.record import AnyOutcome

T = TypeVar("T", bound="AnyOutcome")
U = TypeVar("U")

SOME_FAILED = 1
BUDGET_REACHED = 4


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
