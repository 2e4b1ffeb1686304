"""Notices about rows that may not mean what is read.

A notice is a kind and a clause about the row; :mod:`labeler.data.rows` counts the rows of a kind.
"""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, TypeAlias

from labeler.catalog import snake_case
from labeler.data.columns import Columns
from labeler.data.documents import further_text
from labeler.data.inputs_outputs import has_other_answers, messages_of
from labeler.data.parsing import REQUIRED
from labeler.data.written_values import is_printed
from labeler.sentences.conversation import media_of
from labeler.sentences.example import Example
from labeler.sentences.words import read_patterns, read_table

_Fields: TypeAlias = Mapping[str, Any]
_FIELDS = frozenset(Example.model_fields)
_TEXTS = ("question", "response", "reference")


def notices_of(
    given: _Fields, found: _Fields, read: _Fields, columns: Columns
) -> Iterator[tuple[str, str]]:
    """Yield the notices about a row: each kind, and a clause that follows ``2 rows have``.

    Args:
        given: the row.
        found: the values of its fields, as they stood in its columns.
        read: the same as an example has them.
        columns: the column of each field.
    """
    yield from _left_out(found, read)
    yield from _unread(read)
    yield from _of_messages(columns.messages(given) or found.get("question"), read)
    if _PATTERNS["altered"].fullmatch(name := str(read.get("id"))):
        yield "altered", f"an id such as {name!r:.40}, as data frames and Excel alter numbers"
    documents: Sequence[str] = read.get("documents") or ()
    first = next(iter(documents), "")
    short = (text for text in documents if len(text) <= _LONGEST_NAME)
    if name := next(filter(_PATTERNS["name"].fullmatch, short), ""):
        yield "names", f"documents that are names, such as {name!r:.60}: judges see no more"
    if other := further_text(columns.rests(given, read), len(first)):
        yield "further", f"documents with another text ({other}), which is not judged"
    if not all(map(str.strip, documents)):
        yield "empty document", "an empty document"
    texts = map(read.get, _TEXTS)
    question, response, right = (one if isinstance(one, str) else "" for one in texts)
    if isinstance(read.get("question"), str) and not question.strip():
        yield "empty question", "an empty question, as merged cells of a spreadsheet leave"
    for name, text in zip(("document", *_TEXTS), (first, question, response, right), strict=True):
        if is_printed(text):
            path = "'documents=COLUMN[].FIELD' or documents=COLUMN[][]"
            path = path if name == "document" else f"{name}=COLUMN.FIELD"
            how = f"which is judged as it is; a path reads its texts: --map {path}"
            yield f"printed {name}", f"a {name} that is a list or object written as text, {how}"
    yield from _of_texts(question, documents, response)


def _of_texts(question: str, documents: Sequence[str], response: str) -> Iterator[tuple[str, str]]:
    """Yield that texts look like a prompt, an error or something that was decoded wrongly."""
    if any(_SHORT < len(text) < len(question) and text in question for text in documents):
        yield "prompt", "a question that holds a document, as if it were a whole prompt"
    if len(question) > _SHORT and response.startswith(question):
        yield "echo", "a response that begins with the question, as if a prompt were repeated"
    if _PATTERNS["fault"].match(response):
        yield "fault", f"a response such as {response!r:.40}, as of a server or program that failed"
    shown = "\0".join((question, *documents, response))
    marks = _PLAIN_MARKS if shown.isascii() else _MARKS
    found = (mark for sign in marks if sign in shown for mark in marks[sign] if mark in shown)
    if mark := next(found, ""):
        text = f"a text with {mark!r} or the like, as of a wrong encoding or a chat template"
        yield "garbled", text


def apart(read: _Fields, before: _Fields) -> Iterator[tuple[str, str]]:
    """Yield that a row has another document for the same answer as the row before it."""
    one, other = read.get("documents"), before.get("documents")
    is_again = read.get("response") in ("", before.get("response"))
    is_again = is_again and read.get("question") == before.get("question")
    if is_again and one and other and one != other and len(one) == len(other) == 1:
        text = "the question and response of the row before and another document: if each row holds"
        yield "apart", f"{text} a passage, put all of a question into one list"


_TABLE = read_table(__file__, "notices")
_PATTERNS = read_patterns(__file__, "notices")
_MARKS = defaultdict[str, list[str]](list)
"""Marks by their first sign, which is looked for first because it is found fast."""
for _mark in chain(*_TABLE["marks"].values()):
    _MARKS[_mark[0]].append(_mark)
_PLAIN_MARKS = {sign: own for sign, own in _MARKS.items() if sign.isascii()}
_UNREAD = {name: field for field, names in _TABLE["unread"].items() for name in names.split()}
_LONGEST_NAME, _SHORT = 300, 10


def _of_messages(turns: object, read: _Fields) -> Iterator[tuple[str, str]]:
    """Yield that no judge is shown parts of messages or a last turn, or each the answer twice."""
    history = read.get("history")
    lists = (turns, history, read.get("tool_outputs"))
    given = [part for one in lists if isinstance(one, list | tuple) for part in one]
    if not given:
        return
    if kinds := media_of(given):
        yield "media", f"messages with parts that no judge is shown ({kinds[0]})"
    ends = (one[-1:] if isinstance(one, list) else None for one in (history, turns))
    earlier, last = (messages_of(end)[0] for end in ends)
    if earlier and earlier[-1].text == read.get("response"):
        yield "history", "a history that ends with the response, as if it were known"
    for one in last:
        is_asked = one.role == "tool" or one.text in (read.get("response"), read.get("question"))
        if not is_asked and all(turn.text != one.text for turn in messages_of(history)[0]):
            yield "turns", f"a last turn ({one.role}) that no judge is shown"


def _left_out(found: _Fields, read: _Fields) -> Iterator[tuple[str, str]]:
    """Yield what reading leaves out."""
    for name in [name for name in found if read.get(name) is None]:
        value = found[name]
        if isinstance(value, str) and value.strip():
            text = f"{value.strip()!r} or the like as {name!r}, which is read as missing"
            yield f"missing {name}", text
    response = found.get("response")
    if isinstance(read.get("response"), str) and has_other_answers(response):
        yield "choices", "a response of several choices that differ; the first is judged"


def _unread(row: _Fields) -> Iterator[tuple[str, str]]:
    """Yield columns that are not read, and may be meant as a field or count twice."""
    is_whole = all(row.get(field) is not None for field in REQUIRED)  # else it fails, and says why
    own = row.get("metadata")
    for name, value in own.items() if isinstance(own, Mapping) else ():
        if name in row and name not in _FIELDS and row[name] != value:
            yield "metadata", f"{name!r} as a column and in its metadata, which alone is kept"
    for column, field in _meant(tuple(row)):
        path, value = column, row[column]
        if isinstance(value, Mapping) and len(value) == 1:
            ((inner, value),) = value.items()
            path = f"{column}.{inner}"
        is_value = isinstance(value, str | int | list) and not isinstance(value, bool)
        known = row.get(field)
        if field in REQUIRED and is_value and known is not None and value not in ("", known):
            yield f"again {field}", f"{column!r} next to {field!r}, which alone is read"
        elif is_whole and field not in REQUIRED and known is None and is_value:
            path = shlex.quote(f"{field}={path}")
            yield column, f"{column!r} and no {field!r}: --map {path} reads it"


@lru_cache(maxsize=2)  # most rows of a file have the same columns
def _meant(columns: tuple[object, ...]) -> tuple[tuple[str, str], ...]:
    """Return the columns that may be meant as a field, each with the field.

    A name may have the number that pandas gives to a repeated one.
    """
    names = (name for name in columns if isinstance(name, str) and name not in _FIELDS)
    fields = ((name, _UNREAD.get(snake_case(re.sub(r"\.\d+$", "", name)))) for name in names)
    return tuple((name, field) for name, field in fields if field)
