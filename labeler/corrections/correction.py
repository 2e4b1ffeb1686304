"""What a person said of one judgement: an event, kept for ever, that changes no label."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from labeler.example import Frozen

Opinion = Literal["agree", "disagree", "unsure"]
Queue = Literal["random", "doubtful", "order", "chosen"]
"""How a record came before a person: drawn at random, as the most doubtful, in the order of the
file, or because the person opened it. Only what was drawn at random speaks for all records."""


class Judgement(Frozen):
    """What a person says of the sentences of one record, in full."""

    relevant: tuple[str, ...]
    """Keys of the document sentences that help to answer the question, in reading order."""
    utilized: tuple[str, ...]
    """Keys of the document sentences whose information the response uses, in reading order."""
    support: dict[str, tuple[str, ...]]
    """For every response sentence that is fully supported, the keys that support it: document
    sentences or special strings; none where the person named none."""
    overall_supported: bool
    """Whether the response as a whole is supported."""


class Correction(Frozen):
    """One judgement of one person on one label; a later one of the same person replaces it."""

    kind: Literal["correction"] = "correction"
    version: Literal[1] = 1
    key: str
    """Key of the label that it speaks of."""
    id: str
    """The row's id."""
    annotator: str = Field(min_length=1)
    """Who judged."""
    at: str
    """When, ISO 8601 in UTC."""
    opinion: Opinion
    """What the person thinks of the judge's label: ``disagree`` where the judgement differs."""
    judgement: Judgement | None = None
    """``None`` where the person did not judge, as when unsure."""
    comment: str = ""
    """Why."""
    blind: bool = False
    """Whether the judge's verdicts were hidden until the person had judged."""
    queue: Queue = "chosen"
    """How the record came before the person."""
    withdrawn: bool = False
    """Whether it takes back what the same person said before, and says nothing itself."""
    source: str = "review"
    """Where the person judged: ``review`` is our own desk, else the tool that it was imported
    from."""
