"""Rows from Python: objects of other packages, data frames and other tables, as JSON values.

Objects are recognized by what they have: ``model_dump``, fields of a dataclass, of attrs or of a
named tuple, a list of rows under a known name, or, of a row itself, attributes. Nothing but
``model_dump`` is called. Tables are recognized by their interface. No library is imported that the
caller has not imported already, except pyarrow for objects that only speak the Arrow protocol.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from functools import partial
from io import IOBase
from itertools import chain
from operator import is_
from types import ModuleType, SimpleNamespace
from typing import Any

from labeler.data.columns import Columns
from labeler.data.documents import read_document
from labeler.data.formats import Raw, Source, check_names, plain, plain_row, require_pyarrow
from labeler.data.presets import has_fields, meaning_of
from labeler.errors import BadRow, UsageError
from labeler.labels.signature import canonical_json
from labeler.sentences.example import Example

_LISTS = ("test_cases", "goldens", "test_results", "samples")
"""Attributes under which the data sets of other packages hold their rows, in order."""
_DEEPEST = 64
"""Levels of objects in a row; deeper ones stay as they are, and the row's checks reject them."""
_LEVELS = 4
"""Levels of objects in which a list of rows is looked for."""
_EVALUATIONS = frozenset({"tasks", "evaluations", "documents"})
"""Lists of a file of evaluations, such as MTRAG's."""
_VECTORS = ("embedding", "sparse_embedding")
"""Fields of objects that are left out, since labels would keep them."""
_MOST_PARTS = 1_000_000
"""Lists, objects and other values in a row that are neither text nor whole numbers."""


def python_source(read: Callable[[], Iterable[Any]], total: int | None) -> Source:
    """Return the source of examples, mappings with the same fields, or objects with them.

    Args:
        read: starts an iteration over the rows.
        total: their number; ``None`` if it is unknown.
    """

    def raws() -> Iterator[Raw]:
        for number, row in enumerate(read(), start=1):
            where = f"row {number}"
            try:
                fields = row.model_dump() if isinstance(row, Example) else row_of(row, where)
                yield Raw(where, fields)
            except BadRow as error:
                yield Raw(where, error)

    return Source(raws, lambda: total)


def rows_in(source: Any, columns: Columns | None = None) -> list[Any] | Source:  # noqa: ANN401 - of any package
    """Return the rows in an object from Python.

    They are those of a table, of a data set of another package, or of a mapping of columns, the
    items of an iterable, or the object itself as one row. Tables are data frames of polars and
    pandas, Hugging Face data sets, and objects that export an Arrow stream, such as pyarrow tables.

    Args:
        source: the object.
        columns: the columns that the user chose. A mapping that has a named one is a row.

    Raises:
        UsageError: the object holds no rows, a data set has several splits, two columns have one
            name, or pyarrow is needed and not installed.
    """
    if isinstance(source, bytes | bytearray | IOBase):
        raise UsageError(f"rows are read from the path of a file, not {type(source).__name__}")
    if _is_series(source):
        return list(source) if all(map(_is_row, source)) else [source]
    if (table := _table(source)) is not None:
        return table
    for name in _LISTS:
        held = getattr(source, name, None)
        if isinstance(held, list | tuple) and held:
            return list(held)
    if isinstance(source, Mapping):
        lists = {n: plain(one) if hasattr(one, "dtype") else one for n, one in source.items()}
        return rows_of_columns(lists) or _held(source, columns)
    is_record = _is_record(source)
    if isinstance(source, Iterable) and (not is_record or dataclasses.is_dataclass(source)):
        return list(source)
    if is_record or own_fields(source):
        return [source]
    raise UsageError(
        "rows are files, a data frame, or examples, mappings or objects with fields, not "
        f"{type(source).__name__}"
    )


def _held(source: Mapping[str, Any], columns: Columns | None) -> list[Any]:
    """Return the rows that a mapping holds as a file does; else itself as a row.

    Raises:
        UsageError: several lists hold rows.
    """
    if columns is not None and columns.named & columns.used(source).keys():
        return [source]
    _, rows = rows_within("", source)
    are_rows = bool(rows) and isinstance(rows[0], Mapping) and has_fields(rows[0])
    return rows if are_rows else [source]


def _is_record(value: object) -> bool:
    """Return True for an object whose fields are declared to be data."""
    is_model = callable(getattr(value, "model_dump", None)) or isinstance(value, SimpleNamespace)
    return not isinstance(value, type) and (is_model or bool(_declared(value)))


def _is_row(value: object) -> bool:
    """Return True for a mapping, and for any other object with fields."""
    return isinstance(value, Mapping) or _is_record(value) or bool(own_fields(value))


def _is_series(value: object) -> bool:
    """Return True for a column of pandas, or a row of it."""
    is_of_pandas = type(value).__module__.partition(".")[0] == "pandas"
    return is_of_pandas and hasattr(value, "to_dict") and not hasattr(value, "columns")


def own_fields(value: object) -> list[str]:
    """Return the names of the attributes of a plain object; no property is read."""
    if isinstance(value, type | ModuleType) or callable(value):
        return []
    slots = (getattr(kind, "__slots__", ()) for kind in type(value).__mro__)
    named = chain.from_iterable([one] if isinstance(one, str) else one for one in slots)
    names = dict.fromkeys((*getattr(value, "__dict__", ()), *named))
    return [name for name in names if not name.startswith("_")]


def row_of(row: Any, where: str) -> Any:  # noqa: ANN401 - of any package
    """Return a row with mappings instead of objects, so far as their fields are known.

    Of an object, null fields, vectors and values other than data, such as a client, are left
    out. The fields of a mapping all stay, as JSON where it has such values: NaN becomes null.

    Raises:
        BadRow: an object cannot be converted, or the row has too many parts.
    """
    parts = _Parts(where)
    if not isinstance(row, Mapping) and _is_series(row):
        row = row.to_dict()
    is_plain = not isinstance(row, Mapping | Iterable) and not _is_record(row)
    read = parts.of_object if is_plain and own_fields(row) else parts.plain
    found = read(row, _DEEPEST)
    if found is row or not isinstance(found, dict) or isinstance(row, Mapping):
        return found
    if "source_nodes" in found and "query" not in found:
        raise BadRow(
            f"{where}: a response of LlamaIndex does not hold its question; pass "
            "{'query': question, 'response': response}",
            lacks=["question"],
        )
    return {name: value for name, value in found.items() if value is not None}


class _Parts:
    """Replaces the objects in a row, up to a limit on their number."""

    def __init__(self, where: str) -> None:
        self._where, self._count = where, 0

    def plain(self, value: Any, levels: int, *, inside: bool = False) -> Any:  # noqa: ANN401 - of any package
        """Return a value with mappings instead of objects; the same one if it holds none.

        Args:
            value: the value.
            levels: how deep it may be.
            inside: True for a part of an object, which becomes JSON or ``None``.
        """
        if value is None or isinstance(value, str | bool | int):
            return value
        self._count += 1
        if self._count > _MOST_PARTS:
            raise BadRow(
                f"{self._where}: more than {_MOST_PARTS} lists and objects in a row; pass its "
                "question, documents and response as a mapping",
                reason="too_long",
            )
        if not levels:
            return None if inside else value
        if isinstance(value, Mapping):
            parts = {k: self.plain(v, levels - 1, inside=inside) for k, v in value.items()}
            return value if not inside and all(map(is_, parts.values(), value.values())) else parts
        if not isinstance(value, list) and _is_record(value):
            return self.of_object(value, levels)
        if isinstance(value, list | tuple):
            items = [self.plain(item, levels - 1, inside=inside) for item in value]
            return value if not inside and all(map(is_, items, value)) else items
        return _json_or_none(value) if inside else plain(value)

    def of_object(self, value: Any, levels: int) -> dict[str, Any]:  # noqa: ANN401 - of any package
        """Return the fields of an object."""
        fields = self._fields(value).items()
        return {name: self.plain(part, levels - 1, inside=True) for name, part in fields}

    def _fields(self, value: Any) -> dict[str, Any]:  # noqa: ANN401 - of any package
        dump = getattr(value, "model_dump", None)
        try:
            if callable(dump):
                found = dict(dump())
            else:
                names = _declared(value) or own_fields(value)
                found = {name: getattr(value, name, None) for name in names if name[0] != "_"}
        except Exception as error:  # of the other package
            raise BadRow(
                f"{self._where}: the fields of a {type(value).__name__} cannot be read: "
                f"{type(error).__name__}: {error!s:.300}; pass the row as a mapping"
            ) from error
        return {str(name): part for name, part in found.items() if name not in _VECTORS}


def _declared(value: Any) -> Sequence[str]:  # noqa: ANN401 - of any package
    """Return the names of the fields of a dataclass, a named tuple or a class of attrs."""
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value)]
    if hasattr(value, "__attrs_attrs__"):
        return [field.name for field in value.__attrs_attrs__]
    return getattr(value, "_fields", ()) if isinstance(value, tuple) else ()


def _json_or_none(value: object) -> object:
    """Return a value as JSON, an object with a text as this text, and others as null."""
    document = read_document(value) if own_fields(value) else None
    found = document.text if document else plain(value)
    try:
        canonical_json(found)
    except (TypeError, ValueError, RecursionError):
        return None
    return found


def rows_within(name: str, value: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return the rows in an object, and the path to their list, if that is not obvious.

    Args:
        name: the file that holds the object; empty for an object of Python.
        value: the object.

    Raises:
        UsageError: several lists hold rows.
    """
    if value.keys() >= _EVALUATIONS and all(_are_objects(value[one]) for one in _EVALUATIONS):
        return "", _joined(**{one: value[one] for one in _EVALUATIONS})
    if rows := _rows_by_id(value):
        return "", rows
    data = value.get("data")
    is_trace = isinstance(data, Mapping) and "spans" in data  # of MLflow: its id is next to them
    meant = {(meaning_of(str(column)) or ("",))[0] for column, part in value.items() if part}
    # Answers in an object with a question and documents are those to this question.
    is_row = is_trace or meant >= {"question", "documents"}
    if is_row or (has_fields(value) and not _holds_rows(value)):
        return "", rows_of_columns(value) or list[Any]([value])
    return _list_of_rows(name, value)


def _list_of_rows(name: str, value: Mapping[str, Any]) -> tuple[str, list[Any]]:
    lists = dict(_lists(value, ""))
    fitting = [path for path, rows in lists.items() if has_fields(rows[0])]
    if len(fitting) > 1:
        remedy = (
            f"write one of them to a file of its own, such as jq .{fitting[0]} {name} > rows.json"
            if name
            else "pass one of them"
        )
        raise UsageError(
            f"{name or 'the mapping'} has several lists of rows: {', '.join(fitting)}; {remedy}"
        )
    if fitting:
        return fitting[0] if len(value) > 1 or "." in fitting[0] else "", lists[fitting[0]]
    if table := rows_of_columns(value):
        return "", table
    if len(lists) == 1 and not any(isinstance(part, str) for part in value.values()):
        return next(iter(lists.items()))
    if len(empty := [one for one, part in value.items() if part == []]) == 1 and not lists:
        return empty[0], []
    return "", [value]


def _lists(value: Mapping[str, Any], prefix: str, levels: int = _LEVELS) -> Iterator[Any]:
    """Yield the lists of objects, rows by id and tables in an object, each with its path."""
    for name, part in value.items():
        if _are_objects(part):
            yield f"{prefix}{name}", part
        elif isinstance(part, Mapping) and (rows := _rows_of(part)):
            yield f"{prefix}{name}", rows
        elif isinstance(part, Mapping) and levels > 1:
            yield from _lists(part, f"{prefix}{name}.", levels - 1)


def _rows_by_id(value: Mapping[str, Any], levels: int = _LEVELS) -> list[dict[str, Any]]:
    """Return the rows in an object whose fields are rows, several if other values are there."""
    rows = {name: row for name, row in value.items() if isinstance(row, dict)}
    others = value.keys() - rows.keys()
    if not rows or (others and (len(rows) == 1 or any(map(meaning_of, map(str, others))))):
        return []
    if not all(map(has_fields, rows.values())) or _holds_rows(value, levels):
        return []
    return [{"id": name, **row} for name, row in rows.items()]


def _holds_rows(value: Mapping[str, Any], levels: int = _LEVELS) -> bool:
    """Return True if an object holds, so many levels deep, another with rows by id or column."""
    inner = [part for part in value.values() if isinstance(part, Mapping)] if levels else []
    return any(_rows_of(one, levels - 1) or _holds_rows(one, levels - 1) for one in inner)


def _rows_of(value: Mapping[str, Any], levels: int = _LEVELS) -> list[dict[str, Any]]:
    """Return the rows in an object that is several rows by id, or a table by columns."""
    table = rows_of_columns(value) or []
    named = _rows_by_id(value, levels) if len(value) > 1 else []
    return named or (table if table and has_fields(table[0]) else [])


def _are_objects(part: object) -> bool:
    return isinstance(part, list) and bool(part) and all(isinstance(one, dict) for one in part)


def _joined(
    tasks: list[dict[str, Any]],
    evaluations: list[dict[str, Any]],
    documents: list[dict[str, Any]],
) -> list[dict[str, Any]]:
    """Return the rows of an evaluation file, such as MTRAG's: each answer with its task."""
    texts, known = _by_id(documents, "document_id"), _by_id(tasks, "task_id")
    rows = []
    for evaluation in evaluations:
        row = {**known.get(str(evaluation.get("task_id")), {}), **evaluation}
        conversation, mark, turn = str(row.get("task_id")).partition("<::>")
        named = {"conversation_id": conversation, "turn": turn} if mark else {}
        given = row.get("contexts")
        contexts = [
            {**texts.get(str(one.get("document_id")), {}), **one} if isinstance(one, dict) else one
            for one in (given if isinstance(given, list) else ())
        ]
        rows.append({**row, **named, "contexts": contexts})
    return rows


def _by_id(objects: list[dict[str, Any]], name: str) -> dict[str, dict[str, Any]]:
    return {str(one[name]): one for one in objects if one.get(name) is not None}


def rows_of_columns(table: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the rows of a table in one object; ``None`` if it is none.

    Known forms: ``{"question": [...], "documents": [...]}``, and what pandas writes for a data
    frame: ``{"question": {"0": ...}}``, ``{"0": {"question": ...}}`` and
    ``{"columns": [...], "data": [[...]]}``.
    """
    names, data = table.get("columns"), table.get("data")
    has_text = any(isinstance(part, str) for part in table.values())  # as a row has
    if isinstance(names, list) and isinstance(data, list) and not has_text:
        named = list(dict.fromkeys(map(str, names)))
        whole = all(isinstance(row, list) and len(row) == len(named) for row in data)
        return [dict(zip(named, row, strict=True)) for row in data] if whole else None
    are_rows = all(isinstance(row, dict) for row in table.values())
    if table and are_rows and all(str(key).isdecimal() for key in table):
        return list(table.values())
    columns = {str(name): _column(value) for name, value in table.items()}
    keys = {tuple(column) for column in columns.values()}
    found = ([one for one in column.values() if one is not None] for column in columns.values())
    has_texts = any(part and all(isinstance(one, str) for one in part) for part in found)
    if len(keys) != 1 or not has_texts:
        return None
    (positions,) = keys
    are_counted = all(str(key).isdecimal() for key in positions)
    rows = [{name: column[key] for name, column in columns.items()} for key in positions]
    return rows if are_counted or all(map(has_fields, rows)) else None


def _column(value: object) -> dict[Any, Any]:
    """Return the entries of a column by position or label; none if the value is not a column.

    An object whose field has the name of a text, such as a message, is a value.
    """
    if isinstance(value, list):
        return dict(enumerate(value))
    if not isinstance(value, Mapping):
        return {}
    are_positions = all(str(key).isdecimal() for key in value)
    are_labels = len(value) > 1 and read_document(dict.fromkeys(value, "text")) is None
    return dict(value) if are_positions or are_labels else {}


_ROWS = 1024
"""Rows of a data frame that are converted to Python objects at once."""


def _table(given: Any) -> Source | None:  # noqa: ANN401 - of any package
    """Return the rows of a table; ``None`` if the object is not a known kind of table."""
    library = type(given).__module__.partition(".")[0]
    read: Callable[[], Iterable[Any]]
    if library == "datasets" and isinstance(given, Mapping):
        if len(given) != 1:
            shown = f"{', '.join(given):.200}"
            raise UsageError(f"these are several splits ({shown}): pass one, such as data[SPLIT]")
        return _table(next(iter(given.values())))
    if library == "polars" and hasattr(given, "collect"):
        given = given.collect()
    if library == "polars" and hasattr(given, "iter_rows"):
        read = partial(given.iter_rows, named=True)
    elif library == "pandas" and hasattr(given, "columns"):
        check_names("the frame", list(map(str, given.columns)))
        read = partial(_pandas_rows, given)
    elif library == "datasets":
        unformatted = getattr(given, "with_format", None)  # rows may be set to be tables
        read = (unformatted(None) if unformatted else given).__iter__
    elif hasattr(given, "__arrow_c_stream__"):
        require_pyarrow("an Arrow table")
        from labeler.data.formats.arrow_files import table_source  # noqa: PLC0415 - loads pyarrow

        return table_source(given)
    else:
        return None
    total = len(given) if isinstance(given, Sized) else None
    return python_source(
        lambda: (plain_row(row) if isinstance(row, Mapping) else row for row in read()), total
    )


def _pandas_rows(frame: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - pandas may be missing
    """Yield the rows of a frame; levels of the index with names are columns."""
    levels = [name for name in frame.index.names if name is not None and name not in frame.columns]
    for start in range(0, len(frame), _ROWS):
        part = frame.iloc[start : start + _ROWS]
        yield from (part.reset_index(levels) if levels else part).to_dict("records")


def own_ids(source: Any, names: Sequence[str | None]) -> list[Any] | None:  # noqa: ANN401 - of any package
    """Return the ids of rows in the type that they came in.

    Args:
        source: the rows, as they were given.
        names: the id of each label as text; ``None`` for a failed row.

    Returns:
        The column whose values are those texts; ``None`` if the rows are not a table or a list of
        mappings, or no column fits.
    """
    with suppress(Exception):  # of the other package, and the labels are paid for
        for values in _columns_in(source):
            pairs = list(zip(values, names, strict=False))
            if len(values) == len(names) and all(own is None or str(v) == own for v, own in pairs):
                return values if any(names) else None
    return None


def _columns_in(source: Any) -> Iterator[list[Any]]:  # noqa: ANN401 - of any package
    """Yield the values of each column of a table or a list of mappings, the ids first."""
    if hasattr(source, "collect_schema") and hasattr(source, "collect"):
        source = source.collect()  # a lazy frame of polars
    columns = getattr(source, "column_names", None)
    columns = getattr(source, "columns", ()) if columns is None else columns
    tables: dict[Any, Any] = {}
    if isinstance(source, list) and source and all(isinstance(row, Mapping) for row in source):
        tables = {name: [row.get(name) for row in source] for name in source[0]}
    elif isinstance(columns, Iterable) and not isinstance(source, str | bytes):
        tables = {name: source[name] for name in columns if isinstance(name, str)}
    for name in sorted(tables, key=lambda name: name != "id"):
        listed = getattr(tables[name], "to_pylist", getattr(tables[name], "tolist", None))
        yield listed() if listed else list(tables[name])
