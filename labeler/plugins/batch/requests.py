"""The requests of a part, written up to a size limit, and their answers, judged as online."""

from __future__ import annotations

import json
import operator
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, Self, cast

from pydantic import Field, ValidationError

from labeler.data.lines import BOM
from labeler.errors import LabelerError, StoreError, describe_faults
from labeler.judges.judge import UnusableAnswer
from labeler.judges.openai.address import host_of
from labeler.judges.openai.attempts import AttemptLog
from labeler.judges.openai.completion import object_of, read_completion, stated_error
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
from labeler.plugins.batch.folder import BatchPart, BatchState, part_file
from labeler.sentences.characters import plain_json
from labeler.sentences.example import Frozen, KeyedExample

ENDPOINT: Literal["/v1/chat/completions"] = "/v1/chat/completions"


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
    def of(cls, log: AttemptLog, *, answer: str | None, complaint: str | None) -> Self:
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


@dataclass
class PartWriter:
    """Writes requests to as many parts as the limits require; use as a context manager.

    Attributes:
        directory: the folder of the batch.
        state: of the batch; ``limits`` and ``cap_field`` are used.
        now: Unix time.
        first: number of the first part.
        round: how often the requests were sent with this time.
        parts: the parts whose files are durable.
    """

    directory: Path
    state: BatchState
    now: float
    first: int = 1
    round: int = 1
    parts: list[BatchPart] = field(default_factory=list)
    _open: ExitStack = field(default_factory=ExitStack)
    _files: list[IO[bytes]] = field(default_factory=list)
    _lines: int = 0
    _size: int = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._open:
            if kind is None:
                self._finish()

    def add(self, request: BatchRequest) -> bool:
        """Write a request; ``False`` if it alone exceeds the size of a file."""
        line, limits = request.line(self.state.cap_field).encode() + b"\n", self.state.limits
        if len(line) > limits.size:
            return False
        if self._lines == limits.lines or self._size + len(line) > limits.size:
            self._finish()
        if not self._files:
            paths = (part_file(self.directory, self._name, kind) for kind in ("asked", "lines"))
            self._files = [self._open.enter_context(path.open("wb")) for path in paths]
        for file, text in zip(
            self._files, (request.model_dump_json().encode() + b"\n", line), strict=True
        ):
            file.write(text)
        self._lines, self._size = self._lines + 1, self._size + len(line)
        return True

    @property
    def _name(self) -> str:
        return f"{self.first + len(self.parts):04d}"

    def _finish(self) -> None:
        """Make the files of the present part durable."""
        if not self._files:
            return
        for file in self._files:
            file.flush()
            os.fsync(file.fileno())
        self._open.close()
        name, lines, size = self._name, self._lines, self._size
        self.parts.append(
            BatchPart(name=name, round=self.round, lines=lines, size=size, prepared=self.now)
        )
        self._files, self._lines, self._size = [], 0, 0


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


@dataclass(frozen=True)
class SendAgain:
    """A request that has to be sent again in a later round."""

    reason: str
    history: History


Outcome = JudgeReply[Frozen] | UnusableAnswer | SendAgain


def answer_lines(files: list[Path]) -> Iterator[AnswerLine | None]:
    """Yield the lines of answer files; ``None`` for a line that cannot be read."""
    for path in files:
        with path.open("rb") as file:
            while content := file.readline(_LONGEST_LINE):
                if content.strip():
                    yield _parse_line(content)


class AnswerReader:
    """Judges the answer to one request as the same answer would be judged online.

    Args:
        request: the request.
        reasks: how often an answer may be sent back.
        base_url: the address that answered.
        timeout: seconds for one request, for messages.
    """

    def __init__(self, request: BatchRequest, reasks: int, base_url: str, timeout: float) -> None:
        self.request, self._reasks = request, reasks
        self._host, self._timeout = host_of(base_url), timeout
        self._log = request.history.log(request.task)
        self._log.attempts += 1
        self._before = Counter(self._log.broken_contracts())
        self.usage: Usage | None = None
        """The charge for this answer alone; ``None`` if the server does not report it."""
        self.flaw: ObservedError | None = None
        """Why the answer is unusable."""

    @property
    def broken(self) -> Counter[str]:
        """Contract violations of this answer alone, by kind."""
        return Counter(self._log.broken_contracts()) - self._before

    def read(self, line: AnswerLine) -> Outcome:
        """Read the line with the answer."""
        if line.status != OK:
            return self._without_answer(stated_error(line.body, line.status))
        completion = read_completion(line.body)
        self.usage = completion.usage
        flaw = self._log.record_completion(completion)
        return self._without_answer(flaw) if flaw else self._answer(completion.content)

    def _without_answer(self, observed: ObservedError) -> UnusableAnswer | SendAgain:
        longer = observed.kind == "truncated" and self._log.raise_cap()
        rule = find_rule(observed)
        if longer or rule.policy in RETRIED:
            # The re-ask of an earlier round is repeated.
            before = self.request.history
            history = History.of(self._log, answer=before.answer, complaint=before.complaint)
            return SendAgain(rule.reason, history)
        return self._no_label(observed, "")

    def _answer(self, text: str) -> Outcome:
        """Return the label, or one re-ask for an answer that breaks the schema or contract."""
        log = self._log
        try:
            answer = log.read(text, strict=True)
        except ValidationError as error:
            observed, detail = log.rejection(error)
        else:
            # The time that the answer took inside the batch is not known.
            facts = log.facts(self._host).model_copy(update={"seconds": None})
            return JudgeReply(answer, facts, tokens=log.latest.tokens, repairs=log.repairs)
        if log.reasks >= self._reasks:
            return self._no_label(observed, detail)
        history = History.of(log, answer=text, complaint=log.reask_message())
        return SendAgain(find_rule(observed).reason, history)

    def _no_label(self, observed: ObservedError, detail: str) -> UnusableAnswer:
        failed, self.flaw = AttemptFailed(observed, detail), observed
        failed.stops = False  # the lines of a batch are answered already
        who = f"batch, model {self.request.task.signature.model!r} at {self._host}"
        log = self._log
        error = final_error(failed, who, log.attempts, self._timeout, **log.in_vain())
        return cast("UnusableAnswer", error)


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
