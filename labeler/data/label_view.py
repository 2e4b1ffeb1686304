"""A label file as a sequence that reads each record when it is needed."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import IO, Literal, NamedTuple, cast, overload

import msgspec

from labeler.data.label_files import outcome_of
from labeler.data.lines import BOM, LONGEST_LINE, Line, bounded_lines, file_errors
from labeler.errors import UsageError
from labeler.labels.record import Outcome, requested_kind

_LABEL = b'{"kind":"label",'
_OTHERS = tuple(
    b'{"kind":"%b",' % kind for kind in (b"score", b"steps", b"questions", b"retrieval")
)
"""Beginnings of lines whose kind is known without parsing them."""


class _Named(msgspec.Struct):
    id: str


class _Made(msgspec.Struct):
    judge: str
    model: str


class _Tokens(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0


class _Asked(msgspec.Struct):
    attempts: int = 1
    usage: _Tokens | None = None
    host: str | None = None


class Glance(msgspec.Struct):
    """The few fields of an outcome that counts need, under the outcome's own names."""

    kind: Literal["label", "failure"]
    key: str = ""
    row: str | None = msgspec.field(default=None, name="id")
    example: _Named | None = None
    reason: str = ""
    attempts: int = 0
    usage: _Tokens | None = None
    signature: _Made | None = None
    reply: _Asked = msgspec.field(default_factory=_Asked)

    @property
    def id(self) -> str:
        """The row's id."""
        return self.example.id if self.example else self.row or ""


_GLANCE = msgspec.json.Decoder(Glance)


class _Places(NamedTuple):
    """Where each label begins, the numbers of their lines, and how many outcomes are not labels."""

    offsets: array[int]
    numbers: array[int]
    others: int


class LabelView(Sequence[Outcome]):
    """The labels and failures of a file of JSON Lines; memory holds 16 bytes for each.

    The file is first read when it is asked for something.

    Args:
        path: the file; other outcomes in it, such as scores, are left out.

    Raises:
        UsageError: the file cannot be read.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with file_errors(str(path)), self.path.open("rb") as file:
            self._state = _state(file)

    @property
    def others(self) -> int:
        """Outcomes that were left out."""
        return self._places.others

    @cached_property
    def _places(self) -> _Places:
        begin, others = 0, 0
        offsets, numbers = array("Q"), array("Q")
        with file_errors(str(self.path)), self._opened() as file:
            for number, content in enumerate(bounded_lines(file), start=1):
                line = content.removeprefix(BOM) if number == 1 else content
                if not content.isspace():
                    if self._is_label(line, number):
                        offsets.append(begin)
                        numbers.append(number)
                    else:
                        others += 1
                begin = file.tell()
        return _Places(offsets, numbers, others)

    def _is_label(self, content: bytes, number: int) -> bool:
        if content.startswith(_LABEL):
            return True
        if content.startswith(_OTHERS):
            return False
        return requested_kind(outcome_of(self._line(content, number))) in {"label", None}

    def _line(self, content: bytes, number: int) -> Line:
        return Line(f"{self.path}:{number}", content)

    def __len__(self) -> int:
        return len(self._places.offsets)

    def __iter__(self) -> Iterator[Outcome]:
        """Yield the outcomes in the order of the file.

        Raises:
            UsageError: the file has changed, or a line is not an outcome.
        """
        with file_errors(str(self.path)), self._opened() as file:
            for offset, number in self._each():
                yield self._read(file, offset, number)

    def glances(self) -> Iterator[Glance | Outcome]:
        """Yield a few fields of each outcome, many times as fast as the outcomes.

        Raises:
            UsageError: the file has changed, or a line is not an outcome.
        """
        with file_errors(str(self.path)), self._opened() as file:
            for offset, number in self._each():
                line = self._read_line(file, offset, number)
                try:
                    yield _GLANCE.decode(line.content)
                except (msgspec.MsgspecError, UnicodeError):  # what it refuses may be an outcome
                    yield cast("Outcome", outcome_of(line))

    @overload
    def __getitem__(self, place: int) -> Outcome: ...
    @overload
    def __getitem__(self, place: slice) -> LabelView: ...
    def __getitem__(self, place: int | slice) -> Outcome | LabelView:
        """Return an outcome, or a view of several.

        Raises:
            IndexError: the position is out of range.
            UsageError: the file has changed, or a line is not an outcome.
        """
        offsets, numbers, _ = self._places
        if isinstance(place, slice):
            part = copy(self)
            part._places = _Places(offsets[place], numbers[place], 0)  # noqa: SLF001 - its own class
            return part
        offset, number = offsets[place], numbers[place]
        with file_errors(str(self.path)), self._opened() as file:
            return self._read(file, offset, number)

    def _each(self) -> Iterator[tuple[int, int]]:
        return zip(self._places.offsets, self._places.numbers, strict=True)

    def _opened(self) -> IO[bytes]:
        file = self.path.open("rb")
        if _state(file) != self._state:
            file.close()
            raise UsageError(f"{self.path} has changed since it was opened: load it again")
        return file

    def _read(self, file: IO[bytes], offset: int, number: int) -> Outcome:
        line = self._read_line(file, offset, number)
        return cast("Outcome", outcome_of(line))  # its kind was checked before

    def _read_line(self, file: IO[bytes], offset: int, number: int) -> Line:
        file.seek(offset)
        content = file.readline(LONGEST_LINE + 1)
        return self._line(content.removeprefix(BOM) if number == 1 else content, number)


def _state(file: IO[bytes]) -> tuple[int, int, int]:
    """Return what changes when a file is written again."""
    found = os.fstat(file.fileno())
    return found.st_ino, found.st_size, found.st_mtime_ns
