"""File formats of input rows: one module per format, registered in ``READERS``.

A package adds a format by an entry point of ``labeler.rows``: its name is the suffix of the files,
its object a function that yields :class:`Raw` rows. Readers do not interpret columns:
:mod:`labeler.data.rows` does, in the same way for all formats.
"""

from __future__ import annotations

import codecs
import contextlib
import importlib.util
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from labeler.catalog import Catalog
from labeler.data.lines import (
    BOM,
    LINES,
    Line,
    count_lines,
    file_errors,
    is_remote,
    open_bytes,
    parse_object,
    read_lines,
)
from labeler.errors import BadRow, LabelerError, UsageError, path_in
from labeler.sentences.words import read_table
from labeler.version import install_command

_NEED_PYARROW = frozenset({"parquet", "arrow"})
_MOST_COLUMNS = 10_000
"""Largest number of columns of a table."""


class Raw(NamedTuple):
    """One row as its format stores it, with columns not yet interpreted."""

    where: str
    """``FILE:LINE`` in line formats, ``FILE:row N`` in others, both counted from 1."""
    fields: Mapping[str, Any] | BadRow
    """The value of each column, or the error if the row is unreadable."""
    text_only: bool = False
    """True if the format has only text cells, as CSV does: an empty one is not a value."""
    notice: str = ""
    """A message for people about the source."""


class Source(NamedTuple):
    """Rows of one origin."""

    read: Callable[[], Iterable[Raw]]
    """Reads the rows, as often as it is called."""
    total: Callable[[], int | None] = lambda: None
    """Returns their number where it can be counted exactly without reading them."""


Reader = Callable[[str], Iterator[Raw]]
"""Reads the rows of a file.

Raises:
    UsageError: the file as a whole cannot be read.
"""


def read_json_lines(name: str) -> Iterator[Raw]:
    """Read JSON Lines, gzipped or not."""
    return json_rows(read_lines(name))


def json_rows(lines: Iterable[Line], form: str = LINES) -> Iterator[Raw]:
    """Parse each line as a JSON object; errors name the expected form."""
    for line in lines:
        try:
            yield Raw(line.where, parse_object(line, form))
        except BadRow as error:
            yield Raw(line.where, error)


_TABLE = read_table(__file__, "formats")
READERS: Catalog[Reader] = Catalog("format", group="rows", of=Callable)
READERS.add("jsonl", read_json_lines)
for _format, _reader in _TABLE["readers"].items():
    READERS.add(_format, f"labeler.data.formats{_reader}")

_SUFFIXES = {name: frozenset(listed.split()) for name, listed in _TABLE["suffixes"].items()}
_SPREADSHEETS = _SUFFIXES.pop("spreadsheet")
_BY_SUFFIX = {suffix: name for name, listed in _SUFFIXES.items() for suffix in listed}
_TEXT_FORMATS = frozenset({"jsonl", "json", "csv"})
_BINARY = {magic.encode("latin-1"): kind for magic, kind in _TABLE["magic"].items()}
"""Kinds of files that hold no rows, by their first bytes."""
_ARRAY = re.compile(rb"\s*\[\s*(?:\{|\Z)")
"""The beginning of an array of objects."""
_LONGEST_MAGIC = max(map(len, _BINARY))
_STATE, _SPLITS = "state.json", "dataset_dict.json"
"""Files of a folder that the Hugging Face library saved: of a data set, and of several splits."""
_HUB = "hf:"
"""Prefix of the name of a data set on the Hugging Face hub."""
_HUB_FORM = "hf:OWNER/NAME, hf:OWNER/NAME/CONFIG or hf:OWNER/NAME/CONFIG:SPLIT"
_HUB_NAME = re.compile(r"hf:([\w.-]+/[\w.-]+)(?:/([\w.-]+))?(?::([\w.-]+))?")


def format_of(name: str) -> str:
    """Return the format of a file by its name; of a folder, the format of a saved data set."""
    if name.startswith(_HUB):
        return "hub"
    if not is_remote(name) and Path(name).is_dir():
        return "dataset"
    suffix = _suffix(name)
    known = _BY_SUFFIX.get(suffix)
    return known or (suffix[1:] if suffix[1:] in READERS.declared() else "jsonl")


def row_files(name: str) -> list[str]:
    """Return the files of rows in a folder, by name; any other source stands for itself.

    Files are known by their suffixes; hidden files, other files and folders are left out. A folder
    without such files, or with a saved data set, stands for itself.
    """
    folder = path_in("rows", name)
    with file_errors(name):  # a text that is too long for a name
        is_folder = folder.is_dir()
    if name.startswith(_HUB) or is_remote(name) or not is_folder:
        return [name]
    if any((folder / saved).is_file() for saved in (_STATE, _SPLITS)):
        return [name]
    suffixes = {*_BY_SUFFIX, *_SPREADSHEETS}
    hidden = (".", "~$")  # Excel's lock files begin with the latter
    found = [one for one in folder.iterdir() if one.is_file() and not one.name.startswith(hidden)]
    return [str(path) for path in sorted(found) if _suffix(path.name) in suffixes] or [name]


def _suffix(name: str) -> str:
    return Path(name.lower().removesuffix(".gz")).suffix


def is_rereadable(name: str) -> bool:
    """Return True if a source can be read twice, unlike a pipe."""
    return name.startswith(_HUB) or is_remote(name) or Path(name).is_file() or Path(name).is_dir()


def check_file(name: str, start: bytes = b"") -> None:
    """Reject a file that holds no rows by its name or its first bytes, such as a spreadsheet.

    Args:
        name: the file.
        start: the first bytes of a source that cannot be read twice.

    Raises:
        UsageError: it is a spreadsheet, another binary file, or UTF-16.
    """
    if name.startswith(_HUB):
        return
    suffix = _suffix(name)
    if format_of(name) in _TEXT_FORMATS and Path(name).is_file():
        with file_errors(name), open_bytes(name) as file:
            start = file.read(_LONGEST_MAGIC)
    kind = "a spreadsheet" if suffix in _SPREADSHEETS else ""
    kind = next((one for magic, one in _BINARY.items() if start.startswith(magic)), kind)
    if kind in {"a spreadsheet", "a ZIP archive"} and suffix in _SPREADSHEETS | {".csv", ".tsv"}:
        raise UsageError(
            f"{name} is a spreadsheet, which is not read: save its sheet as CSV (Excel: Save As, "
            "CSV UTF-8) and pass that file"
        )
    if format_of(name) == "jsonl" and _ARRAY.match(start.removeprefix(BOM)):
        raise UsageError(
            f"{name} holds an array, not one object a line: name it .json, or write its objects "
            "line by line (jq -c '.[]')"
        )
    if kind or b"\0" in start:
        kind = kind or _BINARY[codecs.BOM_UTF16]
        raise UsageError(f"{name} is {kind}: write the rows as JSON Lines, CSV (UTF-8) or Parquet")


def read_file(name: str) -> Iterator[Raw]:
    """Read the rows of a file, of a folder that holds a data set, or of a data set on the hub.

    A source that can be read only once, such as a pipe, is JSON Lines.

    Raises:
        UsageError: the source cannot be read. A fault of a single row is yielded with that row.
    """
    if not is_rereadable(name):
        return read_json_lines(name)
    check_file(name)
    known = format_of(name)
    if known in _NEED_PYARROW:
        require_pyarrow(name)
    reader = READERS[known]
    return _checked(reader, name, known) if known in READERS.declared() else reader(name)


def _checked(reader: Reader, name: str, known: str) -> Iterator[Raw]:
    """Yield what a third party's reader gives.

    Raises:
        UsageError: it fails, or gives something else than :class:`Raw` rows.
    """
    of = f"{name}: format {known!r}"
    try:
        for row in reader(name):
            yield _required(row, of)
    except LabelerError:
        raise
    except Exception as error:
        raise UsageError(f"{of} failed: {type(error).__name__}: {error}") from error


def _required(row: object, of: str) -> Raw:
    if not isinstance(row, Raw):
        kind = type(row).__name__
        raise UsageError(f"{of} gave {kind} as a row: a reader yields Raw(place, columns)")
    return row


def count_rows(name: str) -> int | None:
    """Return the number of rows of a source; ``None`` if it is unknown before they are read."""
    known = format_of(name)
    if is_remote(name) or not Path(name).is_file() or name.lower().endswith(".gz"):
        return None
    if known == "jsonl":
        return count_lines(name)
    if known == "parquet":
        from pyarrow import ArrowException, parquet  # noqa: PLC0415 - optional dependency

        with contextlib.suppress(OSError, ArrowException):
            return int(parquet.read_metadata(name).num_rows)
    return None


def require_pyarrow(what: str) -> None:
    """Require the optional package that reads and writes Parquet and Arrow.

    Args:
        what: file or function that needs it.

    Raises:
        UsageError: it is not installed.
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise UsageError(
            f"{what} needs pyarrow, which is not installed: {install_command('parquet')}"
        )


def check_names(where: str, names: Sequence[str]) -> None:
    """Reject a table with too many columns, or with two of one name.

    Raises:
        UsageError: the message names the table or the place of its first line.
    """
    if len(names) > _MOST_COLUMNS:
        raise UsageError(f"{where}: {len(names)} columns; at most {_MOST_COLUMNS} are read")
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        raise UsageError(f"{where}: column {repeated!r:.40} stands twice; give each its own name")


def plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table row as JSON values, without its nulls.

    A table has every column in every row, so a null means that the row lacks the column. Levels of
    a column's name in pandas become a path.
    """
    values = {
        ".".join(map(str, name)) if isinstance(name, tuple) else str(name): plain(value)
        for name, value in row.items()
    }
    return {name: value for name, value in values.items() if value is not None}


def plain(value: object) -> object:
    """Return a value as JSON: NaN and Infinity as null, times in ISO 8601, durations in seconds.

    Arrays become lists. A value that JSON cannot hold, such as bytes, is returned unchanged; the
    row's checks reject it.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # of an Enum its value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return _plain_scalar(value)


def _plain_scalar(value: Any) -> object:  # noqa: ANN401 - of any package
    if type(value).__name__ in {"NAType", "NaTType"}:  # of pandas, besides NaN
        return None
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal | UUID):
        return str(value)
    library = type(value).__module__.partition(".")[0]
    if library in {"pandas", "polars"} and hasattr(value, "columns"):
        how = {"orient": "list"} if library == "pandas" else {"as_series": False}
        return plain(value.to_dict(**how))
    own = {"polars": "to_list", "pyarrow": "to_pylist"}.get(library, "tolist")  # as in numpy
    to_list = getattr(value, own, None)
    return plain(to_list()) if callable(to_list) else value


def file_sources(paths: Iterable[str | Path]) -> Iterator[Source]:
    """Yield the sources of files, in order.

    A source that can be read only once, such as standard input or a pipe, is JSON Lines and kept
    in memory. The format of other files follows from their names, see :mod:`labeler.data.formats`.

    Args:
        paths: files; or folders that hold a saved data set, or names such as
            ``hf:owner/name:split`` and ``s3://bucket/rows.csv``.

    Raises:
        UsageError: a source that can be read only once holds no rows.
    """
    for name in (name for path in paths for name in row_files(str(path))):
        if is_rereadable(name):
            yield Source(partial(read_file, name), partial(count_rows, name))
        else:
            lines = list(read_lines(name))
            check_file(name, lines[0].content if lines else b"")
            yield Source(partial(json_rows, lines), lines.__len__)


def read_saved(name: str) -> Iterator[Raw]:
    """Read the rows of a folder written by ``save_to_disk``, without the Hugging Face library.

    Raises:
        UsageError: the folder holds no saved data set, or one with several splits.
    """
    folder = Path(name)
    if (folder / _SPLITS).is_file():
        splits = _listed(folder / _SPLITS, "splits")
        shown = " or ".join(str(folder / one) for one in splits if isinstance(one, str))
        shown = shown or "one of its folders"
        raise UsageError(f"{folder} holds several splits: name one, {shown:.200}")
    if not (folder / _STATE).is_file():
        raise UsageError(
            f"{folder} is a folder without rows, such as {folder / 'rows.jsonl'}, and without "
            f"{_STATE}, which save_to_disk of the Hugging Face library writes"
        )
    entries = _listed(folder / _STATE, "_data_files")
    files = [entry.get("filename") for entry in entries if isinstance(entry, dict)]
    for file in files:
        if not isinstance(file, str) or Path(file).name != file or file in {"", ".", ".."}:
            raise UsageError(f"{folder / _STATE} names {file!r:.80}, which is not next to it")
    require_pyarrow(name)
    from labeler.data.formats.arrow_files import read_arrow  # noqa: PLC0415 - loads pyarrow

    return read_arrow(name, [str(folder / str(file)) for file in files])


def _listed(path: Path, name: str) -> list[Any]:
    """Return a list in an object of JSON by its name; empty without one."""
    with file_errors(str(path)):
        content = path.read_bytes()
    found = parse_object(Line(str(path), content), "save the data set again").get(name)
    return found if isinstance(found, list) else []


def read_hub(name: str) -> Iterator[Raw]:
    """Read the rows of a data set on the hub, with the Hugging Face library and its cache.

    Raises:
        UsageError: the library is not installed, or the data set or split does not exist.
    """
    address = _HUB_NAME.fullmatch(name)
    if not address:
        raise UsageError(f"{name!r:.120} names no data set of the hub: write {_HUB_FORM}")
    try:
        import datasets  # noqa: PLC0415 - slow to load, rarely needed
    except ImportError as error:
        raise UsageError(
            f"{name} needs the package datasets, which is not installed: {install_command('hub')}; "
            f"or save the data set elsewhere and name its folder without {_HUB}"
        ) from error
    repository, config, split = address.groups()
    try:
        found = datasets.load_dataset(repository, config, split=split)
    except Exception as error:  # the library forwards exceptions of many others
        raise UsageError(
            f"cannot load {name}: {type(error).__name__}: {str(error)[:300]}; write {_HUB_FORM}"
        ) from error
    if split is None and isinstance(found, dict):
        if len(found) != 1:
            have = ", ".join(f"{name}:{one}" for one in found)
            raise UsageError(f"{name} has several splits: name one, as {have:.200}")
        found = next(iter(found.values()))
    for number, row in enumerate(found, start=1):
        yield Raw(f"{name}:row {number}", plain_row(row))
