"""Batches as their provider describes them; every run with a store reads this, so no client."""

from __future__ import annotations

from typing import Any

from pydantic import AliasPath, Field, ValidationError, ValidationInfo, field_validator

from labeler.judges.openai.completion import object_of, text_of
from labeler.judges.openai.error_rules import plain_code
from labeler.sentences.example import Frozen

MARKER = "labeler_part"
"""The metadata field that holds our name of a batch."""
ENDED = frozenset({"completed", "expired", "cancelled", "failed"})
"""A provider's statuses of a batch that gets no more answers."""
_MOST_COUNTED, _MOST_PROBLEMS = 10**9, 5


def _counted(name: str) -> Any:  # noqa: ANN401 - a field, as pydantic's
    return Field(0, ge=0, le=_MOST_COUNTED, validation_alias=AliasPath("request_counts", name))


def _named(*path: str) -> Any:  # noqa: ANN401 - the same
    return Field(None, min_length=1, validation_alias=AliasPath(*path))


class RemoteBatch(Frozen, extra="ignore", strict=True, validate_by_name=True):
    """A batch as its provider describes it; a value that makes no sense is left out."""

    id: str = Field(min_length=1)
    status: str = Field("unknown", pattern=r"^[a-z_]{1,32}$")
    total: int = _counted("total")
    """Requests in it; 0 while they are not counted yet."""
    completed: int = _counted("completed")
    failed: int = _counted("failed")
    output_file: str | None = _named("output_file_id")
    error_file: str | None = _named("error_file_id")
    input_file: str | None = _named("input_file_id")
    marker: str | None = _named("metadata", MARKER)
    """Our name of it."""
    problems: tuple[str, ...] = Field((), validation_alias=AliasPath("errors", "data"))
    """Short codes of why it was rejected; never the provider's words."""

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

    @field_validator("problems", mode="before")
    @classmethod
    def _codes(cls, problems: list[Any]) -> tuple[str, ...]:
        words = [one if isinstance(one, str) else object_of(one).get("code") for one in problems]
        codes = (plain_code(text_of(word)) or "no code" for word in words)
        return tuple(dict.fromkeys(codes))[:_MOST_PROBLEMS]

    @property
    def is_whole(self) -> bool:
        """True if the batch has ended and the file of its answers, if any, is named.

        A server may report the end of a batch a moment before it names the file.
        """
        return self.status in ENDED and (self.output_file is not None or not self.completed)
