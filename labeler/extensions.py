"""Extensions: what installed packages add to this one, declared as entry points.

A package names its objects in groups such as ``labeler.judges``; see docs/extend.md. Names come
from the metadata of installed packages; a package is imported when one of its names is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labeler.errors import ExtensionError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS = frozenset(
    ("judges", "rows", "splitters", "metrics", "checks", "records", "names", "commands")
)
"""Kinds of objects that a package can add; the group of its entry points is ``labeler.KIND``."""
_PREFIX = "labeler."


@cache
def offered(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group by name, without importing any.

    The name is the first word; the rest describes a command. If two packages give one name, the
    first in alphabetical order has it, so that every process has the same.

    Args:
        group: one of :data:`GROUPS`.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow to load, and seldom needed

    points = sorted(entry_points(group=_PREFIX + group), key=package_of, reverse=True)
    return {point.name.partition(" ")[0]: point for point in points}


def package_of(point: EntryPoint) -> str:
    """Return the name and version of the package that declares an entry point."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"


def load(group: str, name: str) -> Any:  # noqa: ANN401 - an object of any type
    """Import the object that a package declares.

    Args:
        group: one of :data:`GROUPS`.
        name: a key of :func:`offered`.

    Raises:
        ExtensionError: the import fails, for whatever reason.
    """
    point = offered(group)[name]
    try:
        return point.load()
    except Exception as error:
        raise ExtensionError(
            f"{name!r} of {_PREFIX}{group} comes from the package {package_of(point)}, which "
            f"cannot load it ({point.value}): {type(error).__name__}: {error}; install another "
            "version of the package, or uninstall it"
        ) from error


def outdated() -> str:
    """Return the remedy if this checkout declares more than its installed metadata, else ""."""
    import tomllib  # noqa: PLC0415 - only needed for errors, like the next
    from importlib.metadata import entry_points  # noqa: PLC0415

    declared = Path(__file__).parents[1] / "pyproject.toml"
    if not declared.is_file():
        return ""
    groups = tomllib.loads(declared.read_text("utf-8"))["project"].get("entry-points", {})
    if all(names.keys() <= entry_points(group=group).names for group, names in groups.items()):
        return ""
    return (
        f"; the installed metadata is older than {declared}: install again, as in pip install -e ."
    )
