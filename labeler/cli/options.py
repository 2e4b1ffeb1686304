"""Parameters of commands: shared ones, those of options classes, and the files that they name."""

from __future__ import annotations

import functools
import inspect
import os
import pkgutil
import sys
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_type_hints

import typer
from typer.models import OptionInfo

from labeler.data.lines import STDIO, is_remote
from labeler.data.options import PANELS, STORE, option_of, panel_of
from labeler.errors import UsageError
from labeler.sentences.display import console

if TYPE_CHECKING:
    from labeler.calculators.numbers_file import NumbersFile
    from labeler.calculators.outcomes import CheckedOutcomes


def completing(place: str) -> Callable[[str], list[str]]:
    """Return a completion of names that may be listed with commas.

    Args:
        place: ``package.module:name`` of a catalog, or of a function that returns the names;
            imported when a shell asks.
    """

    def complete(incomplete: str) -> list[str]:
        found = pkgutil.resolve_name(place)
        begin, comma, last = incomplete.rpartition(",")
        names = found() if callable(found) else found
        return [f"{begin}{comma}{name}" for name in names if name.startswith(last)]

    return complete


def judge_names() -> Iterable[str]:
    """Return judges, and providers with the colon that a model follows."""
    from labeler.judges.judge import JUDGES
    from labeler.judges.options import PROVIDERS

    return sorted({*JUDGES} - {*PROVIDERS} | {f"{name}:" for name in PROVIDERS})


_JUDGES = completing(f"{__name__}:judge_names")
BY_FIELD = {
    "judge": _JUDGES,
    "judges": _JUDGES,
    "preset": completing("labeler.data.presets:PRESETS"),
}
"""Completions of options classes, by field."""

T = TypeVar("T")


def _folder(name: str) -> str:
    if not name.strip():
        raise UsageError("--store (or LABELER_STORE) is empty: name a folder")
    return name


def _use_file(context: typer.Context, value: str | None) -> Mapping[str, Any]:
    """Return the defaults of a configuration file, named or found."""
    found = value or next((one for one in CONFIG_FILES if Path(one).is_file()), None)
    if context.resilient_parsing or not found:
        return {}
    from labeler.cli.config import use_file

    return use_file(context, found, explicit=value is not None)


Config = Annotated[
    str | None,
    typer.Option(
        "--config",
        help="File of defaults; else labeler.toml, or [tool.labeler] of pyproject.toml.",
        is_eager=True,
        callback=_use_file,
    ),
]
Rows = Annotated[
    list[str],
    typer.Argument(
        help="Rows with question, documents, response: JSON Lines, JSON, CSV, Parquet, Arrow; "
        "- reads JSON Lines from stdin."
    ),
]
Labels = Annotated[str, typer.Argument(help="Label file, store folder, or - for standard input.")]
LabelsA = Annotated[str, typer.Argument(help="Label file or store folder: A.")]
Output = Annotated[
    str, typer.Option("--output", "-o", help="Label file to write; - is standard output.")
]
Store = Annotated[str, typer.Option(envvar=STORE.envvar, help=STORE.help, callback=_folder)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
By = Annotated[str | None, typer.Option(help="Group by this metadata column.")]
Details = Annotated[
    bool,
    typer.Option("--details", help="Show counts, methods, settings, and why values are missing."),
]
Doubt = Annotated[
    str | None, typer.Option(help="Model that 'labeler doubt -o' wrote, to rank by doubt.")
]
Group = Annotated[
    str | None,
    typer.Option(
        help="Records that share this column are one observation; by default, the question."
    ),
]
Level = Annotated[float, typer.Option(help="Level of the intervals, between 0 and 1.")]
MetricIds = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        help="Ids, comma-separated, or all; by default each once that the labels allow.",
        autocompletion=completing("labeler.calculators:METRICS"),
    ),
]
OtelEvents = Annotated[
    str | None,
    typer.Option(
        "--otel-events",
        help="File for the metrics of each record as OpenTelemetry evaluation events (OTLP JSON).",
    ),
]
Threshold = Annotated[
    list[str] | None,
    typer.Option(
        help="Least probability of a positive verdict, such as support=0.8 (also relevance, "
        "utilization), for labels with probabilities; repeatable."
    ),
]


def parameter(kind: type, name: str) -> OptionInfo:
    """Return the command-line option of one field of an options class."""
    return _option(kind, next(field for field in fields(kind) if field.name == name))


def _option(kind: type, field: Field[Any]) -> OptionInfo:
    """Return the command-line option of a field of an options class."""
    option = option_of(field)
    is_flag = option.flag is not None or get_args(field.type)[0] is bool
    name = option.name or ("--" + field.name.replace("_", "-") if is_flag else None)
    info: OptionInfo = typer.Option(
        *([name] if name else []),
        help=option.help,
        envvar=option.envvar,
        min=option.min,
        max=option.max,
        callback=_folder if field.name == "store" else None,
        rich_help_panel=panel_of(kind, field),
        autocompletion=BY_FIELD.get(field.name),
    )
    return info


def _fields(kind: type) -> Iterator[Field[Any]]:
    """Yield the fields of an options class that the command line can set."""
    return (field for field in fields(kind) if option_of(field).cli)


def _place(kind: type, field: Field[Any]) -> tuple[int, bool]:
    """Return the place of an option in help."""
    return PANELS.index(panel_of(kind, field)), not option_of(field).first


def expand_options(
    command: Callable[..., T], flags: Mapping[str, object] | None = None
) -> Callable[..., T]:
    """Replace each parameter whose type is an options class by options for its fields.

    The command still receives the options as one value. Their defaults may come from a
    configuration file, see :mod:`labeler.cli.config`.

    Args:
        command: the function of the command.
        flags: types of further flags by name, which the function does not receive.
    """
    hints = get_type_hints(command, include_extras=True)
    signature = inspect.signature(command)
    kinds = {name: hints[name] for name in signature.parameters if is_dataclass(hints.get(name))}
    parameters: list[inspect.Parameter] = []
    for one in signature.parameters.values():
        if one.name in kinds:
            kind = kinds[one.name]
            ordered = sorted(_fields(kind), key=lambda field: _place(kind, field))
            parameters += [_parameter(kind, field) for field in ordered]
        else:
            parameters.append(one.replace(annotation=hints.get(one.name, one.annotation)))

    if kinds:
        parameters.append(_keyword("config", Config, None))
    flags = flags or {}
    parameters += [_keyword(name, kind, default=False) for name, kind in flags.items()]

    @functools.wraps(command)
    def run(**values: Any) -> T:  # noqa: ANN401 - the command's parameters
        for name in flags:
            values.pop(name, None)
        idle = frozenset[str]()
        if defaults := values.pop("config", None):
            from labeler.cli.config import idle_defaults

            idle = idle_defaults(values, defaults)
        collected = {name: _collect(kind, values, idle) for name, kind in kinds.items()}
        return command(**values, **collected)

    del run.__wrapped__
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _parameter(kind: type, field: Field[Any]) -> inspect.Parameter:
    is_flag = option_of(field).flag is not None
    value_type = bool if is_flag else get_args(field.type)[0]
    default = field.default if field.default is not MISSING else inspect.Parameter.empty
    shown = False if is_flag else default
    return _keyword(field.name, Annotated[value_type, _option(kind, field)], shown)


def _keyword(name: str, annotation: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def _collect(kind: type[T], values: dict[str, Any], idle: Collection[str]) -> T:
    """Move the fields of an options class from a command's values to an instance.

    Fields in ``idle`` keep their defaults.
    """
    given = {}
    for field in _fields(kind):
        value, flag = values.pop(field.name), option_of(field).flag
        if field.name in idle:
            value = field.default
        elif flag is not None:
            value = flag if value else field.default
        given[field.name] = value
    return kind(**given)


# Files that parameters name.

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
            place = place_of(part)
            if place in named:
                raise UsageError(
                    f"{part} and {named[place]} are the same file: its rows would count twice; "
                    "name each file once"
                )
            named[place] = part


def place_of(name: str) -> str:
    """Return what all names of a file or folder have in common."""
    here = name.removeprefix("file://")
    return name if is_remote(here) or name == STDIO else os.path.realpath(here)


def outcomes_at(
    labels: str | Sequence[str], threshold: Iterable[str] | None = None
) -> CheckedOutcomes:
    """Return the outcomes of label files, stores, or Parquet files, also remote ones.

    Args:
        labels: their place, or places to read together.
        threshold: thresholds that make the verdicts, such as ``support=0.8``.

    Raises:
        UsageError: one does not exist, or cannot be read; a threshold is none; while they are
            read, a label has no probabilities.
    """
    from labeler.calculators.outcomes import checked_outcomes

    outcomes = checked_outcomes(*([labels] if isinstance(labels, str) else labels))
    if not threshold:
        return outcomes
    from labeler.labels.thresholds import outcomes_at, parse_thresholds

    moved = parse_thresholds(threshold)
    return outcomes.through(lambda found: outcomes_at(found, moved))


def labels_at(labels: str, threshold: Iterable[str] | None = None) -> CheckedOutcomes:
    """Return outcomes as :func:`outcomes_at` does, for a command that reads labels only.

    Raises:
        UsageError: as for :func:`outcomes_at`; on reading, no outcome is of a label.
    """
    from labeler.labels.record import require_labels

    return outcomes_at(labels, threshold).through(require_labels(labels))


def outcomes_or_numbers(
    labels: str | Sequence[str], threshold: Iterable[str] | None = None
) -> CheckedOutcomes | NumbersFile:
    """Return outcomes as :func:`outcomes_at` does, or the rows of numbers files.

    Raises:
        UsageError: as for :func:`outcomes_at`, or a threshold is given for numbers.
    """
    from labeler.calculators.outcomes import numbers_of

    numbers = numbers_of(*([labels] if isinstance(labels, str) else labels))
    if numbers and threshold:
        raise UsageError(
            f"--threshold needs the probabilities of labels, and {numbers.name} holds numbers: "
            "name the label file"
        )
    return numbers or outcomes_at(labels, threshold)
