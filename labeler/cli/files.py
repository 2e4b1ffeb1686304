"""Inputs and outputs of commands: what may be written, and labels at thresholds."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from labeler.data.lines import STDIO, is_remote
from labeler.errors import UsageError
from labeler.sentences.display import console

if TYPE_CHECKING:
    from labeler.calculators.numbers_file import NumbersFile
    from labeler.calculators.outcomes import CheckedOutcomes

U = TypeVar("U")

CONFIG_FILES = ("labeler.toml", "pyproject.toml")
"""Files of defaults that are looked for in the working directory; the first one counts."""


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
    reject_own_input(inputs, output)
    if output != STDIO and (is_remote(output) or Path(output).exists()):
        from labeler.data.corrections.file import keep_corrections

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
