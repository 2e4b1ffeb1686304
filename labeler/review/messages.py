"""The messages that the page sends, parsed strictly: anything unexpected is rejected."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request

from labeler.data.corrections.correction import Judgment, one_line
from labeler.errors import validation_faults
from labeler.sentences.example import Frozen

MOST_BYTES = 1_000_000
"""Maximum size of a request body."""

MOST_NAME, MOST_COMMENT = 100, 10_000
"""Maximum characters of a name and of a comment."""

_LONGEST_LENGTH = 12
"""Maximum digits of a Content-Length header."""
_JSON = "application/json"

Name = Annotated[
    str,
    Field(max_length=MOST_NAME, pattern=r"^\S(?:.*\S)?$"),
    AfterValidator(one_line),
]
"""An annotator's name: a non-empty line without surrounding space."""


class ReviewAnswer(Frozen):
    """A person's answer to the label shown."""

    key: str = Field(max_length=MOST_NAME)
    """Key of the label, so an outdated page is noticed."""
    annotator: Name
    answer: Literal["agree", "judged", "unsure"]
    """``agree`` adopts the judge's judgment, ``judged`` brings the person's own."""
    judgment: Judgment | None = None
    comment: str = Field(default="", max_length=MOST_COMMENT)


class Withdrawal(Frozen):
    """A request to withdraw a person's answer to the label shown."""

    key: str = Field(max_length=MOST_NAME)
    annotator: Name


class PlanAnswer(Frozen):
    """A person's answer to the sentence of a plan."""

    id: str = Field(max_length=MOST_COMMENT)
    sentence: str = Field(max_length=MOST_NAME)
    """Record and sentence, so an outdated page is noticed."""
    answer: Literal["yes", "no", "not relevant"] | None
    """``null`` withdraws the answer."""


_NAME: TypeAdapter[str] = TypeAdapter(Name)


def check_name(name: str) -> str:
    """Validate an annotator's name and return it.

    Raises:
        ValueError: it is empty, too long, or has several lines.
    """
    return _NAME.validate_python(name)


M = TypeVar("M", ReviewAnswer, Withdrawal, PlanAnswer)


async def read_message(request: Request, kind: type[M]) -> M:
    """Read and validate the body of a request.

    Raises:
        HTTPException: the body is too long, not JSON, or not a message of this kind.
    """
    content = request.headers.get("content-type", "")
    if content.partition(";")[0].strip().lower() != _JSON:
        raise HTTPException(415, f"send {_JSON}")
    text = await _body(request)
    try:
        # Pydantic accepts repeated names and non-finite numbers.
        json.loads(text.decode(), object_pairs_hook=_object, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        raise HTTPException(400, "this is not JSON in which each name stands once") from None
    try:
        return kind.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise HTTPException(
            422, f"this is not what the page would send: {_faults(error)}"
        ) from None


async def _body(request: Request) -> bytes:
    """Read a body, and stop at the maximum size."""
    length = request.headers.get("content-length", "0")
    counted = length.isascii() and length.isdigit() and len(length) <= _LONGEST_LENGTH
    if not counted or int(length) > MOST_BYTES:
        raise _too_long()
    text = b""
    async for part in request.stream():
        text += part
        if len(text) > MOST_BYTES:
            raise _too_long()
    return text


def _too_long() -> HTTPException:
    return HTTPException(413, f"send at most {MOST_BYTES:,} bytes at once")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError
    return value


def _reject_constant(_: str) -> object:
    raise ValueError


def _faults(error: ValidationError) -> str:
    """Describe the first few validation errors and their places."""
    return "; ".join(
        f"{_place(fault['loc']):.80}: {fault['msg']:.120}" for fault in validation_faults(error)[:3]
    )


def _place(path: tuple[int | str, ...]) -> str:
    return ".".join(map(str, path)) or "body"
