"""Lists and objects written as text: JSON, or what Python prints for them.

pandas, CSV files and logs turn ``["first", "second"]`` into a text. This module reads it back, in
the same way for each format: JSON, Python's lists, tuples and mappings, arrays of numpy, and
printed objects such as ``Document(page_content='first', metadata={})``. Nothing is run.
"""

from __future__ import annotations

import re
from typing import Any

from labeler.data.lines import has_too_many_parts, load_json
from labeler.sentences.words import read_table

_LONGEST = 1 << 24
"""Characters of a text that is read as a list or an object."""
_DEEPEST = 32
_ESCAPE = r"""\\(?:[\\'"nrtabfv0/]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})"""
_TEXT = re.compile(rf"""u?('(?:[^'\\]|{_ESCAPE})*+'|"(?:[^"\\]|{_ESCAPE})*+")(?!['"])""")
_NUMBER = re.compile(r"[-+]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][-+]?\d{1,3})?(?![\w.-])")
_NAME = re.compile(r"[^\W\d][\w.]{0,99}")
_BARE = re.compile(r"[\w.-]{1,99}")
_FIELD = re.compile(r"[a-z_]\w{0,99}=")
_ENUM = re.compile(r"<[A-Za-z][^<>\r\n]{0,99}>")
_SPACE = re.compile(r"\s*")
_TABLE = read_table(__file__, "written_values")
HIDDEN = frozenset(_TABLE["hidden"])
MISSING = HIDDEN.union(_TABLE["missing"])
_ABSENT = MISSING.union(_TABLE["absent"])
"""Texts of hidden and missing values, and of missing documents; see ``written_values.toml``."""
_CONSTANTS: dict[str, Any] = dict.fromkeys(_TABLE["null"]) | _TABLE["constants"]
_CHARACTERS = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_CHARACTERS["0"] = "\0"
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_OBJECT = re.compile(r"<[A-Za-z][\w.]*:\s*(?=[\[{])")
"""The beginning of an object that Haystack prints as ``<Document: {...}>``."""
_CALL = r"[A-Za-z_][\w.]{0,99}\((?:\s*[\[({]|[a-z_]\w{0,99}[=:])"
_FIELDS = re.compile(r"(?:page_)?content=['\"]")
"""The beginning of a document or message that LangChain prints as ``content='…' name='…'``."""
_OPENING = re.compile(
    rf'\s*\ufeff*(?:[\[{{(]|"\s*[\[{{]|{_CALL}|{_OBJECT.pattern}|{_FIELDS.pattern})'
)
_START = re.compile(
    r"""(?:[\[({]\s*+)++(?:[bru]?\\?['"]|&quot;|&\#(?:39|x27);|[\u2018\u201c\u201e«]|(?:None|null|nan|NaN)\s*[,\])}]"""
    rf"|[A-Za-z_][\w.]*\(|<[\w. ]+(?: at 0x|:))|{_CALL}"
)
"""How a list or an object begins; a text such as ``[1] Harbour rules`` does not."""
_FENCED = re.compile(r"\s*```\w*\s*([\[{].*)```\s*", re.DOTALL)
_PRINTED = re.compile(rf"Node ID: |b['\"]|{_FIELDS.pattern}")
_MAYBE_PRINTED = re.compile(rf"\s*```|{_PRINTED.pattern}|{_OPENING.pattern}")
_ELIDED = "..."
"""The end of a text that was shortened when its object was printed."""


class Unreadable(ValueError):
    """A text that begins like a list or an object and cannot be read as one."""


def is_missing(value: object) -> bool:
    """Return True for null, or the text of a missing value."""
    return value is None or (isinstance(value, str) and value.strip() in MISSING)


def is_absent(value: object) -> bool:
    """Return True for null, or the text of a missing document or reference."""
    return value is None or (isinstance(value, str) and value.strip() in _ABSENT)


def written_value(value: object) -> object:
    """Return the list or mapping that a text holds; any other text or value as it is.

    Raises:
        Unreadable: the text begins like a list, and is cut off, of another form or too large.
    """
    if not isinstance(value, str) or not _OPENING.match(value):
        return value
    text = value.strip().strip("\ufeff")
    if len(text) > _LONGEST or has_too_many_parts(text):
        raise Unreadable("it is too large")
    try:
        found = load_json(text)
    except (ValueError, RecursionError):
        found = _printed(text)
    if isinstance(found, str):  # JSON in JSON
        found = written_value(found)
    return found if isinstance(found, list | dict) else value


def written_or_same(value: object) -> object:
    """Return the list or mapping that a text holds; an unreadable text as it is, too."""
    try:
        return written_value(value)
    except Unreadable:
        return value


def is_printed(text: str) -> bool:
    """Return True for the text of a list or an object, perhaps in a block of code or unreadable.

    LlamaIndex prints the begin of a node. Python prints bytes, too.
    """
    if not _MAYBE_PRINTED.match(text):
        return False
    fenced = _FENCED.fullmatch(text)
    text = fenced[1] if fenced else text
    if _PRINTED.match(text):
        return True
    try:
        return written_value(text) != text
    except Unreadable:
        return True


def _printed(text: str) -> object:
    """Return the value that Python prints as this text; ``None`` if it is a text like any other.

    Raises:
        Unreadable: it begins like a list, and is cut off or of another form.
    """
    reader = _Reader(f"Fields({text})" if _FIELDS.match(text) else text)
    try:
        value = reader.value(_DEEPEST)
    except ValueError as error:
        if (_START.match(text) and not _goes_on(text)) or reader.is_too_deep:
            raise Unreadable(str(error)) from error
        return None
    return None if reader.rest else value


def _goes_on(text: str) -> bool:
    """Return True if words follow the bracket that closes the first one of a text."""
    depth = 0
    for mark in re.finditer(r"[\[({})\]]", text):
        depth += 1 if mark[0] in _CLOSING else -1
        if not depth:
            return bool(re.match(r"\s*[^\s\[({,]", text[mark.end() :]))
    return False


class _Reader:
    """Reads a value as Python prints it.

    Attributes:
        is_too_deep: True once the value is nested more deeply than is read.
    """

    def __init__(self, text: str) -> None:
        self._text, self._place = text, 0
        self.is_too_deep = False

    @property
    def rest(self) -> str:
        """What follows but for spaces."""
        return self._text[self._place :].strip()

    def value(self, levels: int) -> Any:  # noqa: ANN401 - any JSON
        """Read a value.

        Raises:
            ValueError: what follows is of another form.
        """
        if not levels:
            self.is_too_deep = True
            raise ValueError(f"it is nested more than {_DEEPEST} levels deep")
        if text := self._take(_TEXT):
            return _unescaped(text[1][1:-1])
        if number := self._take(_NUMBER):
            return float(number[0]) if re.search(r"[.eE]", number[0]) else int(number[0])
        for opening in _CLOSING:
            if self._skip(opening):
                return self._parts(opening, levels - 1)
        if self._take(_OBJECT):
            value = self.value(levels - 1)
            if not self._skip(">"):
                raise self._fault()
            return value
        name = self._take(_NAME)
        if name and name[0] in _CONSTANTS:
            return _CONSTANTS[name[0]]
        if name and self._skip("("):
            return self._arguments(levels - 1)
        raise self._fault()

    def _parts(self, opening: str, levels: int) -> Any:  # noqa: ANN401 - as above
        """Read a list, tuple or mapping whose opening bracket was read."""
        values: list[Any] = []
        fields: dict[str, Any] = {}
        commas = 0
        while not self._skip(_CLOSING[opening]):
            enum = self._take(_ENUM) if opening == "{" else None
            value = enum[0] if enum else self.value(levels)
            if opening == "{" and self._skip(":"):
                if str(value) in fields:
                    raise ValueError(f"the name {str(value)!r:.40} stands twice")
                fields[str(value)] = self.value(levels)
            else:
                values.append(value)
            commas += self._skip(",")
        together = len(values) + len(fields)
        if together > commas + 1:  # numpy writes no commas; elsewhere Python would join two texts
            is_array = opening == "[" and levels == _DEEPEST - 1
            if commas or not is_array or not all(isinstance(one, str | dict) for one in values):
                raise ValueError("values without a comma between them")
        if values and fields:
            raise ValueError("a mapping with a value that has no name")
        return fields if opening == "{" and not values else values

    def _arguments(self, levels: int) -> Any:  # noqa: ANN401 - as above
        """Read the arguments of a printed object: the first one, or a mapping of named ones."""
        first: list[Any] = []
        fields: dict[str, Any] = {}
        while not self._skip(")"):
            start, name = self._place, self._take(_NAME)
            mark = next((one for one in "=:" if name and self._skip(one)), "")
            if name and mark:
                fields[name[0]] = self._named(levels)
                if mark == ":" and str(fields[name[0]]).endswith(_ELIDED):
                    raise ValueError(f"{name[0]!r} was shortened to '...' when it was printed")
            else:
                self._place = start
                first.append(self.value(levels))
            is_named = _FIELD.match(self._text, self._next())
            if not self._skip(",") and not self._follows(")") and not is_named:
                raise self._fault()
        return first[0] if first else fields

    def _named(self, levels: int) -> Any:  # noqa: ANN401 - as above
        """Read the value of a named argument, which some objects print without quotes."""
        start, bare = self._place, self._take(_BARE)
        is_text = bare and bare[0] not in _CONSTANTS and not _NUMBER.fullmatch(bare[0])
        if bare and is_text and (self._follows(",") or self._follows(")")):
            return bare[0]
        self._place = start
        return None if self._take(_ENUM) else self.value(levels)

    def _take(self, form: re.Pattern[str]) -> re.Match[str] | None:
        """Read a token of this form, if it follows."""
        found = form.match(self._text, self._next())
        self._place = found.end() if found else self._place
        return found

    def _next(self) -> int:
        """Return the place of the next character other than a space."""
        spaces = _SPACE.match(self._text, self._place)
        return spaces.end() if spaces else self._place

    def _follows(self, mark: str) -> bool:
        return self._text.startswith(mark, self._next())

    def _skip(self, mark: str) -> bool:
        """Read a mark, if it follows."""
        follows = self._follows(mark)
        self._place = self._next() + len(mark) if follows else self._place
        return follows

    def _fault(self) -> ValueError:
        if not self.rest or self.rest[0] in "'\"":
            return ValueError("it is cut off, or a quote in it is not escaped")
        return ValueError(f"it continues with {self.rest[:20]!r} at character {self._place + 1}")


def _unescaped(text: str) -> str:
    def character(escape: re.Match[str]) -> str:
        code = escape[0][1:]
        return chr(int(code[1:], 16)) if len(code) > 1 else _CHARACTERS.get(code, code)

    return re.sub(_ESCAPE, character, text)
