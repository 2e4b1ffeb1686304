"""Catalogs: registries of named entries, with helpful errors for unknown names."""

from __future__ import annotations

import difflib
import pkgutil
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from labeler.errors import UnknownName

T = TypeVar("T")


class Catalog(Mapping[str, T], Generic[T]):
    """A mapping from names to entries of one kind.

    An entry is an object, or text such as ``package.module:Name`` that is imported on first use to
    keep start-up fast. A look-up accepts such text too, so third parties need no plug-in system.

    Args:
        kind: name of an entry in errors, such as ``metric``.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T | str] = {}

    def add(self, name: str, entry: T | str) -> None:
        """Register an object, or the text that names one, under a new name."""
        if name in self._entries:
            raise ValueError(f"{self.kind} {name!r} is already registered")
        self._entries[name] = entry

    def __getitem__(self, name: str) -> T:
        if name in self._entries:
            entry = self._entries[name]
            if isinstance(entry, str):
                entry = self._entries[name] = _resolve(entry, self.kind)
            return entry
        module, colon, _ = name.partition(":")
        if colon and module not in self._entries:
            try:
                found: T = _resolve(name, self.kind)
            except UnknownName as error:
                raise UnknownName(f"{error}; {self._unknown(name)}") from error
            return found
        raise UnknownName(self._unknown(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def loaded(self) -> tuple[str, ...]:
        """Return the names whose entries need no import any more."""
        return tuple(name for name, entry in self._entries.items() if not isinstance(entry, str))

    def _unknown(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._entries, n=3)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        have = ", ".join(sorted(self._entries))
        return f"unknown {self.kind} {name!r}{hint or ';'} have: {have}"


def _resolve(dotted: str, kind: str) -> Any:  # noqa: ANN401 - an object of any type
    """Import ``package.module:Name``."""
    try:
        return pkgutil.resolve_name(dotted)
    except (ImportError, AttributeError, ValueError) as error:
        raise UnknownName(f"cannot import {kind} {dotted!r}: {error}") from error
