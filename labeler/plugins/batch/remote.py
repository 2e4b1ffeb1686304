"""Batches as their providers describe them, in OpenAI's words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pydantic import (
    AliasChoices,
    AliasPath,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from labeler.catalog import snake_case
from labeler.data.options import read_toml
from labeler.judges.openai.address import plain_code
from labeler.judges.openai.reading import list_of, object_of, text_of
from labeler.sentences.example import Frozen

MARKER = "labeler_part"
"""The metadata field that holds our name of a batch."""
ENDED = frozenset({"completed", "expired", "cancelled", "failed"})
"""Statuses of a batch that gets no more answers."""
UNDER_WAY = frozenset({"validating", "in_progress", "finalizing", "cancelling"})
_OTHERS = read_toml(Path(__file__).with_name("statuses.toml"))
_SPELLINGS = {word: status for status, words in _OTHERS.items() for word in words}
_PREFIX = re.compile(r"(job|batch)_(state|status)_")
_QUEUE = re.compile(r"(?i)\blimit: (\d[\d,]{0,19}) enqueued tokens")
_LONGEST_STATUS, _MOST_COUNTED, _MOST_PROBLEMS = 32, 10**9, 5


def _counted(name: str) -> Any:  # noqa: ANN401 - a field, as pydantic's
    return Field(0, ge=0, le=_MOST_COUNTED, validation_alias=AliasPath("request_counts", name))


def _named(*path: str) -> Any:  # noqa: ANN401 - the same
    return Field(None, min_length=1, validation_alias=AliasPath(*path))


class RemoteBatch(Frozen, extra="ignore", strict=True, validate_by_name=True):
    """A batch as its provider describes it; a value that makes no sense is left out."""

    id: str = Field(min_length=1)
    status: str = Field("unknown", pattern=r"^[a-z_]{1,32}$")
    expires: float | None = Field(None, gt=0, lt=1e11, validation_alias="expires_at")
    """Unix time at which it ends at the latest."""
    completed: int = _counted("completed")
    failed: int = _counted("failed")
    output_file: str | None = _named("output_file_id")
    error_file: str | None = _named("error_file_id")
    input_file: str | None = _named("input_file_id")
    marker: str | None = _named("metadata", MARKER)
    """Our name of it."""
    problems: tuple[str, ...] = Field(
        (), validation_alias=AliasChoices(AliasPath("errors", "data"), "errors")
    )
    """Short codes of why it was rejected; never the provider's words."""
    queue: int | None = Field(None, gt=0, validation_alias=AliasPath("errors", "data"))
    """Tokens that the account's queue takes, if a rejection says so."""

    @field_validator("*", mode="wrap")
    @classmethod
    def _or_default(cls, value: Any, handler: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - any
        """Replace an invalid value: a server may write anything."""
        try:
            return handler(value)
        except ValidationError:
            field = cls.model_fields[str(info.field_name)]
            if field.is_required():
                raise
            return field.get_default()

    @field_validator("status", mode="before")
    @classmethod
    def _as_openai(cls, status: object) -> str:
        word = _PREFIX.sub("", snake_case(text_of(status)[: 2 * _LONGEST_STATUS]))
        return _SPELLINGS.get(word, word)

    @field_validator("problems", mode="before")
    @classmethod
    def _codes(cls, problems: object) -> tuple[str, ...]:
        listed = list_of(problems)
        words = [one if isinstance(one, str) else object_of(one).get("code") for one in listed]
        codes = (plain_code(text_of(word)) or "no code" for word in words)
        return tuple(dict.fromkeys(codes))[:_MOST_PROBLEMS]

    @field_validator("queue", mode="before")
    @classmethod
    def _stated_limit(cls, problems: object) -> int | None:
        words = "\n".join(text_of(object_of(one).get("message")) for one in list_of(problems))
        found = _QUEUE.search(words)
        return int(found[1].replace(",", "")) if found else None

    @property
    def is_whole(self) -> bool:
        """True if the batch has ended and the file of its answers, if any, is named.

        A server may report the end of a batch a moment before it names the file, and may count
        nothing. A completed batch has a file, of errors at least.
        """
        has_answers = self.completed or (self.status == "completed" and self.error_file is None)
        return self.status in ENDED and (self.output_file is not None or not has_answers)
