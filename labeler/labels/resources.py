"""Prompts and schemas that ship with the package, in a wheel or a checkout."""

from __future__ import annotations

from pathlib import Path

from labeler.errors import UnknownName

_PACKAGE = Path(__file__).parent.parent


def folder(kind: str) -> Path:
    """Return the folder of one kind of resource, inside the package or next to it.

    Args:
        kind: ``prompts`` or ``schemas``.

    Raises:
        UnknownName: the installation is broken, because neither folder exists.
    """
    for place in (_PACKAGE / kind, _PACKAGE.parent / kind):
        if place.is_dir():
            return place
    raise UnknownName(
        f"no {kind} folder in {_PACKAGE} or next to it: "
        "reinstall the package, its wheel carries them"
    )


def names(kind: str, suffix: str) -> list[str]:
    """Return the sorted names of all resources of a kind, such as ``trace/v1``."""
    root = folder(kind)
    found = (path.relative_to(root).as_posix() for path in root.rglob(f"*{suffix}"))
    return sorted(name.removesuffix(suffix) for name in found)


def read(kind: str, name: str, suffix: str) -> str:
    """Read one resource as text.

    Raises:
        UnknownName: no resource has that name.
    """
    if name not in names(kind, suffix):
        have = ", ".join(names(kind, suffix))
        raise UnknownName(f"no {kind.rstrip('s')} {name!r} in {folder(kind)}; have: {have}")
    return (folder(kind) / f"{name}{suffix}").read_text(encoding="utf-8")
