"""Limits on one row, so that no row of a file takes gigabytes: a row over one fails alone.

Each sentence takes hundreds of bytes, each value of a column 60 or more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labeler.errors import BadRow
from labeler.sentences.example import Example

MOST_DOCUMENTS = 10_000
MOST_TEXT, MOST_ENDS = 4_000_000, 150_000
"""Characters of question, documents, response and reference together, and marks in them at which a
sentence or a line may end."""
_ENDS = (".", "!", "?", "\n", "。", "\uff01", "\uff1f", "।")
_MOST_OTHERS = 8_000_000
"""Characters of a row's other columns, names included."""
_MOST_VALUES = 500_000
"""Values in a row's other columns."""
_DEEPEST = 64
"""Levels of nesting in a row's other columns; JSON parsers fail at about 200."""


def check_texts(fields: Mapping[str, Any], where: str) -> None:
    """Reject a row with very many documents, or very long texts.

    Raises:
        BadRow: it is over a limit (``too_long``).
    """
    documents = fields["documents"]
    if len(documents) > MOST_DOCUMENTS:
        raise _too_long(
            f"{where}: {len(documents):,} documents; a row has at most {MOST_DOCUMENTS:,}: keep "
            "those that were retrieved"
        )
    texts = [
        *documents,
        *(fields.get(name) or "" for name in ("question", "response", "reference")),
    ]
    size = sum(map(len, texts))
    ends = sum(map(_ends, texts)) if size > MOST_ENDS else 0
    if size > MOST_TEXT or ends > MOST_ENDS:
        raise _too_long(
            f"{where}: its texts have {size:,} characters and {ends:,} ends of sentences and "
            f"lines; a row has at most {MOST_TEXT:,} and {MOST_ENDS:,}: keep the documents that "
            "were shown to the system"
        )


def memory_of(row: Example) -> int:
    """Return the bytes that a row takes while it is labeled, roughly."""
    texts = (row.response, *row.documents)
    size = sum(map(len, texts))
    ends = sum(map(_ends, texts)) if size > _LONG else size // _USUAL
    return _CHARACTER * size + _SENTENCE * (len(texts) + ends)


_CHARACTER, _SENTENCE = 5, 800
"""Bytes of a text for each of its characters and its sentences, in all forms together."""
_LONG, _USUAL = 20_000, 60
"""Characters of texts whose sentences are counted, and of a sentence in others."""


def _ends(text: str) -> int:
    return sum(map(text.count, _ENDS))


def check_columns(columns: Mapping[str, Any], where: str) -> None:
    """Reject large or deeply nested columns, before anything recurses into them.

    Raises:
        BadRow: they are over a limit.
    """
    level: list[object] = [columns]
    size = values = 0
    for _ in range(_DEEPEST + 1):
        inner: list[object] = []
        for outer in level:
            if isinstance(outer, dict):
                size += sum(len(name) for name in outer if isinstance(name, str))
                inner += outer.values()
            elif isinstance(outer, list | tuple):
                inner += outer
        size += sum(len(part) for part in inner if isinstance(part, str))
        values += len(inner)
        if size > _MOST_OTHERS or values > _MOST_VALUES:
            raise _too_long(
                f"{where}: its other columns have {size:,} characters and {values:,} values; at "
                f"most {_MOST_OTHERS:,} and {_MOST_VALUES:,} are kept as metadata: leave some out"
            )
        level = [part for part in inner if isinstance(part, dict | list | tuple)]
        if not level:
            return
    raise BadRow(
        f"{where}: its other columns are nested more than {_DEEPEST} levels deep; flatten them",
        reason="wrong_type",
    )


def _too_long(message: str) -> BadRow:
    return BadRow(message, reason="too_long")
