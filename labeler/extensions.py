"""Extensions: what installed packages add to this one, declared as entry points.

A package names its objects in groups such as ``labeler.judges``; see docs/extend.md. Names come
from the metadata of installed packages; a package is imported when one of its names is used. So are
the modules of this package's own public names.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from labeler.errors import ExtensionError, LabelerError
from labeler.version import NAME, install_command

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_INSTALL = "; the installed metadata is older than {}: install again, as in pip install -e ."


@cache
def offered(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group by name, without importing any.

    The name is the first word; the rest describes a command. If two packages give one name, this
    one has it, else the first in alphabetical order, so that every process has the same.

    Args:
        group: one of those on docs/extend.md, such as ``judges``.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow to load, and seldom needed

    points = sorted(entry_points(group=f"labeler.{group}"), key=package_of, reverse=True)
    points.sort(key=lambda point: package_of(point).startswith(f"{NAME} "))
    return {point.name.partition(" ")[0]: point for point in points}


def package_of(point: EntryPoint) -> str:
    """Return the name and version of the package that declares an entry point."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"


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
    import tomllib  # noqa: PLC0415 - only needed for errors, like the next
    from importlib.metadata import entry_points  # noqa: PLC0415

    declared = Path(__file__).parents[1] / "pyproject.toml"
    groups = tomllib.loads(declared.read_text("utf-8"))["project"] if declared.is_file() else {}
    for group, names in groups.get("entry-points", {}).items():
        if names.items() - {(point.name, point.value) for point in entry_points(group=group)}:
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
