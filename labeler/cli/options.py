"""Parameters of commands: shared ones, and those derived from options classes."""

from __future__ import annotations

import functools
import inspect
import pkgutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import typer
from typer.models import OptionInfo

from labeler.cli.files import CONFIG_FILES
from labeler.data.options import PANELS, STORE, option_of, panel_of
from labeler.errors import UsageError


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
    from labeler.judges.providers import PROVIDERS

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
    str | None, typer.Option(help="Model of 'labeler doubt -o' that says what is doubtful.")
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
    kinds = {name: hints[name] for name in signature.parameters if is_dataclass(hints[name])}
    parameters: list[inspect.Parameter] = []
    for one in signature.parameters.values():
        if one.name in kinds:
            kind = kinds[one.name]
            ordered = sorted(_fields(kind), key=lambda field: _place(kind, field))
            parameters += [_parameter(kind, field) for field in ordered]
        else:
            parameters.append(one.replace(annotation=hints[one.name]))

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
