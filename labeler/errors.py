"""The exception tree. A message names the fault, its place, the value, and the remedy.

LabelerError
├── UsageError            wrong call: unknown name, bad option, contradictory input (exit code 2)
│   ├── UnknownName       a catalog has no such entry; lists the nearest names
│   │   └── UnknownOption a function has no such keyword
│   ├── ExtensionError    an installed package cannot load what it declares
│   ├── BadRow            an input row or line that is not an example
│   └── BadRows           every row lacks the same field: nothing was sent or written
├── JudgeError            the judge gave no usable answer; carries a reason code
│   ├── UnusableAnswer    the same, with usage and violations (labeler.judges.judge)
│   └── FatalJudgeError   no record can succeed: stop the run (bad key, no such model)
│       └── RunPaused     the provider asks for a longer wait than the run allows
├── UndefinedRatio        an undefined ratio was used as a number; the message names the reason
└── StoreError            a label store cannot be read or written, or was tampered with
    └── UnstorableRecord  a record or failure that no store can hold; the others are saved
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from math import inf, isfinite, nan
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsFloat, SupportsIndex

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails


class LabelerError(Exception):
    """Base class of all errors that this package raises on purpose.

    Example:
        >>> try:
        ...     labeler.load("missing.jsonl")
        ... except labeler.LabelerError as error:
        ...     print(type(error).__name__)
        UsageError
    """

    def __reduce__(self) -> tuple[Any, ...]:
        # Pools of processes pickle errors, and would call a class without its keywords.
        return Exception.__new__, (type(self), *self.args), vars(self)


_OPTIONS = re.compile(
    r"(?P<command>\blabeler [a-z][^'`;:()\n]*|\bpip [^`;\n]*)"
    r"|(?P<maps>--map (?:'[^']*'|[^\s';()]+=[^\s';()]+)"
    r"(?: --map (?:'[^']*'|[^\s;()]+))*)"
    r"|(?<![\w-])--(?P<name>[a-z][a-z\d-]*)"
    r"(?:=(?P<plain>'[^']*'|[^\s,;()]+(?:,\d[^\s,;()]*)*)"
    r"| (?P<value>'[^']*'|[^\s,;()']*[A-Z:=@_][^\s;()']*\b))?"
)
_KEYWORDS = {"map": "columns", "id": "id_from", "no-wait": "longest_wait"}
"""Keywords of Python that are not their option's name."""
_LISTS = frozenset({"allow_http", "header", "query"})
"""Keywords whose value is a list of what the command line repeats."""
_spoken = ["Python"]
"""The present caller's language, last."""


@contextmanager
def on_command_line() -> Iterator[None]:
    """Let messages name options as the command line has them, not as keywords of Python."""
    _spoken.append("shell")
    try:
        yield
    finally:
        _spoken.pop()


def for_caller(text: str) -> str:
    """Return a message, written with options, as its reader calls: in Python with keywords.

    Commands in the message, such as ``labeler label ROWS --judge embedded``, keep their options.
    """
    return text if _spoken[-1] == "shell" or "--" not in text else _OPTIONS.sub(_keyword, text)


def _keyword(found: re.Match[str]) -> str:
    """Return the keyword of Python for an option of the command line."""
    if found["command"]:
        return found[0]
    if found["maps"]:
        pairs = (word.partition("=") for word in shlex.split(found["maps"]) if "=" in word)
        return f"columns={ {field: column for field, _, column in pairs} }"
    name = _KEYWORDS.get(found["name"]) or found["name"].replace("-", "_")
    value = (found["plain"] or found["value"] or "").strip("'")
    if not value:
        return name
    is_plain = (value.isupper() and value.isidentifier()) or value.replace(".", "").isdecimal()
    return f"{name}={[value] if name in _LISTS else value if is_plain else repr(value)}"


class UsageError(LabelerError):
    """The call is invalid; changing it helps, repeating it does not."""

    def __str__(self) -> str:
        return for_caller(super().__str__())


class UnknownName(UsageError):
    """A name that a catalog does not have."""


class UnknownOption(UnknownName, TypeError):
    """A keyword that a function does not have."""


class ExtensionError(UsageError):
    """An object that an installed package declares and cannot load."""


class BadRow(UsageError):
    """An input row that cannot be converted to an example.

    Attributes:
        reason: machine-readable code, such as ``missing_field``; by default ``wrong_type``.
        lacks: the fields that the row does not have.
    """

    def __init__(
        self, message: str, *, reason: str = "wrong_type", lacks: Iterable[str] = ()
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.lacks = frozenset(lacks)


class BadRows(UsageError):
    """Every row lacks the same field, so a column has another name; nothing was sent or written.

    Example:
        >>> try:
        ...     labeler.label([{"question": "Why?", "response": "So."}], judge="embedded")
        ... except labeler.errors.BadRows as error:
        ...     print("documents" in str(error))
        True
    """


class UndefinedRatio(LabelerError, ArithmeticError):
    """An undefined ratio was used as a number.

    Attributes:
        reason: reason code, such as ``no_relevant_sentences``.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"this ratio is undefined ({reason}), which is not 0: test .value is None, or leave "
            "undefined ratios out, before calculating"
        )
        self.reason = reason


class JudgeError(LabelerError):
    """The judge gave no usable answer for one record.

    Attributes:
        reason: machine-readable code of the record's failure.
        attempts: number of requests sent for the record.
    """

    def __init__(self, message: str, *, reason: str, attempts: int = 1) -> None:
        super().__init__(message)
        self.reason = reason
        self.attempts = attempts


class FatalJudgeError(JudgeError):
    """The judge cannot answer any record (bad key, unknown model), so the run must stop."""

    def __str__(self) -> str:
        return for_caller(super().__str__())


class RunPaused(FatalJudgeError):
    """The provider asks for a longer wait than the run allows; a later run continues."""


class StoreError(LabelerError):
    """A label store cannot be opened, read or written, or its bytes were changed."""


class UnstorableRecord(StoreError):
    """A single faulty record or failure: too large, not JSON, or invalid."""


def number_in(name: str, value: object, low: float = -inf, high: float = inf) -> float:
    """Return a finite number that a caller gave; a text or a boolean is not one.

    Args:
        name: its name, for the error.
        value: the number.
        low: the least value allowed.
        high: the greatest one.

    Raises:
        UsageError: it is not a number, or not in the range.
    """
    is_number = isinstance(value, SupportsFloat) and not isinstance(value, bool | str)
    try:
        number = float(value) if is_number else nan  # type: ignore[arg-type] # checked in the line above
    except (OverflowError, TypeError, ValueError):  # hundreds of digits, or an array
        number = nan
    if not (isfinite(number) and low <= number <= high):
        limits = (
            f" from {low:g} to {high:g}" if high < inf else "" if low == -inf else f" ≥ {low:g}"
        )
        raise UsageError(f"{name} must be a number{limits}, got {_brief(value)}")
    return number


def path_in(name: str, value: object) -> Path:
    """Return a path that a caller gave.

    Raises:
        UsageError: it is neither a text nor a path, empty, or no file can have this name.
    """
    if isinstance(value, str | Path) and (text := str(value)) and "\0" not in text:
        with suppress(UnicodeEncodeError):
            os.fsencode(text)
            return Path(value)
    raise UsageError(f"{name} must be the path of a file, a text or a Path, got {value!r:.40}")


def count_of(name: str, value: object, least: float = 0) -> int:
    """Return a whole number that a caller gave.

    Raises:
        UsageError: it is not a whole number, or smaller than ``least``.
    """
    is_whole = isinstance(value, SupportsIndex) and not isinstance(value, bool)
    with suppress(TypeError):  # an array of numbers has the method, and raises
        if is_whole and least <= index(value) < _TOO_LARGE:  # type: ignore[arg-type] # checked
            return index(value)  # type: ignore[arg-type] # as above
    limit = f", {least:g} or more" * (least > -inf)
    raise UsageError(f"{name} must be a whole number{limit}, got {_brief(value)}")


_TOO_LARGE = 2**63
"""The least whole number that no store, file or server takes."""


def _brief(value: object) -> str:
    if isinstance(value, int) and abs(value) >= _TOO_LARGE:  # Python may refuse to print it
        return f"a number of {value.bit_length()} bits"
    return f"{value!r:.40}"


_KINDS = {
    str: "a text",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


def kind_of(value: object) -> str:
    """Return the JSON type of a value, or its Python type: ``a text``, ``null``, ``bytes``."""
    return _KINDS.get(type(value), type(value).__name__)


def validation_faults(error: ValidationError) -> list[ErrorDetails]:
    """Return what pydantic found, without the invalid values, which may be secret or long."""
    return error.errors(include_url=False, include_context=False, include_input=False)


def plain_fault(message: str) -> str:
    """Return a message of pydantic without its name for a fault that a check of ours found."""
    return message.removeprefix("Value error, ")


def describe_faults(error: ValidationError, *, most: int = 1, whole: str = "") -> str:
    """Return the first faults of a validation, each with its place.

    Args:
        error: raised by pydantic.
        most: faults to describe.
        whole: the place of a fault of the whole value.
    """
    return "; ".join(
        ": ".join(
            filter(None, (".".join(map(str, fault["loc"])) or whole, plain_fault(fault["msg"])))
        )
        for fault in validation_faults(error)[:most]
    )
