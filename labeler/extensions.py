"""Extensions: what installed packages add to this one, declared as entry points.

A package names its objects in groups such as ``labeler.judges``; see docs/extend.md. Names come
from the metadata of installed packages; a package is imported when one of its names is used.
:func:`importer` does the same for public names of this package's own modules.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from labeler.errors import ExtensionError, LabelerError
from labeler.version import NAME, install_command, outdated

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint


@cache
def offered(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group by name, without importing any.

    The name is the first word; the rest describes a command. If two packages give one name, this
    one has it, else the first in alphabetical order, so that every process has the same.
    """
    points = [point for point in _declared() if point.group == f"labeler.{group}"]
    points.sort(key=lambda point: (not is_own(point), package_of(point)), reverse=True)
    return {point.name.partition(" ")[0]: point for point in points}


@cache
def _declared() -> Sequence[EntryPoint]:
    """Return the entry points of all packages; a warning names those whose files are damaged."""
    from importlib.metadata import distributions  # noqa: PLC0415 - slow to load, and seldom needed

    found: dict[object, list[EntryPoint]] = {}
    for package in distributions():
        try:
            points = [one for one in package.entry_points if one.group.startswith("labeler.")]
        except Exception as error:  # noqa: BLE001 - anything may be in a damaged file
            message = "the entry points of %s cannot be read: %r; install it again"
            logging.getLogger("labeler").warning(message, "".join(_named(package)), error)
            continue
        if points:  # only now: reading the name of every package takes long
            name, version = _named(package)
            # Of two installed copies Python imports the first.
            found.setdefault(name if version else package, points)
    return [point for points in found.values() for point in points]


def _named(package: Distribution) -> tuple[str, str]:
    """Return the name of a package, and its version after a space."""
    with suppress(Exception):  # its metadata may be missing, or damaged in any way
        if "Name" in package.metadata:  # Python 3.12 warns if it is not
            return package.metadata["Name"], f" {package.version}"
    return f"a package without metadata in {package.locate_file('')}", ""


def package_of(point: EntryPoint) -> str:
    """Return the name and version of the package that declares an entry point."""
    return "".join(_named(point.dist)) if point.dist else "an unknown package"


def is_own(point: EntryPoint) -> bool:
    """Return True if this package declares an entry point."""
    return package_of(point).startswith(f"{NAME} ")


def load(
    group: str,
    name: str,
    of: Any = Callable,  # noqa: ANN401 - a type
    registered: Mapping[str, Any] = MappingProxyType({}),
) -> Any:  # noqa: ANN401 - of that type
    """Import the object that a package declares.

    Args:
        group: one of those on docs/extend.md, such as ``judges``.
        name: a name that :func:`offered` has.
        of: type of the object; by default it is callable.
        registered: objects by name, to which a decorator in the package may add this one.

    Raises:
        ExtensionError: the import fails, for whatever reason, such as an extra that is missing; or
            the object is of another type.
    """
    with blaming(offered(group)[name]) as point:
        found = registered.get(name, point.load())
        if not isinstance(found, of):
            kinds = f"it is a {type(found).__name__}, not a {of.__name__}"
            raise TypeError(f"{kinds}; a decorated function needs the name in its decorator")
    return found


def call_declared(
    group: str, name: str, function: Callable[..., Any], *given: object, **named: object
) -> Any:  # noqa: ANN401 - of any type
    """Call what a package declares, or a function that this returned; errors name the package.

    Raises:
        ExtensionError: instead of any error but those that are written for people.
    """
    try:
        return function(*given, **named)
    except (Exception, SystemExit):
        point = offered(group).get(name)
        if point is None:  # no package declares it
            raise
        with blaming(point, LabelerError):
            raise


@contextmanager
def blaming(point: EntryPoint, passing: type[Exception] = ExtensionError) -> Iterator[EntryPoint]:
    """Name the package of an entry point in errors of its code.

    Raises:
        ExtensionError: instead of any error but ``passing`` ones, and those that our own code
            means.
    """
    try:
        yield point
    except (Exception, SystemExit) as error:
        if isinstance(error, (LabelerError, OSError) if is_own(point) else passing):
            raise
        remedy = outdated() or "; install another version of the package, or uninstall it"
        if is_own(point) and point.extras and isinstance(error, ImportError):
            remedy = f"; {install_command(point.extras[0])}"
        name, _, _ = point.name.partition(" ")
        raise ExtensionError(
            f"{name!r} of {point.group}, from {package_of(point)} ({point.value}), fails: "
            f"{type(error).__name__}: {error}{remedy}"
        ) from error


def every(group: str) -> dict[str, Any]:
    """Import all objects of a group in which this package declares some itself, by name.

    Args:
        group: one whose objects may not be left out, such as ``pending``.

    Raises:
        ExtensionError: an import fails, or the metadata lack what this package declares.
    """
    points = offered(group)
    if not any(map(is_own, points.values())):
        remedy = outdated() or f"; install it again, as in pip install --force-reinstall {NAME}"
        raise ExtensionError(
            f"the installed metadata of {NAME} are missing or old: they declare nothing in "
            f"labeler.{group}, so labels that are paid for would be overlooked{remedy}"
        )
    return {name: load(group, name) for name in points}


def importer(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package.

    Args:
        package: the package's ``__name__``.
        homes: the names in each module, separated by spaces, by the module's name in the package.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def attribute(name: str) -> Any:  # noqa: ANN401 - any public name
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{home_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return attribute
