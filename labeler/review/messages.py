"""What the page sends, read strictly: anything unexpected is refused, and nothing is guessed."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from starlette.requests import Request

from labeler.data.corrections.correction import Judgement, one_line
from labeler.review.access import Refused
from labeler.sentences.example import Frozen

MOST_BYTES = 1_000_000
"""Size of the largest request that is read."""

MOST_NAME, MOST_COMMENT = 100, 10_000
"""Characters of a name and of a comment."""

_LONGEST_COUNT = 12
_JSON = "application/json"

Name = Annotated[
    str,
    Field(max_length=MOST_NAME, pattern=r"^\S(?:.*\S)?$"),
    AfterValidator(one_line),
]
"""Of an annotator: some text in one line, and no space around it."""


class Said(Frozen):
    """What a person says of the label that is shown."""

    key: str = Field(max_length=MOST_NAME)
    """Key of the label, against a page that is out of step."""
    annotator: Name
    answer: Literal["agree", "judged", "unsure"]
    """``agree`` is the judge's own judgement, and ``judged`` one of the person's own."""
    judgement: Judgement | None = None
    comment: str = Field(default="", max_length=MOST_COMMENT)


class TakenBack(Frozen):
    """A person takes back what they said of the label that is shown."""

    key: str = Field(max_length=MOST_NAME)
    annotator: Name


_NAME: TypeAdapter[str] = TypeAdapter(Name)


def check_name(name: str) -> str:
    """An annotator's name, seen to be one.

    Raises:
        ValueError: it is empty, too long, or goes over several lines.
    """
    return _NAME.validate_python(name)


M = TypeVar("M", Said, TakenBack)


async def read_message(request: Request, kind: type[M]) -> M:
    """Read the body of a request.

    Raises:
        Refused: it is too long, not JSON, or not such a message.
    """
    content = request.headers.get("content-type", "")
    if content.partition(";")[0].strip().lower() != _JSON:
        raise Refused(415, f"send {_JSON}")
    text = await _body(request)
    try:
        # For what pydantic lets pass: names that stand twice, and numbers that JSON does not know.
        json.loads(text.decode(), object_pairs_hook=_object, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise Refused(400, "this is not JSON in which each name stands once") from None
    try:
        return kind.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise Refused(422, f"this is not what the page would send: {_faults(error)}") from None


async def _body(request: Request) -> bytes:
    """The body, read no further than it may be long."""
    length = request.headers.get("content-length", "0")
    counted = length.isascii() and length.isdigit() and len(length) <= _LONGEST_COUNT
    if not counted or int(length) > MOST_BYTES:
        raise _too_long()
    text = b""
    async for part in request.stream():
        text += part
        if len(text) > MOST_BYTES:
            raise _too_long()
    return text


def _too_long() -> Refused:
    return Refused(413, f"send at most {MOST_BYTES:,} bytes at once")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError
    return value


def _no_constant(_: str) -> object:
    raise ValueError


def _faults(error: ValidationError) -> str:
    """Where the first few faults lie, and what is wrong there."""
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(f"{_place(fault['loc']):.80}: {fault['msg']:.120}" for fault in faults[:3])


def _place(path: tuple[int | str, ...]) -> str:
    return ".".join(map(str, path)) or "body"
