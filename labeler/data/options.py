"""Options as values: how they are declared, and those that say how rows are read.

An options class is a frozen dataclass. Each field carries its help text, once; the command line
makes an option of it and a Python function a keyword. Annotations are evaluated when a class is
made (no ``from __future__ import annotations`` here), because both read them at run time.
"""

import functools
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Concatenate,
    ForwardRef,
    Literal,
    ParamSpec,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    get_origin,
)

from labeler.catalog import check_options, is_named
from labeler.errors import UsageError, count_of, number_in

if TYPE_CHECKING:
    from labeler.data.columns import Columns
    from labeler.data.formats import Raw, Source
    from labeler.data.rows import Rows

    RowSource: TypeAlias = object
    """Files, a data frame, examples, mappings, objects of other packages with the same fields, data
    sets of these, or rows opened before."""
    ColumnMap: TypeAlias = Mapping[str, str | Sequence[str]] | Sequence[str] | None
else:  # the types of the command line
    ColumnMap = list[str] | None

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Options = TypeVar("Options")


@dataclass(frozen=True)
class Option:
    """The documentation of an options field, and its form on the command line."""

    help: str
    name: str | None = None
    """The option's name, where it is not the field's."""
    envvar: str | None = None
    min: float | None = None
    max: float | None = None
    flag: float | None = None
    """The field's value where the option, a flag, is given."""
    cli: bool = True
    """False for a field that only Python callers can set."""
    panel: str | None = None
    """The option's heading in help, where it is not its class's ``PANEL``."""
    first: bool = False
    """True to list the option first below its heading."""
    takes: tuple[type, ...] = ()
    """Types that Python callers may give in place of text; ``object`` if its user checks it."""
    python: str | None = None
    """The help of the keyword in Python, where it differs from the command line."""


MAIN, ROWS, JUDGE, LIMITS, REPEATS = "Options", "Rows", "Judge", "Limits and money", "Repeats"
PANELS = (MAIN, ROWS, JUDGE, LIMITS, REPEATS)
"""Headings of options in a command's help, in their order."""

DEFAULT_STORE = ".labeler"
STORE = Option(
    "Folder of the label store.",
    envvar="LABELER_STORE",
    takes=(object,),
    python="Folder of the label store, or a store such as MemoryStore().",
)


def option_of(field: "Field[Any]") -> Option:
    """Return the documentation of an options field."""
    found: Option = next(mark for mark in field.type.__metadata__ if isinstance(mark, Option))  # type: ignore[union-attr]  # an Annotated type
    return found


def panel_of(kind: type, field: "Field[Any]") -> str:
    """Return the heading of an option in help: its own, or that of the class that declares it."""
    classes = (one for one in reversed(kind.__mro__) if is_dataclass(one))
    declaring = next(one for one in classes if field.name in one.__dataclass_fields__)
    return option_of(field).panel or str(getattr(declaring, "PANEL", MAIN))


def given(options: Any, kind: type) -> dict[str, Any]:  # noqa: ANN401 - any options
    """Return those fields of an options class whose values differ from their defaults."""
    values = {field.name: (getattr(options, field.name), field.default) for field in fields(kind)}
    return {name: value for name, (value, default) in values.items() if value != default}


def check_value(field: "Field[Any]", value: object) -> None:
    """Reject a value of the wrong type, or a number below its least value.

    Raises:
        UsageError: the message names what is allowed.
    """
    declared, option = field.type.__origin__, option_of(field)  # type: ignore[union-attr]  # as above
    kinds = get_args(declared) or (declared,)
    least = -math.inf if option.min is None else option.min
    if value is None and type(None) in kinds:
        return
    if bool in kinds and not isinstance(value, bool):
        raise UsageError(f"{field.name} must be True or False, got {value!r:.40}")
    if float in kinds:
        number_in(field.name, value, least)
    elif int in kinds:
        count_of(field.name, value, least)
    elif get_origin(declared) is Literal:
        if not isinstance(value, str) or value not in kinds:
            listed = " or ".join(map(repr, kinds))
            raise UsageError(f"{field.name} must be {listed}, got {value!r:.40}")
    elif list[str] in kinds:
        _check_texts(field.name, value, option.takes)
    elif str in kinds and not isinstance(value, (str, *option.takes)):
        named = " or ".join(["a text", *(f"a {one.__name__}" for one in option.takes)])
        raise UsageError(f"{field.name} must be {named}, got {value!r:.40}")
    elif isinstance(declared, ForwardRef):
        _check_class(field.name, value, declared.__forward_arg__)


def _check_class(name: str, value: object, declared: str) -> None:
    """Reject a value of another class than one that is named only, so that it is not imported."""
    kind = declared.removesuffix(" | None")
    if kind.isidentifier() and value is not None and not is_named(value, kind):
        raise UsageError(f"{name} must be of {kind}, got {value!r:.40}")


def _check_texts(name: str, value: object, others: tuple[type, ...]) -> None:
    if isinstance(value, others):
        return
    texts = value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else [None]
    if all(isinstance(one, str) for one in texts):
        return
    named = "".join(f" or a {one.__name__}" for one in others)
    raise UsageError(f"{name} must be a list of texts{named}, got {value!r:.40}")


def keywords(
    kind: Callable[P, Options],
) -> Callable[[Callable[[R, Options], T]], Callable[Concatenate[R, P], T]]:
    """Let a function of rows and options take the options' fields as keywords.

    Args:
        kind: the options class. Type checkers see its fields as the function's parameters.
    """
    parameters = inspect.signature(cast("Any", kind)).parameters.values()
    first = inspect.Parameter("rows", inspect.Parameter.POSITIONAL_ONLY)
    return _taking(kind, inspect.Signature([first, *map(_shown, parameters)]))


def _shown(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter for ``help()``: its plain type, or none where Python takes others too."""
    declared = parameter.annotation
    option = next(mark for mark in declared.__metadata__ if isinstance(mark, Option))
    return parameter.replace(
        annotation=parameter.empty if option.takes or not option.cli else declared.__origin__
    )


def parameters_of(
    declaration: Callable[P, object], kind: Callable[..., Options]
) -> Callable[[Callable[[R, Options], T]], Callable[P, T]]:
    """Let a function of data and options take the parameters that a declaration has.

    Args:
        declaration: a function whose first parameter is the data; the others, and the keywords of
            its ``**options``, are fields of the options class with their defaults.
        kind: the options class.
    """
    return _taking(kind, inspect.signature(declaration))


def _taking(kind: Callable[..., Any], signature: inspect.Signature) -> Callable[..., Any]:
    """Return a decorator that makes an options value of a function's keywords."""
    known = {field.name: field for field in fields(cast("Any", kind))}
    options = {name: option_of(field) for name, field in known.items()}
    declared = {name: option.python or option.help for name, option in options.items()}
    first, *others = signature.parameters
    named = dict.fromkeys(name for name in others if name in declared) | declared

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(function)
        def call(*args: object, **given: object) -> T:
            for name in given:
                if name not in declared and name != first:
                    check_options(function.__name__, [name], declared)
            try:
                bound = signature.bind(*args, **given).arguments
            except TypeError as error:
                raise TypeError(f"{function.__name__}(): {error}") from None
            data, values = bound.pop(first), bound.pop("options", {}) | bound
            for name, value in values.items():
                check_value(known[name], value)
            return function(data, kind(**values))

        returned = inspect.signature(function).return_annotation
        call.__signature__ = signature.replace(return_annotation=returned)  # type: ignore[attr-defined]
        helps = "\n".join(f"    {name}: {declared[name]}" for name in named)
        call.__doc__ = f"{inspect.getdoc(function)}\n\nOptions:\n{helps}\n"
        return call

    return decorate


@dataclass(frozen=True, kw_only=True)
class RowsOptions:
    """How rows are read."""

    PANEL: ClassVar = ROWS

    id_from: Annotated[str, Option("Columns that form the row id, comma-separated.", "--id")] = "id"
    columns: Annotated[
        ColumnMap,
        Option(
            "Read a field from another column: FIELD=COLUMN, such as documents=contexts; "
            "repeatable.",
            "--map",
            takes=(Mapping,),
            python="Column of each field: {'documents': 'contexts'}, or texts FIELD=COLUMN.",
        ),
    ] = None
    preset: Annotated[
        str | None,
        Option(
            "Columns of another tool, such as ragas, deepeval or langchain; by default those that "
            "fit."
        ),
    ] = None
    split_documents: Annotated[
        str | None, Option(r"Separator of the documents in one text, such as '\n\n' or '|'.")
    ] = None

    keep_thinking: Annotated[
        bool,
        Option("Judge thoughts in responses (<think>) too; by default they are left out."),
    ] = False

    @property
    def id_columns(self) -> tuple[str, ...]:
        """The columns that name a row; none for the default, the column ``id``."""
        return () if self.id_from == "id" else tuple(self.id_from.split(","))

    def chosen_columns(self) -> "Columns | None":
        """Return the column of each field, from ``columns``, ``preset`` and ``split_documents``.

        Raises:
            UsageError: a mapping is malformed, or names an unknown field or preset.
        """
        given = self.columns if isinstance(self.columns, Mapping) else _parsed(self.columns)
        if "id" in given and self.id_columns:
            raise UsageError("both --id and --map id=… name the rows: give one of the two")
        columns = {**given, "id": self.id_columns} if self.id_columns else given
        if not columns and self.preset is None and self.split_documents is None:
            return None
        from labeler.data.presets import choose_columns  # noqa: PLC0415 - loads pydantic

        return choose_columns(columns, self.preset, self.split_documents)

    def open(self, source: "RowSource") -> "Rows":
        """Open rows for reading, any number of times.

        Raises:
            UsageError: the source is of no known kind, an option does not fit it, or a mapping is
                malformed.
        """
        from labeler.data.formats import file_sources  # noqa: PLC0415 - loads pydantic
        from labeler.data.rows import Rows  # noqa: PLC0415 - loads pydantic

        if isinstance(source, Rows):
            if changed := given(self, RowsOptions):
                raise UsageError(f"rows are open already: pass {', '.join(changed)} to open_rows")
            return source
        rows: object = [source] if isinstance(source, str | Path) else source
        if type(rows) is not list:
            from labeler.data.formats.objects import rows_in  # noqa: PLC0415 - not for files

            rows = rows_in(rows, self.chosen_columns())
        if isinstance(rows, list) and rows and all(isinstance(row, str | Path) for row in rows):
            return self._rows(file_sources(rows), names=[str(path) for path in rows])
        if self.id_columns:
            raise UsageError("id_from is for files; rows from Python bring their id")
        if not isinstance(rows, list):
            return self._rows([rows])
        from labeler.data.formats.objects import python_source  # noqa: PLC0415 - not for files

        return self._rows([python_source([*rows].__iter__, len(rows))])

    def open_part(self, raws: "Callable[[], Iterator[Raw]]") -> "Rows":
        """Open some rows of a file, which a function reads, with ids as in the whole file."""
        from labeler.data.formats import Source  # noqa: PLC0415 - loads pydantic

        return self._rows([Source(raws)], is_part=True)

    def _rows(self, sources: "Iterable[Source]", **how: Any) -> "Rows":  # noqa: ANN401 - of Rows
        from labeler.data.rows import Rows  # noqa: PLC0415 - loads pydantic

        if columns := self.chosen_columns():
            how["columns"] = columns
        return Rows(list(sources), keep_thinking=self.keep_thinking, **how)


def _parsed(pairs: Sequence[str] | None) -> dict[str, str]:
    """Return the columns of FIELD=COLUMN texts."""
    parsed: dict[str, str] = {}
    for pair in pairs or ():
        field, equals, column = pair.partition("=")
        if not equals or field in parsed:
            fault = "names a field twice" if equals else "is not FIELD=COLUMN"
            raise UsageError(f"--map {pair!r:.80} {fault}: write --map documents=contexts")
        parsed[field] = column
    return parsed


@dataclass(frozen=True, kw_only=True)
class ExampleOptions(RowsOptions):
    """How rows are read and split into sentences."""

    splitter: Annotated[str, Option("Sentence splitter: general, ragbench or given.")] = "general"


_MAX_BYTES = 1_000_000


def read_toml(file: str | Path) -> dict[str, Any]:
    """Read a TOML file of people's settings; it may begin with a byte order mark.

    Raises:
        UsageError: the file cannot be read, is very long, or is not TOML in UTF-8.
    """
    import tomllib  # noqa: PLC0415 - most runs read none

    try:
        with Path(file).open("rb") as opened:
            text = opened.read(_MAX_BYTES + 1)
        if len(text) > _MAX_BYTES:
            raise UsageError(f"{file}: more than {_MAX_BYTES:,} bytes; is it the right file?")
        return tomllib.loads(text.decode("utf-8-sig"))
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}; check the path") from error
    except (ValueError, RecursionError) as error:  # of the decoder, too
        raise UsageError(f"{file}: cannot be read as TOML: {error}") from error
