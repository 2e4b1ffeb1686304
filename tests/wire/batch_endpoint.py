"""Batches: requests in a file, answered while nobody waits, and two files in return.

Nothing happens by itself: each look-up of a batch (``GET /v1/batches/{id}``) takes it one step
along its course, so that a test decides how far it gets.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Literal

from wire.calls import COMPLETIONS, Call, Json
from wire.connections import Wire
from wire.refusals import Refused

End = Literal["completed", "expired", "failed", "never"]

OVER = frozenset({"completed", "expired", "failed", "cancelled"})
"""States in which a batch stays."""


@dataclass(frozen=True)
class Course:
    """How a batch goes on."""

    end: End = "completed"
    polls: int = 2
    """The look-up that finds it at its end; those before see it in progress."""
    share: float = 1.0
    """Of its lines, how many are executed; the rest expires."""
    error: str = ""
    """The code of a batch that fails."""
    says: str = "The batch failed."


def completes(polls: int = 2) -> Course:
    """Every line is executed, and the look-up of that number finds it completed."""
    return Course(polls=polls)


def expires(share: float) -> Course:
    """The completion window ends when only a share of its lines is executed."""
    return Course("expired", share=share)


def fails(code: str, says: str = Course.says) -> Course:
    """It fails validation, whatever its file holds; nothing is executed."""
    return Course("failed", 1, 0.0, code, says)


def never(share: float = 0.0) -> Course:
    """It stays in progress, with a share of its lines executed."""
    return Course("never", 1, share)


@dataclass
class StoredFile:
    """A file that was uploaded for a batch, or that a batch left."""

    id: str
    purpose: str
    content: bytes


class Files:
    """The files of a provider."""

    def __init__(self) -> None:
        self.all: dict[str, StoredFile] = {}
        """In the order of their creation."""

    def add(self, purpose: str, content: bytes) -> StoredFile:
        """Keep a file."""
        file = StoredFile(f"file-{len(self.all) + 1:04}", purpose, content)
        self.all[file.id] = file
        return file

    def find(self, file_id: str) -> StoredFile:
        """The file of that id.

        Raises:
            Refused: there is none.
        """
        if file_id not in self.all:
            raise Refused(404, None, f"No such File object: {file_id}")
        return self.all[file_id]

    def create(self, call: Call) -> Json:
        """Answer ``POST /v1/files``: a form with a purpose, and with a file of lines."""
        boundary = call.headers["content-type"].removeprefix("multipart/form-data; boundary=")
        parts = dict[bytes, tuple[bytes, bytes]]()
        for piece in (b"\r\n" + call.raw).split(f"\r\n--{boundary}".encode())[1:-1]:
            head, _, content = piece.partition(b"\r\n\r\n")
            named = dict(re.findall(rb'(\w+)="([^"]*)"', head))
            parts[named[b"name"]] = named.get(b"filename", b""), content
        filename, content = parts.get(b"file", (b"", b""))
        if not filename.endswith(b".jsonl") or parts.get(b"purpose") != (b"", b"batch"):
            raise Refused(400, "invalid_value", "A file of lines for a batch.", "file")
        facts = {"object": "file", "bytes": len(content), "purpose": "batch", "status": "processed"}
        return {"id": self.add("batch", content).id, **facts}

    def content(self, call: Call) -> bytes:
        """Answer ``GET /v1/files/{id}/content``."""
        return self.find(call.item).content


@dataclass
class Batch:
    """A batch as it stands."""

    id: str
    input_file_id: str
    content: bytes
    course: Course
    metadata: Mapping[str, str] | None
    status: str = "validating"
    polls: int = 0
    lines: list[Json] = field(default_factory=list)
    results: list[Json] = field(default_factory=list)
    """A line for the output or error file of each request that was executed, in that order."""
    error: str = ""
    """The code of what makes it invalid."""
    output_file_id: str | None = None
    error_file_id: str | None = None

    def as_json(self) -> Json:
        """The batch object of the API."""
        good = sum(_succeeded(result) for result in self.results)
        over = self.status in OVER - {"failed"}
        bad = (len(self.lines) if over else len(self.results)) - good
        problems = [{"code": self.error, "message": self.course.says, "line": None}]
        return {
            "id": self.id,
            "object": "batch",
            "endpoint": COMPLETIONS,
            "errors": {"object": "list", "data": problems} if self.error else None,
            "input_file_id": self.input_file_id,
            "completion_window": "24h",
            "status": self.status,
            "output_file_id": self.output_file_id,
            "error_file_id": self.error_file_id,
            "created_at": int(time.time()),
            "request_counts": {"total": len(self.lines), "completed": good, "failed": bad},
            "metadata": self.metadata,
        }

    def read(self) -> None:
        """Read the file, which may be invalid."""
        self.lines = [json.loads(line) for line in self.content.split(b"\n") if line.strip()]
        ids = {line["custom_id"] for line in self.lines}
        kinds = {(line["method"], line["url"], line["body"]["model"]) for line in self.lines}
        if len(ids) < len(self.lines) or [kind[:2] for kind in kinds] != [("POST", COMPLETIONS)]:
            self.error = "invalid_request"


def _succeeded(result: Json) -> bool:
    return result["response"] is not None and result["response"]["status_code"] == 200


class Batches:
    """The batches of a provider.

    Args:
        files: where their files are.
        answer: how one line is answered, the same as online.
        sheet: makes what a line's answer goes to.
        courses: one for all batches, or one for each in the order of their creation, after which
            they complete as usual.
    """

    def __init__(
        self,
        files: Files,
        answer: Callable[[Call, Wire], Awaitable[None]],
        sheet: Callable[[], Wire],
        courses: Course | Iterable[Course],
    ) -> None:
        self.courses = repeat(courses) if isinstance(courses, Course) else iter(courses)
        self.all: dict[str, Batch] = {}
        """In the order of their creation."""
        self.lines: list[Call] = []
        """Every line that was executed, as a call."""
        self._files = files
        self._answer = answer
        self._sheet = sheet

    def create(self, call: Call) -> Json:
        """Answer ``POST /v1/batches``."""
        metadata = call.body.get("metadata")
        for name, wanted in (("endpoint", COMPLETIONS), ("completion_window", "24h")):
            if call.body.get(name) != wanted:
                raise Refused(400, "invalid_value", f"Use {wanted}.", name)
        if any(len(name) > 64 or len(value) > 512 for name, value in (metadata or {}).items()):
            raise Refused(400, "invalid_value", "Texts of 512 characters.", "metadata")
        file = self._files.find(str(call.body.get("input_file_id")))
        course = next(self.courses, Course())
        batch = Batch(f"batch_{len(self.all) + 1:04}", file.id, file.content, course, metadata)
        self.all[batch.id] = batch
        return batch.as_json()

    async def retrieve(self, call: Call) -> Json:
        """Answer ``GET /v1/batches/{id}``, and go one step."""
        batch = self._find(call.item)
        if batch.status not in OVER:
            await self._go_on(batch)
        return batch.as_json()

    def listing(self, call: Call) -> Json:
        """Answer ``GET /v1/batches``: the newest first, a page after the batch named."""
        newest = list(reversed(self.all.values()))
        if (after := call.query.get("after")) is not None:
            newest = newest[newest.index(self._find(after)) + 1 :]
        page = newest[: min(100, int(call.query.get("limit", "20")))]
        data = [batch.as_json() for batch in page]
        return {"object": "list", "data": data, "has_more": len(newest) > len(page)}

    def cancel(self, call: Call) -> Json:
        """Answer ``POST /v1/batches/{id}/cancel``; the next look-up finds it cancelled."""
        batch = self._find(call.item)
        if batch.status in OVER:
            raise Refused(409, None, f"A batch that is {batch.status} cannot be cancelled.")
        batch.status = "cancelling"
        return batch.as_json()

    def _find(self, batch_id: str) -> Batch:
        if batch_id not in self.all:
            raise Refused(404, None, f"No batch found with id '{batch_id}'.")
        return self.all[batch_id]

    async def _go_on(self, batch: Batch) -> None:
        batch.polls += 1
        course = batch.course
        if batch.status == "cancelling":
            self._finish(batch, "cancelled")
        elif course.end == "failed":
            batch.status, batch.error = "failed", course.error
        else:
            if batch.status == "validating":
                batch.read()
                batch.status = "failed" if batch.error else "in_progress"
            if not batch.error:
                await self._advance(batch, course)

    async def _advance(self, batch: Batch, course: Course) -> None:
        """Execute the lines that are due, and end it when its time has come."""
        progress = 1.0 if course.end == "never" else min(1.0, batch.polls / course.polls)
        due = round(progress * course.share * len(batch.lines))
        for line in batch.lines[len(batch.results) : due]:
            batch.results.append(await self._result(line))
        if course.end != "never" and progress == 1:
            self._finish(batch, course.end)

    async def _result(self, line: Json) -> Json:
        body = json.dumps(line["body"]).encode()
        call = Call(len(self.lines) + 1, "POST", COMPLETIONS, {}, body)
        self.lines.append(call)
        sheet = self._sheet()
        await self._answer(call, sheet)
        if sheet.status is None:
            return _outcome(line, None, "request_timeout")
        return _outcome(line, {"status_code": sheet.status, "body": _json_or_text(sheet.body)})

    def _finish(self, batch: Batch, status: str) -> None:
        """Write the files, and enter the last state."""
        rest = batch.lines[len(batch.results) :]
        outcomes = [*batch.results, *(_outcome(line, None, f"batch_{status}") for line in rest)]
        random.Random(batch.id).shuffle(outcomes)  # noqa: S311 - an order
        batch.output_file_id = self._write(filter(_succeeded, outcomes))
        batch.error_file_id = self._write(one for one in outcomes if not _succeeded(one))
        batch.status = status

    def _write(self, outcomes: Iterable[Json]) -> str | None:
        """Store a file of results; none where there are none."""
        content = b"".join(json.dumps(outcome).encode() + b"\n" for outcome in outcomes)
        return self._files.add("batch_output", content).id if content else None


def _outcome(line: Json, response: Json | None, why_not: str | None = None) -> Json:
    """A line of an output or error file."""
    error = {"code": why_not, "message": "It was not executed."} if why_not else None
    return {"custom_id": line["custom_id"], "response": response, "error": error}


def _json_or_text(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")
