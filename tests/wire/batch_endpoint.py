"""Batches: requests in a file, answered while nobody waits, and two files in return.

Nothing happens by itself: each look-up of a batch (``GET /v1/batches/{id}``) takes it one step
along its course, so that a test decides how far it gets.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from wire.accounts import Charge, charge_of
from wire.calls import COMPLETIONS, Call, Json
from wire.connections import Wire
from wire.files_endpoint import Files
from wire.refusals import Refused

End = Literal["completed", "expired", "failed", "never"]

OVER = frozenset({"completed", "expired", "failed", "cancelled"})
"""States in which a batch stays."""

WHY_NOT: Mapping[str, str] = {
    "batch_expired": "The completion window ended before this request was executed.",
    "batch_cancelled": "The batch was cancelled before this request was executed.",
    "request_timeout": "The call to the model brought no answer in time.",
}
"""The codes of lines that have no response."""

_WINDOW_SECONDS = 24 * 3600
_LINES_AT_ONCE = 50


@dataclass(frozen=True)
class Course:
    """How a batch goes on.

    Attributes:
        end: how it ends, if its file is valid.
        polls: the look-up that finds it at its end; those before see it in progress.
        share: of its lines, how many are executed; the rest expires.
        error: the code and message of a batch that fails.
    """

    end: End = "completed"
    polls: int = 2
    share: float = 1.0
    error: tuple[str, str] = ("invalid_json_line", "This line is not valid JSON.")


def completes(polls: int = 2) -> Course:
    """Every line is executed, and the look-up of that number finds it completed."""
    return Course(polls=polls)


def expires(share: float, polls: int = 2) -> Course:
    """The completion window ends when only a share of its lines is executed."""
    return Course("expired", polls, share)


def fails(code: str, message: str = "The batch failed.", polls: int = 1) -> Course:
    """It fails validation, whatever its file holds; nothing is executed."""
    return Course("failed", polls, 0.0, (code, message))


def never(share: float = 0.0) -> Course:
    """It stays in progress, with a share of its lines executed."""
    return Course("never", 1, share)


@dataclass(frozen=True)
class Line:
    """One request of a batch."""

    custom_id: str
    body: Json


@dataclass
class Batch:
    """A batch as it stands."""

    id: str
    input_file_id: str
    content: bytes
    endpoint: str
    course: Course
    metadata: Mapping[str, str] | None
    created_at: int
    status: str = "validating"
    polls: int = 0
    lines: list[Line] = field(default_factory=list)
    results: list[Json] = field(default_factory=list)
    """A line for the output or error file of each request that was executed, in that order."""
    errors: list[Json] = field(default_factory=list)
    when: dict[str, int] = field(default_factory=dict)
    """Timestamps by the state that they belong to."""
    output_file_id: str | None = None
    error_file_id: str | None = None
    usage: Charge = field(default_factory=Charge)
    step: asyncio.Lock = field(default_factory=asyncio.Lock)

    def become(self, status: str) -> None:
        """Enter a state."""
        self.status = status
        self.when[status] = int(time.time())

    def charge(self, charge: Charge) -> None:
        """Add what a line costs."""
        self.usage = Charge(*map(sum, zip(self.usage, charge, strict=True)))

    def as_json(self) -> Json:
        """The batch object of the API."""
        stamps = ("in_progress", "finalizing", "completed", "failed", "expired")
        states = (*stamps, "cancelling", "cancelled")
        over = self.status in OVER - {"failed"}
        good = sum(_succeeded(result) for result in self.results)
        bad = len(self.lines) if over else len(self.results)
        return {
            "id": self.id,
            "object": "batch",
            "endpoint": self.endpoint,
            "model": str(self.lines[0].body.get("model")) if self.lines else None,
            "errors": {"object": "list", "data": self.errors} if self.errors else None,
            "input_file_id": self.input_file_id,
            "completion_window": "24h",
            "status": self.status,
            "output_file_id": self.output_file_id,
            "error_file_id": self.error_file_id,
            "created_at": self.created_at,
            "expires_at": self.created_at + _WINDOW_SECONDS,
            **{f"{state}_at": self.when.get(state) for state in states},
            "request_counts": {"total": len(self.lines), "completed": good, "failed": bad - good},
            "metadata": dict(self.metadata) if self.metadata is not None else None,
            "usage": _usage(self.usage),
        }


def _usage(charge: Charge) -> Json:
    return {
        "input_tokens": charge.prompt,
        "input_tokens_details": {"cached_tokens": charge.cached},
        "output_tokens": charge.completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": charge.prompt + charge.completion,
    }


def _succeeded(result: Json) -> bool:
    return result["response"] is not None and result["response"]["status_code"] == 200


# What makes a file invalid


def problems(batch: Batch) -> Iterator[Json]:
    """Why a batch fails validation: entries for its ``errors``; its lines are read meanwhile."""
    texts = [line for line in batch.content.split(b"\n") if line.strip()]
    if not texts:
        yield _problem("empty_file", "The file holds no request.")
    ids, models = set[str](), set[str]()
    for number, text in enumerate(texts, 1):
        value = json.loads(text)
        line = Line(value["custom_id"], value["body"])
        models.add(line.body["model"])
        is_sound = (value["method"], value["url"]) == ("POST", batch.endpoint) and len(models) == 1
        if not is_sound or line.custom_id in ids:
            yield _problem("invalid_request", "It does not go with its batch.", number)
        ids.add(line.custom_id)
        batch.lines.append(line)


def _problem(code: str, message: str, number: int | None = None) -> Json:
    return {"code": code, "message": message, "param": None, "line": number}


# The endpoint

AnswerLine = Callable[[Call, Wire], Awaitable[None]]


class Batches:
    """The batches of a provider.

    Args:
        files: where their files are.
        answer: how one line is answered, the same as online.
        sheet: makes what a line's answer goes to.
        courses: one for all batches, or one for each in the order of their creation, after which
            they complete as usual.
        seed: decides the order of output files.
    """

    def __init__(
        self,
        files: Files,
        answer: AnswerLine,
        sheet: Callable[[], Wire],
        *,
        courses: Course | Iterable[Course] = (),
        seed: int = 0,
    ) -> None:
        self.all: dict[str, Batch] = {}
        """In the order of their creation."""
        self.lines: list[Call] = []
        """Every line that was executed, as a call."""
        self._files = files
        self._answer = answer
        self._sheet = sheet
        self._every = courses if isinstance(courses, Course) else Course()
        self._courses = iter(()) if isinstance(courses, Course) else iter(courses)
        self._seed = seed

    def take(self, course: Course, batch_id: str | None = None) -> None:
        """Let a batch go another way from here on; without an id, all that are yet to come."""
        if batch_id is None:
            self._courses, self._every = iter(()), course
        else:
            self.all[batch_id].course = course
            self.all[batch_id].polls = 0

    # Requests

    def create(self, call: Call) -> Json:
        """Answer ``POST /v1/batches``."""
        if call.body.get("endpoint") != COMPLETIONS:
            raise Refused(400, "invalid_value", f"Use {COMPLETIONS}.", param="endpoint")
        if call.body.get("completion_window") != "24h":
            raise Refused(400, "invalid_value", "Use '24h'.", param="completion_window")
        _check_metadata(call.body.get("metadata"))
        file = self._files.find(str(call.body.get("input_file_id")), "input_file_id")
        if file.purpose != "batch":
            raise Refused(400, "invalid_value", "Its purpose is not batch.", param="input_file_id")
        batch = Batch(
            id=f"batch_{len(self.all) + 1:04}",
            input_file_id=file.id,
            content=file.content,
            endpoint=COMPLETIONS,
            course=next(self._courses, self._every),
            metadata=call.body.get("metadata"),
            created_at=int(time.time()),
        )
        self.all[batch.id] = batch
        return batch.as_json()

    async def retrieve(self, call: Call) -> Json:
        """Answer ``GET /v1/batches/{id}``, and go one step."""
        batch = self._find(call.item)
        async with batch.step:
            if batch.status not in OVER:
                await self._go_on(batch)
            return batch.as_json()

    def listing(self, call: Call) -> Json:
        """Answer ``GET /v1/batches``: the newest first, a page after the batch named."""
        newest = list(reversed(self.all.values()))
        try:
            limit = int(call.query.get("limit", "20"))
        except ValueError:
            limit = 0
        if not 1 <= limit <= 100:
            raise Refused(400, "invalid_value", "limit must be from 1 to 100.", param="limit")
        if (after := call.query.get("after")) is not None:
            newest = newest[newest.index(self._find(after)) + 1 :]
        page = newest[:limit]
        return {
            "object": "list",
            "data": [batch.as_json() for batch in page],
            "first_id": page[0].id if page else None,
            "last_id": page[-1].id if page else None,
            "has_more": len(newest) > limit,
        }

    def cancel(self, call: Call) -> Json:
        """Answer ``POST /v1/batches/{id}/cancel``; the next look-up finds it cancelled."""
        batch = self._find(call.item)
        if batch.status in OVER:
            raise Refused(409, None, f"A batch that is {batch.status} cannot be cancelled.")
        batch.become("cancelling")
        return batch.as_json()

    def _find(self, batch_id: str) -> Batch:
        if batch_id not in self.all:
            raise Refused(404, None, f"No batch found with id '{batch_id}'.", param="batch_id")
        return self.all[batch_id]

    # Steps

    async def _go_on(self, batch: Batch) -> None:
        batch.polls += 1
        course = batch.course
        if batch.status == "cancelling":
            self._finish(batch, "cancelled", "batch_cancelled")
        elif course.end == "failed":
            if batch.polls >= course.polls:
                self._fail(batch, [_problem(*course.error)])
        elif batch.status != "validating" or self._validate(batch):
            await self._advance(batch, course)

    def _validate(self, batch: Batch) -> bool:
        """Read its file; whether it goes on."""
        if errors := list(problems(batch)):
            self._fail(batch, errors)
            return False
        batch.become("in_progress")
        return True

    @staticmethod
    def _fail(batch: Batch, errors: list[Json]) -> None:
        batch.lines, batch.errors = [], errors
        batch.become("failed")

    async def _advance(self, batch: Batch, course: Course) -> None:
        """Execute the lines that are due, and end it when its time has come."""
        progress = 1.0 if course.end == "never" else min(1.0, batch.polls / course.polls)
        await self._execute(batch, round(progress * course.share * len(batch.lines)))
        if course.end == "never" or progress < 1 or batch.status == "cancelling":
            return
        batch.become("finalizing")
        self._finish(batch, course.end, "batch_expired")

    async def _execute(self, batch: Batch, upto: int) -> None:
        """Answer lines until that many are done."""
        for line in batch.lines[len(batch.results) : upto]:
            result = await self._result(batch, line)
            batch.results.append(result)
            if _succeeded(result) and (charge := charge_of(result["response"]["body"])):
                batch.charge(charge)
            if len(batch.results) % _LINES_AT_ONCE == 0:
                await asyncio.sleep(0)  # others are served meanwhile

    async def _result(self, batch: Batch, line: Line) -> Json:
        call = Call(len(self.lines) + 1, "POST", batch.endpoint, {}, json.dumps(line.body).encode())
        self.lines.append(call)
        sheet = self._sheet()
        await self._answer(call, sheet)
        if sheet.status is None:
            return _outcome(call.number, line, None, "request_timeout")
        response = {
            "status_code": sheet.status,
            "request_id": f"req_{call.number:06}",
            "body": _json_or_text(sheet.body),
        }
        return _outcome(call.number, line, response, None)

    def _finish(self, batch: Batch, status: str, why_not: str) -> None:
        """Write the files, and enter the last state."""
        rest = [_outcome(0, line, None, why_not) for line in batch.lines[len(batch.results) :]]
        outcomes = [*batch.results, *rest]
        random.Random(f"{self._seed}/{batch.id}").shuffle(outcomes)  # noqa: S311 - an order
        batch.output_file_id = self._write(batch, "output", filter(_succeeded, outcomes))
        bad = (outcome for outcome in outcomes if not _succeeded(outcome))
        batch.error_file_id = self._write(batch, "error", bad)
        batch.become(status)

    def _write(self, batch: Batch, name: str, outcomes: Iterable[Json]) -> str | None:
        """Store a file of results; none where there are none."""
        content = b"".join(json.dumps(outcome).encode() + b"\n" for outcome in outcomes)
        if not content:
            return None
        return self._files.add(f"{batch.id}_{name}.jsonl", "batch_output", content).id


def _outcome(number: int, line: Line, response: Json | None, why_not: str | None) -> Json:
    """A line of an output or error file."""
    return {
        "id": f"batch_req_{number:06}",
        "custom_id": line.custom_id,
        "response": response,
        "error": {"code": why_not, "message": WHY_NOT[why_not]} if why_not else None,
    }


def _json_or_text(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")


def _check_metadata(metadata: object) -> None:
    """Raise :class:`Refused` unless it is 16 pairs of short texts at most."""
    if metadata is None:
        return
    pairs = metadata.items() if isinstance(metadata, dict) else ()
    short = all(isinstance(v, str) and len(n) <= 64 and len(v) <= 512 for n, v in pairs)
    if not isinstance(metadata, dict) or len(metadata) > 16 or not short:
        raise Refused(400, "invalid_value", "At most 16 texts of 512 characters.", param="metadata")
