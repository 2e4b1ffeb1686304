"""Thrift's compact protocol, read without trust: some fields of a struct, and past all others.

What a struct is to hold is told by shapes. What the protocol leaves open to readers is refused:
fields that are there twice or of another type, numbers that are too long, lists and nesting without
end, and what lies beyond the last byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

_MOST_IN_LIST = 1_000_000
"""Elements of a list or a map, as many as other readers take."""
_MOST_ELEMENTS = 1 << 22
"""Elements of all lists that are taken."""
_DEEPEST = 32
"""How deep what is passed over may be nested."""
_LONGEST_NUMBER = 64
"""Bits of a number at most."""
_LAST_FIELD = (1 << 15) - 1
_LONG_LIST = 0xF
"""In the place of a length: it is longer than fits there, and follows."""

_TRUE, _FALSE, _BYTE, _I16, I32, I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
"""Types as the compact protocol counts them; what is true or false stands in the type itself."""


class Damaged(ValueError):
    """Bytes that are not what they are read as; the message says why."""


class Compact:
    """Reads the compact protocol from one place to the next; what lies beyond is an IndexError."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._elements = 0

    def unsigned(self) -> int:
        """Groups of seven bits, the lowest first; the eighth says that more follow."""
        byte = self._data[self._at]
        self._at += 1
        found, shift = byte & 0x7F, 7
        while byte & 0x80:
            if shift >= _LONGEST_NUMBER:
                raise Damaged("it has a number without an end")
            byte = self._data[self._at]
            self._at += 1
            found |= (byte & 0x7F) << shift
            shift += 7
        return found

    def signed(self, bits: int) -> int:
        """A number whose sign stands in its lowest bit."""
        found = self.unsigned()
        if found >> bits:
            raise Damaged(f"it has a number of more than {bits} bits")
        return found >> 1 ^ -(found & 1)

    def binary(self) -> bytes:
        """Bytes, after their length."""
        start = self._pass(self.unsigned())
        return self._data[start : self._at]

    def elements(self) -> tuple[int, int]:
        """How a list or a set begins: how many elements it has, and of which type."""
        byte = self._data[self._at]
        self._at += 1
        size = byte >> 4
        if size == _LONG_LIST:
            size = self.unsigned()
        self._bound(size)
        return size, byte & 0xF

    def count(self, size: int) -> None:
        """Bound what is made of the bytes, all in all."""
        self._elements += size
        if self._elements > _MOST_ELEMENTS:
            raise Damaged(f"it has lists of more than {_MOST_ELEMENTS} elements in all")

    def _bound(self, size: int) -> None:
        most = min(_MOST_IN_LIST, len(self._data) - self._at)  # None takes less than a byte.
        if size > most:
            raise Damaged(f"it has a list of {size} elements, where at most {most} can be")

    def fields(self) -> Iterator[tuple[int, int]]:
        """The fields of a struct, as number and type; each value is read before the next."""
        field = 0
        while byte := self._data[self._at]:
            self._at += 1
            field = field + (byte >> 4) if byte >> 4 else self.signed(16)
            if not 0 <= field <= _LAST_FIELD:
                raise Damaged(f"it has a field of number {field}")
            yield field, byte & 0xF
        self._at += 1

    def skip(self, kind: int, deepest: int = _DEEPEST) -> None:
        """Pass over a value of some type."""
        if not deepest:
            raise Damaged(f"it is nested more than {_DEEPEST} deep")
        if kind in _NUMBERS:
            self.unsigned()
        elif kind in _SIZES:
            self._pass(_SIZES[kind])
        elif kind == _BINARY:
            self._pass(self.unsigned())
        elif kind in (_LIST, _SET):
            size, of = self.elements()
            self._skip_elements(size, of, deepest)
        elif kind == _MAP:
            self._skip_map(deepest)
        elif kind == _STRUCT:
            for _, of in self.fields():
                self.skip(of, deepest - 1)
        else:
            raise Damaged(f"it has a value of a type that there is not: {kind}")

    def _skip_elements(self, size: int, kind: int, deepest: int) -> None:
        if kind in _SIZES:
            self._pass(size * (_SIZES[kind] or 1))  # Only in fields are they in the type itself.
        else:
            for _ in range(size):
                self.skip(kind, deepest - 1)

    def _skip_map(self, deepest: int) -> None:
        size = self.unsigned()
        kinds = self._data[self._pass(1)] if size else 0
        self._bound(size)
        for _ in range(size):
            self._skip_elements(1, kinds >> 4, deepest)
            self._skip_elements(1, kinds & 0xF, deepest)

    def _pass(self, size: int) -> int:
        """Pass over so many bytes; the place where they begin."""
        start = self._at
        if size > len(self._data) - start:
            raise Damaged(f"it has a value of {size} bytes, more than are left of it")
        self._at += size
        return start


_NUMBERS = frozenset({_I16, I32, I64})
_SIZES = {_TRUE: 0, _FALSE: 0, _BYTE: 1, _DOUBLE: 8}
"""Bytes of fields whose size their type tells."""


class Shape(Protocol):
    """What a field is to hold: its type, and how a value of it is read."""

    @property
    def kind(self) -> int:
        """Its type, as the protocol counts them."""
        ...

    def read(self, source: Compact) -> Any:  # noqa: ANN401 - shapes are data, and values follow them
        """The value that comes next, or what is made of it."""
        ...


@dataclass(frozen=True)
class Whole:
    """A whole number: its type, and its bits at most."""

    kind: int
    bits: int

    def read(self, source: Compact) -> int:
        """The number."""
        return source.signed(self.bits)


@dataclass(frozen=True)
class Binary:
    """Bytes, or a text that is left as bytes."""

    kind: int = _BINARY

    def read(self, source: Compact) -> bytes:
        """The bytes."""
        return source.binary()


@dataclass(frozen=True)
class ListOf:
    """Any number of values of one shape."""

    of: Shape
    kind: int = _LIST

    def read(self, source: Compact) -> list[Any]:
        """The values."""
        size, kind = source.elements()
        if size and kind != self.of.kind:
            raise Damaged(f"it has a list of the type {kind}, not {self.of.kind}")
        source.count(size)
        return [self.of.read(source) for _ in range(size)]


@dataclass(frozen=True)
class Struct:
    """Some fields of a struct by their numbers, and what is made of them."""

    name: str
    fields: Mapping[int, tuple[str, Shape]]
    made: Callable[[Fields], Any]
    kind: int = _STRUCT

    def read(self, source: Compact) -> Any:  # noqa: ANN401 - as in Shape
        """What is made of the fields; all others are passed over."""
        found = Fields(self.name)
        for number, kind in source.fields():
            if number not in self.fields:
                source.skip(kind)
                continue
            name, shape = self.fields[number]
            if name in found or kind != shape.kind:
                wrong = "twice" if name in found else f"as the type {kind}, not {shape.kind}"
                raise Damaged(f"it has {self.name}.{name} {wrong}")
            found[name] = shape.read(source)
        return self.made(found)


class Fields(dict[str, Any]):
    """The values of a struct by the names of its fields; one that is not there is damage."""

    def __init__(self, struct: str) -> None:
        super().__init__()
        self._struct = struct

    def __missing__(self, name: str) -> Any:  # noqa: ANN401 - as in Shape
        raise Damaged(f"it has no {self._struct}.{name}")
