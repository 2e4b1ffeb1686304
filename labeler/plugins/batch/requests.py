"""The requests of a part, written up to a size limit, and their answers, judged as online."""

from __future__ import annotations

import json
import operator
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NamedTuple, Self, cast

from pydantic import Field, ValidationError

from labeler.data.lines import BOM, durable
from labeler.errors import LabelerError, StoreError, describe_faults
from labeler.judges.judge import UnusableAnswer
from labeler.judges.openai.attempts import AttemptLog
from labeler.judges.openai.completion import Completion, object_of, read_completion, stated_error
from labeler.judges.openai.error_rules import RETRIED, AttemptFailed, ObservedError, find_rule
from labeler.judges.openai.reading import read_body
from labeler.judges.openai.request import Request, request_body, spec_of
from labeler.judges.openai.retries import final_error
from labeler.judges.options import CapField
from labeler.judges.prompting import OWN, Prompt, load_prompt
from labeler.judges.task import JudgeReply, Task, judged_task
from labeler.labels.profiles import family_of
from labeler.labels.record import RetrievalBasis, Usage
from labeler.labels.schemas import load_schema
from labeler.labels.signature import Signature
from labeler.plugins.batch.client import ENDPOINT, OpenAIBatches
from labeler.plugins.batch.folder import BatchFolder, BatchPart
from labeler.sentences.characters import plain_json
from labeler.sentences.example import Frozen, KeyedExample


class History(Frozen):
    """The attempt log of a record's earlier rounds, and the re-ask of the next one."""

    attempts: int = 0
    answers: int = 0
    readable: int = 0
    broken: dict[str, int] = Field(default_factory=dict)
    usage: Usage | None = None
    cap: int | None = None
    cap_raised: bool = False
    answer: str | None = None
    """The answer that is sent back for correction."""
    complaint: str | None = None
    """The message that names its violations."""

    @classmethod
    def of(cls, log: AttemptLog, answer: str | None, complaint: str | None) -> Self:
        """Return the history that a log leaves to the next round."""
        kept = {name: getattr(log, name) for name in _LOGGED}
        # A file cannot hold lone surrogates.
        plain = answer and answer.encode("utf-8", "replace").decode()
        return cls(**kept, answer=plain, complaint=complaint)

    def log(self, task: Task[Any]) -> AttemptLog:
        """Return the log that goes on from here."""
        kept = {name: getattr(self, name) for name in _LOGGED}
        return AttemptLog(task, **kept | {"broken": Counter(self.broken)})


_LOGGED = frozenset(History.model_fields) - {"answer", "complaint"}


class BatchRequest(Frozen):
    """A task and its history: all that is needed to read its answer and to ask again."""

    key: str
    example: KeyedExample
    signature: Signature
    history: History
    retrieval: RetrievalBasis | None = Field(default=None, exclude_if=operator.not_)
    """The retrieval label that a label rests on."""
    prompt: Prompt | None = Field(default=None, exclude_if=operator.not_)
    """The prompt, if it is the user's own."""

    @classmethod
    def of(cls, task: Task[Any], history: History) -> Self:
        """Return the request of a task."""
        return cls(
            key=task.key,
            example=task.example,
            signature=task.signature,
            history=history,
            retrieval=getattr(task.kind, "basis", None),
            prompt=task.prompt if family_of(task.prompt.name) == OWN else None,
        )

    @cached_property
    def task(self) -> Task[Any]:
        """The task, rebuilt.

        Raises:
            StoreError: the request was changed, or its prompt or schema has changed since.
        """
        signature = self.signature
        try:
            prompt = self.prompt or load_prompt(signature.prompt.name if signature.prompt else "")
            prompt = prompt.with_instructions(signature.instructions)
            schema = load_schema(signature.response_schema.name)
        except LabelerError as error:
            raise StoreError(f"request {self.key}: {error}") from error
        same = (prompt.artifact, schema.artifact) == (signature.prompt, signature.response_schema)
        task = judged_task(self.example, signature, prompt, schema, self.retrieval)
        if not same or task.key != self.key:
            raise StoreError(
                f"request {self.key} is not what its key says: it was damaged or edited, or "
                "written by a version of labeler with other prompts"
            )
        return task

    def again(self, history: History) -> Self:
        """Return the request of the next round."""
        return self.model_copy(update={"history": history})

    def line(self, cap_field: CapField) -> str:
        """Return the line of the uploaded file, named by the label's key.

        Its body equals the online request.

        Args:
            cap_field: name that the server has for the cap of an answer.
        """
        task, history = self.task, self.history
        messages: list[Mapping[str, Any]] = list(task.messages)
        if history.complaint is not None:
            messages.append({"role": "assistant", "content": history.answer or ""})
            messages.append({"role": "user", "content": history.complaint})
        spec = spec_of(task.signature.model, {**task.signature.sampling, "cap_field": cap_field})
        # A server that refuses the fields for caching would refuse every line of a file.
        body = request_body(Request(spec, task, messages, history.cap, cached=False))
        line = {"custom_id": task.key, "method": "POST", "url": ENDPOINT, "body": body}
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        # Some servers would take a line separator inside a text for the end of the line.
        return plain_json(text)


def write_parts(
    folder: BatchFolder,
    requests: Iterable[BatchRequest],
    too_large: Callable[[BatchRequest], object],
    round_: int = 1,
) -> list[BatchPart]:
    """Write requests to as many parts as the limits of files require, and make these durable.

    Args:
        folder: the batch; its parts are the earlier ones.
        requests: written as they come.
        too_large: called with a request that alone exceeds the size of a file.
        round_: how often the requests were sent with this time.
    """
    limits, parts = folder.limits, list[BatchPart]()

    def lines() -> Iterator[tuple[BatchRequest, bytes]]:
        for request in requests:
            line = request.line(folder.cap_field).encode() + b"\n"
            if len(line) <= limits.size:
                yield request, line
            else:
                too_large(request)

    rest = lines()
    following = next(rest, None)
    while following:
        name, count, size = f"{len(folder.parts) + len(parts) + 1:04d}", 0, 0
        asked, sent = (folder.file(name, kind) for kind in ("asked", "lines"))
        with durable(asked) as saved, durable(sent) as uploaded:
            while following and count < limits.lines and size + len(following[1]) <= limits.size:
                saved.write(following[0].model_dump_json().encode() + b"\n")
                uploaded.write(following[1])
                count, size = count + 1, size + len(following[1])
                following = next(rest, None)
        parts.append(
            BatchPart(name=name, round=round_, lines=count, size=size, prepared=time.time())
        )
    return parts


def read_request(file: IO[bytes], offset: int, key: str) -> BatchRequest:
    """Read the saved request with a key, which begins at this place.

    Raises:
        StoreError: it is damaged.
    """
    file.seek(offset)
    try:
        request = BatchRequest.model_validate_json(file.readline().removeprefix(BOM))
    except ValidationError as error:
        raise StoreError(f"{file.name}: request {key}: {describe_faults(error)}") from error
    _ = request.task  # checks that it is what its key says
    return request


# Answers

OK = 200
_LONGEST_LINE = 64 * 2**20


class AnswerLine(NamedTuple):
    """One line of an answer file."""

    key: str
    status: int
    body: Mapping[str, Any] | None
    is_sent: bool = True
    """False if the request was not even sent, such as in a batch that expired."""


class Answer(NamedTuple):
    """The reading of one answer, which means the same as online."""

    outcome: JudgeReply[Frozen] | UnusableAnswer | History
    """A history if the request has to be sent again."""
    usage: Usage | None
    """The charge for this answer alone; ``None`` if the server does not report it."""
    broken: Counter[str]
    """Contract violations of this answer alone, by kind."""
    flaw: ObservedError | None = None
    """Why the answer is unusable."""


def answer_lines(files: list[Path]) -> Iterator[AnswerLine | None]:
    """Yield the lines of answer files; ``None`` for a line that cannot be read."""
    for path in files:
        with path.open("rb") as file:
            while content := file.readline(_LONGEST_LINE):
                if content.strip():
                    yield _parse_line(content)


def read_answer(
    request: BatchRequest, line: AnswerLine, reasks: int, client: OpenAIBatches
) -> Answer:
    """Read the answer to a request.

    Args:
        request: the request.
        line: the line with its answer.
        reasks: how often an answer may be sent back.
        client: of the server that answered.
    """
    task, history = request.task, request.history
    log = history.log(task)
    log.attempts += 1
    before = Counter(log.broken_contracts())
    stated = None if line.status == OK else stated_error(line.body, line.status)
    found = Completion(error=stated) if stated else read_completion(line.body)
    flaw, detail = log.record_completion(found), ""
    outcome: JudgeReply[Frozen] | History | None = None
    if flaw is None:
        try:
            answer = log.read(found.content, strict=True)
        except ValidationError as error:
            flaw, detail = log.rejection(error)
            if log.reasks < reasks:
                outcome = History.of(log, found.content, log.reask_message())
        else:
            # The time that the answer took inside the batch is not known.
            facts = log.facts(client.host).model_copy(update={"seconds": None})
            outcome = JudgeReply(answer, facts, tokens=found.tokens, repairs=log.repairs)
    elif (flaw.kind == "truncated" and log.raise_cap()) or find_rule(flaw).policy in RETRIED:
        # The re-ask of an earlier round is repeated.
        outcome = History.of(log, history.answer, history.complaint)
    broken = Counter(log.broken_contracts()) - before
    if outcome is not None:
        return Answer(outcome, found.usage, broken, flaw)
    failed = AttemptFailed(cast("ObservedError", flaw), detail)
    failed.stops = False  # the lines of a batch are answered already
    who = f"batch, model {task.signature.model!r} at {client.host}"
    fault = final_error(failed, who, log.attempts, client.timeout, **log.in_vain())
    return Answer(cast("UnusableAnswer", fault), found.usage, broken, flaw)


def _parse_line(content: bytes) -> AnswerLine | None:
    try:
        line = read_body(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(line, dict) or not isinstance(line.get("custom_id"), str):
        return None
    key, response = line["custom_id"], line.get("response")
    if isinstance(response, dict) and type(response.get("status_code")) is int:
        return AnswerLine(key, response["status_code"], object_of(response.get("body")) or None)
    if isinstance(line.get("error"), dict):
        return AnswerLine(key, 0, None, is_sent=False)
    return None
