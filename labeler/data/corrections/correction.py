"""What a person said of one judgement: an event, kept for ever, that changes no label."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from labeler.labels.answers import SPECIAL_SUPPORT
from labeler.labels.record import LabelRecord
from labeler.sentences.example import Frozen

Opinion = Literal["agree", "disagree", "unsure"]
Queue = Literal["random", "doubtful", "order", "chosen"]
"""How a record came before a person: drawn at random, as the most doubtful, in the order of the
file, or because the person opened it. Only what was drawn at random speaks for all records."""

LONGEST_COMMENT = 20_000
"""Characters of a comment at most."""
LONGEST_NAME = 200
"""Characters of an annotator's name at most."""
MOST_KEYS = 100_000
"""Sentences that one field may name at most."""
_NAMED = 5
"""Keys that a fault names at most."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|\+00:00)", re.ASCII)
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def _writable(text: str) -> str:
    """Refuse what cannot be written as UTF-8; pydantic does so of texts of a limited length."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("must not hold a lone surrogate") from None
    return text


def one_line(text: str) -> str:
    """See that a name is one line of text.

    Raises:
        ValueError: it holds a control character, or space at an end.
    """
    if _CONTROL.search(text) or text.strip() != text:
        raise ValueError("must hold no control characters and no space at its ends")
    return text


def _moment(text: str) -> str:
    if not _TIME.fullmatch(text):
        raise ValueError("must be a time in UTC such as 2026-11-22T10:45:00+00:00")
    datetime.fromisoformat(text)
    return text


Key = Annotated[str, Field(min_length=1, max_length=64)]
"""A sentence's key, or a special string that stands for support."""
Keys = Annotated[tuple[Key, ...], Field(max_length=MOST_KEYS)]


class Judgement(Frozen):
    """What a person says of the sentences of one record, in full."""

    relevant: Keys
    """Keys of the document sentences that help to answer the question, in reading order."""
    utilized: Keys
    """Keys of the document sentences whose information the response uses, in reading order."""
    support: Annotated[dict[Key, Keys], Field(max_length=MOST_KEYS)]
    """For every response sentence that is fully supported, the keys that support it: document
    sentences or special strings; none where the person named none."""
    overall_supported: bool
    """Whether the response as a whole is supported."""

    def check_against(self, record: LabelRecord) -> tuple[str, ...]:
        """What it names that the record does not have, or names twice; nothing for a sound one."""
        documents = frozenset(record.example.document_keys())
        faults = [
            *_misnamed("relevant", self.relevant, documents),
            *_misnamed("utilized", self.utilized, documents),
            *_misnamed("support", self.support, frozenset(record.example.response_keys())),
        ]
        supporting = documents.union(SPECIAL_SUPPORT)
        for key, keys in self.support.items():
            faults += _misnamed(f"support of {key!r}", keys, supporting)
        return tuple(faults)


def _misnamed(field: str, keys: Iterable[str], known: frozenset[str]) -> Iterator[str]:
    seen: set[str] = set()
    unknown: dict[str, None] = {}
    twice: dict[str, None] = {}
    for key in keys:
        if key not in known:
            unknown[key] = None
        elif key in seen:
            twice[key] = None
        seen.add(key)
    for what, found in (("which the record does not have", unknown), ("twice", twice)):
        if found:
            named = ", ".join(f"{key!r:.40}" for key in list(found)[:_NAMED])
            yield f"{field} names {named}{', …' if len(found) > _NAMED else ''} {what}"


class Correction(Frozen):
    """One judgement of one person on one label; a later one of the same person replaces it."""

    kind: Literal["correction"] = "correction"
    version: Literal[1] = 1
    key: str = Field(pattern="^[0-9a-f]{64}$")
    """Key of the label that it speaks of."""
    id: Annotated[str, AfterValidator(_writable)]
    """The row's id."""
    annotator: Annotated[
        str,
        Field(min_length=1, max_length=LONGEST_NAME),
        AfterValidator(one_line),
    ]
    """Who judged."""
    at: Annotated[str, AfterValidator(_moment)]
    """When, ISO 8601 in UTC."""
    opinion: Opinion
    """What the person thinks of the judge's label: ``disagree`` where the judgement differs."""
    judgement: Judgement | None = None
    """``None`` where the person did not judge, as when unsure."""
    comment: str = Field(default="", max_length=LONGEST_COMMENT)
    """Why."""
    blind: bool = False
    """Whether the judge's verdicts were hidden until the person had judged."""
    queue: Queue = "chosen"
    """How the record came before the person."""
    withdrawn: bool = False
    """Whether it takes back what the same person said before, and says nothing itself."""
    source: str = Field(default="review", min_length=1, max_length=LONGEST_NAME)
    """Where the person judged: ``review`` is our own desk, else the tool that it was imported
    from."""

    @property
    def verdict(self) -> Judgement | None:
        """The judgement that counts: none of one who is unsure, or takes back what was said."""
        return None if self.withdrawn or self.opinion == "unsure" else self.judgement

    def check_against(self, record: LabelRecord) -> tuple[str, ...]:
        """What does not fit the record that it is to speak of; nothing for a sound one."""
        if self.key != record.key:
            return ("it speaks of another label",)
        return () if self.judgement is None else self.judgement.check_against(record)
