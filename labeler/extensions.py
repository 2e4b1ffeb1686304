"""Extensions: what installed packages add to this one, declared as entry points.

A package names its objects in groups such as ``labeler.judges``; see docs/extend.md. Names come
from the metadata of installed packages; a package is imported when one of its names is used. So are
the modules of this package's own public names.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from labeler.errors import ExtensionError, LabelerError
from labeler.version import NAME, install_command

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

_LOG = logging.getLogger("labeler")
_INSTALL = "; the installed metadata is older than {}: install again, as in pip install -e ."


@cache
def offered(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group by name, without importing any.

    The name is the first word; the rest describes a command. If two packages give one name, this
    one has it, else the first in alphabetical order, so that every process has the same.

    Args:
        group: one of those on docs/extend.md, such as ``judges``.
    """
    points = sorted(_entry_points(f"labeler.{group}"), key=package_of, reverse=True)
    points.sort(key=lambda point: package_of(point).startswith(f"{NAME} "))
    return {point.name.partition(" ")[0]: point for point in points}


def _entry_points(group: str) -> Sequence[EntryPoint]:
    """Return the entry points of a group."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow to load, and seldom needed

    try:
        return [*entry_points(group=group)]
    except Exception:  # noqa: BLE001 - a damaged file of one package fails all, with any error
        return [point for point in _readable() if point.group == group]


@cache
def _readable() -> Sequence[EntryPoint]:
    """Return the entry points of all packages; a warning names those whose files are damaged."""
    from importlib.metadata import distributions  # noqa: PLC0415 - as above

    found: list[EntryPoint] = []
    for package in distributions():
        try:
            found += package.entry_points
        except Exception as error:  # noqa: BLE001 - as above
            message = "the entry points of %s cannot be read: %s: %s; install it again"
            _LOG.warning(message, _named(package), type(error).__name__, error)
    return found


def package_of(point: EntryPoint) -> str:
    """Return the name and version of the package that declares an entry point."""
    return _named(point.dist) if point.dist else "an unknown package"


def _named(package: Distribution) -> str:
    with suppress(Exception):  # its metadata may be damaged in any way
        if name := package.metadata["Name"]:
            return f"{name} {package.version}"
    return f"a package without metadata in {package.locate_file('')}"


def load(
    group: str,
    name: str,
    of: Any = Callable,  # noqa: ANN401 - a type
    registered: Mapping[str, Any] = MappingProxyType({}),
) -> Any:  # noqa: ANN401 - of that type
    """Import the object that a package declares.

    Args:
        group: as in :func:`offered`.
        name: the same.
        of: type of the object; by default it is callable.
        registered: objects by name, to which a decorator in the package may add this one.

    Raises:
        ExtensionError: the import fails, for whatever reason, such as an extra that is missing; or
            the object is of another type.
    """
    point = offered(group)[name]
    fault: BaseException
    is_own = package_of(point).startswith(f"{NAME} ")
    try:
        imported = point.load()
        found = registered.get(name, imported)
    except (Exception, SystemExit) as error:
        if is_own and isinstance(error, LabelerError):
            raise
        fault = error
    else:
        if isinstance(found, of):
            return found
        kinds = f"it is a {type(found).__name__}, not a {of.__name__}"
        fault = TypeError(f"{kinds}; a decorated function needs the name in its decorator")
    remedy = outdated() or "; install another version of the package, or uninstall it"
    if is_own and point.extras and isinstance(fault, ImportError):
        remedy = f"; {install_command(point.extras[0])}"
    raise ExtensionError(
        f"{name!r} of labeler.{group} comes from the package {package_of(point)}, which cannot "
        f"load it ({point.value}): {type(fault).__name__}: {fault}{remedy}"
    ) from fault


def every(group: str) -> dict[str, Any]:
    """Import all objects of a group in which this package declares some itself, by name.

    Args:
        group: one whose objects may not be left out, such as ``pending``.

    Raises:
        ExtensionError: an import fails, or the metadata lack what this package declares.
    """
    points = offered(group)
    if not any(package_of(point).startswith(f"{NAME} ") for point in points.values()):
        remedy = outdated() or f"; install it again, as in pip install --force-reinstall {NAME}"
        raise ExtensionError(
            f"the installed metadata of {NAME} are missing or old: they declare nothing in "
            f"labeler.{group}, so labels that are paid for would be overlooked{remedy}"
        )
    return {name: load(group, name) for name in points}


def outdated() -> str:
    """Return the remedy if this checkout declares more than its installed metadata, else ""."""
    import tomllib  # noqa: PLC0415 - only needed for errors

    declared = Path(__file__).parents[1] / "pyproject.toml"
    groups = tomllib.loads(declared.read_text("utf-8"))["project"] if declared.is_file() else {}
    for group, names in groups.get("entry-points", {}).items():
        if names.items() - {(point.name, point.value) for point in _entry_points(group)}:
            return _INSTALL.format(declared)
    return ""


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
