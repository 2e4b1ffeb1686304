"""Catalogs: registries of named entries, with helpful errors for unknown names."""

from __future__ import annotations

import builtins
import functools
import inspect
import logging
import operator
import pkgutil
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast, get_origin

from labeler.errors import (
    LabelerError,
    UnknownName,
    UnknownOption,
    UsageError,
    count_of,
    number_in,
)
from labeler.extensions import load, offered
from labeler.version import outdated

T = TypeVar("T")
C = TypeVar("C")
F = TypeVar("F", bound=Callable[..., Any])

_LISTED, _LONGEST = 5, 80
"""Names that an error lists of very many, and characters of each."""
_MANY = 12
"""Names of options that an error lists at most."""
_CUTOFF = 0.6
"""Likeness from which a known name is suggested, from 0 to 1."""


class Catalog(Mapping[str, T], Generic[T]):
    """A mapping from names to entries of one kind.

    An entry is an object, or text such as ``package.module:Name`` that is imported on first use to
    keep start-up fast. A look-up accepts such text too, and names that installed packages declare.
    Iteration has the registered entries: what a package declares is one after its first use.

    Args:
        kind: name of an entry in errors, such as ``metric``.
        group: group of entry points that may add entries, as in docs/extend.md; "" for none.
        of: type of these entries.
        shown_by: command that shows the entries, which errors name in place of a long list.
        extra: further names that errors list.
    """

    def __init__(
        self,
        kind: str,
        *,
        group: str = "",
        of: Any = object,  # noqa: ANN401 - a type, or ``Callable``
        shown_by: str = "",
        extra: Sequence[str] = (),
    ) -> None:
        self.kind, self.group, self.shown_by, self.extra = kind, group, shown_by, extra
        self._of = of
        self._entries: dict[str, T | str] = {}

    def add(self, name: str, entry: T | str) -> None:
        """Register an object, or the text that names one, under a new name.

        Raises:
            UsageError: the name is taken.
        """
        if name in self._entries:
            raise UsageError(f"{self.kind} {name!r} is already registered")
        self._entries[name] = entry

    def __getitem__(self, name: str) -> T:
        if not isinstance(name, str):
            raise UsageError(f"a {self.kind} is named by a text, got {name!r:.40}")
        if name in self._entries:
            entry = self._entries[name]
            if isinstance(entry, str):
                entry = self._entries[name] = _resolve(entry, self.kind)
            return entry
        if name in self.declared():  # a decorator may register it under its name
            self._entries[name] = load(self.group, name, self._of, self._entries)
            return cast("T", self._entries[name])
        module, colon, _ = name.partition(":")
        if colon and module not in self:
            try:
                return cast("T", _resolve(name, self.kind))
            except UnknownName as error:
                raise UnknownName(f"{error}{near(name, self._entries)}") from error
        raise UnknownName(self.unknown(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self.declared()

    def names(self) -> list[str]:
        """Return all names, sorted: registered ones, and those that installed packages declare."""
        return sorted({*self._entries, *self.declared()})

    def every(self) -> list[T]:
        """Return all entries, also declared ones; a warning names those that cannot be loaded."""
        for name in self.declared():
            try:
                self[name]
            except UsageError as error:
                logging.getLogger("labeler").warning("%s", error)
        return list(self.values())

    def get(self, name: str, default: Any = None, /) -> Any:  # noqa: ANN401 - as in Mapping
        """Return an entry, or the default; the inherited one waits for a ``KeyError``."""
        return self[name] if name in self else default  # noqa: SIM401 - it would call itself

    def declared(self) -> Collection[str]:
        """Return the names that installed packages declare, loaded or not."""
        return offered(self.group) if self.group else ()

    def unknown(self, name: str, more: Iterable[str] = ()) -> str:
        """Return the message about an unknown name.

        Args:
            name: the unknown name.
            more: names to suggest besides the entries.
        """
        names = sorted({*self.names(), *self.extra, *more})
        again = outdated() if self.group else ""
        if not self.shown_by:
            return unknown(self.kind, name, names) + again
        asked = f"unknown {self.kind} {name[:_LONGEST]!r}{near(name, names) or ';'}"
        return f"{asked} '{self.shown_by}' shows them{again}"


def unknown(kind: str, name: str, names: Sequence[str], most: int | None = None) -> str:
    """Return the message about an unknown name, with near spellings of it.

    Args:
        kind: what the name is of, such as ``metric``.
        name: the unknown name.
        names: the known ones, in the order to list them.
        most: number of names to list; by default all.
    """
    if not isinstance(name, str):
        raise UsageError(f"a {kind} is named by a text, got {name!r:.40}")
    hint = near(name, names, cutoff=0.5 if most else _CUTOFF)
    more = f", … {len(names) - most:,} more" if most and len(names) > most else ""
    have = ", ".join(one[:_LONGEST].replace("\n", " ") for one in names[:most])
    return f"unknown {kind} {name[:_LONGEST]!r}{hint or ';'} have: {have or 'none'}{more}"


_WORD_START = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NO_WORD = re.compile(r"[^\w.]+")


@lru_cache(4096)
def snake_case(name: str) -> str:
    """Return a field's name in snake case: ``retrieval_context`` for ``retrievalContext``.

    Names that mean the same are then equal, whichever language or spreadsheet wrote them.
    """
    return _NO_WORD.sub("_", _WORD_START.sub("_", name.strip())).strip("_").lower()


def near(name: str, names: Iterable[str], cutoff: float = _CUTOFF) -> str:
    """Return ``; did you mean 'this' or 'that'?``, or "" if no known name is like an unknown one.

    Args:
        name: the unknown name.
        names: the known ones.
        cutoff: likeness from which a name is suggested, from 0 to 1.
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only needed for errors

    found = get_close_matches(name, list(names), n=3, cutoff=cutoff)
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""


def check_options(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise for a keyword that a function does not have.

    Raises:
        UnknownOption: the message has near spellings.
    """
    names = list(known)
    for name in given:
        if name not in names:
            raise UnknownOption(unknown(f"option of {function}()", name, names, _MANY))


def keywords_of(function: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters that a caller may name."""
    parameters = inspect.signature(function).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [one.name for one in parameters if one.kind in kinds and one.name != "self"]


def named_keywords(function: F) -> F:
    """Let a function raise for wrong arguments with what it takes.

    An unknown keyword is rejected with the names that it has. If the function fails because an
    argument is of another type than its annotation, the error names the argument.
    """
    names = dict.fromkeys(keywords_of(function))
    signature = inspect.signature(function)
    checks_itself = any(one.kind is one.VAR_KEYWORD for one in signature.parameters.values())

    @functools.wraps(function)
    def call(*args: object, **given: object) -> object:
        __tracebackhide__ = True  # pytest then shows the caller's line
        if not checks_itself and not given.keys() <= names.keys():
            check_options(function.__qualname__, given, names)
        try:
            return function(*args, **given)
        except (LabelerError, AssertionError):
            raise
        except Exception as error:
            if fault := _wrong_argument(function, signature, args, given):
                raise UsageError(fault) from error
            raise

    return cast("F", call)


def _wrong_argument(
    function: Callable[..., Any],
    signature: inspect.Signature,
    args: Iterable[object],
    given: Mapping[str, object],
) -> str:
    """Return a message about the first argument of a wrong type, or "" if there is none."""
    try:
        bound = signature.bind(*args, **given).arguments
    except TypeError:  # one is missing, which Python says itself
        return ""
    for name, value in bound.items():
        parameter = signature.parameters[name]
        if parameter.kind is parameter.VAR_KEYWORD or not isinstance(parameter.annotation, str):
            continue
        annotation = parameter.annotation
        while (plain := _PARAMETERS.sub("", annotation)) != annotation:
            annotation = plain
        allowed = [one.strip() for one in annotation.split("|")]
        if not any(_is_of(value, one, function.__globals__) for one in allowed):
            kinds = " or ".join(dict.fromkeys(_KINDS.get(one, one) for one in allowed))
            caller = function.__qualname__.removesuffix(".__init__")
            return f"{caller}(): {name} must be {kinds}, got {value!r:.40}"
    return ""


_KINDS = {
    "str": "a text",
    "Path": "a path",
    "int": "a whole number",
    "float": "a number",
    "bool": "True or False",
    "Iterable": "a list",
    "Sequence": "a list",
    "Mapping": "a mapping",
    "Callable": "a function",
}
_NUMBERS: dict[str, Callable[[str, Any], float]] = {"int": count_of, "float": number_in}
"""Checks of the numbers that annotations name."""
_PARAMETERS = re.compile(r"\[[^\[\]]*\]")
"""The innermost parameters of types in the text of an annotation."""


def _is_of(value: object, name: str, known: Mapping[str, object]) -> bool:
    """Return True if a value is, or may be, of a type that an annotation names.

    Args:
        value: the value.
        name: the type's name. One that is not a class, such as ``Any``, may stand for everything.
        known: the names of the annotation's module, without those for type checkers only.
    """
    if check := _NUMBERS.get(name):
        with suppress(UsageError):
            check(name, value)
            return True
        return False
    kind = type(None) if name == "None" else known.get(name, getattr(builtins, name, None))
    if kind is None:
        return is_named(value, name)
    if get_origin(kind) is Callable:
        return callable(value)
    if kind is Any or not isinstance(kind, type):
        return True
    is_text = name in {"Iterable", "Sequence"} and isinstance(value, str | bytes)
    return isinstance(value, kind) and not is_text


def is_named(value: object, name: str) -> bool:
    """Return True if the class of a value, or a base of it, has a name: it need not be imported."""
    return any(name == one.__name__ for one in type(value).__mro__)


def with_named_keywords(kind: type[C]) -> type[C]:
    """Let a class and its public methods do as :func:`named_keywords` says."""
    for name, method in list(vars(kind).items()):
        if inspect.isfunction(method) and (not name.startswith("_") or name == "__init__"):
            setattr(kind, name, named_keywords(method))
    return kind


def check_key(kind: str, key: Any) -> None:  # noqa: ANN401 - a caller's
    """Raise for a key of entries, such as ``record``, that is not a position, an id or a slice.

    Raises:
        UsageError: it is of another type.
    """
    ends = (key.start, key.stop, key.step) if isinstance(key, slice) else (key,)
    try:
        for one in ends:
            if one is not None or not isinstance(key, slice):
                operator.index(one)  # an array has the method, and may have no index
    except TypeError:
        raise UsageError(
            f"a {kind} is taken by its id, a text, or its position, a whole number, got {key!r:.40}"
        ) from None


Positions = Mapping[str, int | list[int]]
"""The position of each id, or the positions of an id that several entries have."""


def positions_of(ids: Iterable[str]) -> Positions:
    """Return the positions of ids."""
    positions: dict[str, int | list[int]] = {}
    for place, one in enumerate(ids):
        first = positions.setdefault(one, place)
        if isinstance(first, list):
            first.append(place)
        elif first != place:
            positions[one] = [first, place]
    return positions


def position_of(kind: str, id_: str, positions: Positions) -> int:
    """Return the position of the only entry, such as a ``record``, with an id.

    Raises:
        UnknownName: no entry has the id; the message has near ones.
        UsageError: several entries have it; the message has their positions.
    """
    found = positions.get(id_)
    if found is None:
        raise UnknownName(unknown(f"{kind} id", id_, list(positions), _LISTED))
    if isinstance(found, int):
        return found
    places = ", ".join(map(str, found[:_LISTED])) + (", …" if len(found) > _LISTED else "")
    raise UsageError(
        f"{len(found)} {kind}s have the id {id_[:_LONGEST]!r}, at positions {places}: take one by "
        "its position"
    )


def place_of(
    kind: str,
    key: Any,  # noqa: ANN401 - a caller's
    entries: Sequence[Any],
    positions: Callable[[], Positions],
    numbers: Callable[[], Collection[str]],
) -> Any:  # noqa: ANN401 - a position, or the slice
    """Return the position that a caller's id or position means; a slice is itself.

    Args:
        kind: what the entries are, such as ``record``.
        key: the id, position or slice.
        entries: each with an id.
        positions: returns the positions of all ids.
        numbers: returns the ids that came as whole numbers.

    Raises:
        UnknownName: no entry has the id.
        UsageError: several entries have it, the key is of another type, or a position is such a
            number, and the id of an entry at another position.
    """
    if isinstance(key, str):
        return position_of(kind, key, positions())
    check_key(kind, key)
    if isinstance(key, slice):
        return key
    place = operator.index(key)
    id_ = str(place)
    if id_ in numbers() and [one.id for one in entries[place : place + 1]] != [id_]:
        raise UsageError(
            f"[{id_}] is the id of a {kind} that is not at position {id_}: take the {kind} with "
            f"this id by its text, ['{id_}'], and the one at this position with list(…)[{id_}]"
        )
    return place


def _resolve(dotted: str, kind: str) -> Any:  # noqa: ANN401 - an object of any type
    """Import ``package.module:Name``."""
    try:
        return pkgutil.resolve_name(dotted)
    except (ImportError, AttributeError, ValueError) as error:
        where = "; install the module, or put its folder on PYTHONPATH, as in PYTHONPATH=. labeler"
        remedy = where if isinstance(error, ModuleNotFoundError) else ""
        raise UnknownName(f"cannot import {kind} {dotted!r}: {error}{remedy}") from error
