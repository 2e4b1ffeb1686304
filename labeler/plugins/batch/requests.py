"""The requests of a batch, written up to a size limit, and their answers, judged as online."""

from __future__ import annotations

import json
import operator
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NamedTuple, Self, cast

from pydantic import Field, ValidationError

from labeler.data.lines import BOM, durable, flush_directory, rewrite_without
from labeler.errors import BadRow, LabelerError, StoreError, UsageError, describe_faults
from labeler.judges.judge import UnusableAnswer
from labeler.judges.openai.address import host_of
from labeler.judges.openai.attempts import AttemptLog
from labeler.judges.openai.completion import Completion, object_of, read_completion, stated_error
from labeler.judges.openai.error_rules import RETRIED, AttemptFailed, ObservedError, find_rule
from labeler.judges.openai.reading import json_of
from labeler.judges.openai.request import OpenAISpec, Request, request_body, spec_of
from labeler.judges.openai.retries import final_error
from labeler.judges.prompting import OWN, Prompt, load_prompt
from labeler.judges.task import JudgeReply, Task, judged_task
from labeler.labels.answers import family_of
from labeler.labels.record import RetrievalBasis, Usage
from labeler.labels.signature import Signature, load_schema
from labeler.plugins.batch import FOLDER
from labeler.plugins.batch.folder import BATCH_FILE, ENDPOINT, NEW, Batch, batches, locked
from labeler.sentences.characters import plain_json
from labeler.sentences.example import Frozen, KeyedExample
from labeler.store.maintenance import RowSelection

MOST_LINES, MOST_BYTES = 50_000, 190_000_000
"""Limits of one file of requests: slightly less than OpenAI's."""
OK = 200
_LONGEST_LINE = 64 * 2**20
_KEY = re.compile(rb"[0-9a-f]{64}")


class BatchRequest(Frozen):
    """A task and the answers to it so far: all that is needed to judge these and to ask again."""

    key: str
    example: KeyedExample
    signature: Signature
    retrieval: RetrievalBasis | None = Field(default=None, exclude_if=operator.not_)
    """The retrieval label that a label rests on."""
    prompt: Prompt | None = Field(default=None, exclude_if=operator.not_)
    """The prompt, if it is the user's own."""
    answers: tuple[str, ...] = ()
    """Lines of answer files."""

    @classmethod
    def of(cls, task: Task[Any]) -> Self:
        """Return the request of a task."""
        return cls(
            key=task.key,
            example=task.example,
            signature=task.signature,
            retrieval=getattr(task.kind, "basis", None),
            prompt=task.prompt if family_of(task.prompt.name) == OWN else None,
        )

    @cached_property
    def task(self) -> Task[Any]:
        """The task, rebuilt; an error if the request, its prompt or its schema has changed."""
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

    def line(self, spec: OpenAISpec) -> bytes:
        """Return the line of the uploaded file; its body equals the next online request's.

        Raises:
            BadRow: no file can hold it.
        """
        state = judge(self, spec)
        own = {**self.signature.sampling, "cap_field": spec.cap_field}
        asked = spec_of(self.signature.model, own)
        # A server that refuses the fields for caching would refuse every line of a file.
        body = request_body(Request(asked, self.task, state.messages, state.cap, cached=False))
        line = {"custom_id": self.key, "method": "POST", "url": ENDPOINT, "body": body}
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        # Some servers would take a line separator inside a text for the end of the line.
        written = plain_json(text).encode() + b"\n"
        if len(written) > MOST_BYTES:
            raise BadRow(
                f"{self.example.id!r}: its request alone is more than the {MOST_BYTES} bytes that "
                "a file may have; shorten its documents",
                reason="oversize",
            )
        return written


def read_request(file: IO[bytes], offset: int, key: str) -> BatchRequest:
    """Read the saved request with a key, which begins at this place, and check it."""
    file.seek(offset)
    try:
        request = BatchRequest.model_validate_json(file.readline().removeprefix(BOM))
    except ValidationError as error:
        raise StoreError(f"{file.name}: request {key}: {describe_faults(error)}") from error
    _ = request.task  # checks that it is what its key says
    return request


def write_batches(like: Batch, requests: Iterable[tuple[BatchRequest, bytes]]) -> list[Batch]:
    """Write requests aside to as many batches as the limits of files force; make them durable.

    Args:
        like: has what the batches have in common; each gets its name and a number.
        requests: each with its line, which fits into a file.
    """
    rest, found = iter(requests), list[Batch]()
    following = next(rest, None)
    while following:
        path = like.path.with_name(f"{NEW}{like.name}-{len(found) + 1:04d}")
        path.mkdir(mode=0o700, parents=True)
        batch, count, size = like.model_copy(update={"path": path}), 0, 0
        with durable(batch.file("asked")) as saved, durable(batch.file("lines")) as uploaded:
            while following and count < MOST_LINES and size + len(following[1]) <= MOST_BYTES:
                saved.write(following[0].model_dump_json().encode() + b"\n")
                uploaded.write(following[1])
                count, size = count + 1, size + len(following[1])
                following = next(rest, None)
        batch.save(lines=count, size=size)
        found.append(batch)
    return found


def place(found: Iterable[Batch]) -> None:
    """Give new batches their names: from now on others can see them."""
    for batch in found:
        batch.path = batch.path.rename(batch.path.with_name(batch.name.removeprefix(NEW)))
        flush_directory(batch.path.parent)


def delete_requests(store: Path, selection: RowSelection, keys: set[str], *, dry_run: bool) -> int:
    """Delete the requests of selected rows, or of given label keys; return their number.

    Raises:
        UsageError: a batch may still answer one of them.
        StoreError: the state of a batch cannot be read.
    """
    if not (store / FOLDER).is_dir():
        return 0
    with locked(store):
        selected = [(one, _selected_keys(one, selection, keys)) for one in batches(store)]
        found = [(batch, mine) for batch, mine in selected if mine]
        for batch, _ in found:
            if batch.is_open:
                raise UsageError(
                    f"batch {batch.name} may still answer selected rows: run "
                    f"`{batch.command('collect', '--wait')}` or `{batch.command('cancel')}` "
                    "first; nothing was deleted"
                )
        for batch, mine in [] if dry_run else found:
            _delete(batch, mine)
    return len(set[bytes]().union(*(mine for _, mine in found)))


def _selected_keys(batch: Batch, selection: RowSelection, keys: set[str]) -> set[bytes]:
    """Return the label keys of selected requests of a batch."""
    path, found = batch.file("asked"), set[bytes]()
    if not path.exists():
        return found
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                saved = BatchRequest.model_validate_json(line.removeprefix(BOM))
            except ValidationError as error:
                raise StoreError(
                    f"{path}:{number}: not a saved request ({describe_faults(error)}); remove the "
                    f"folder {batch.path} if its answers are collected; nothing was deleted"
                ) from error
            if saved.key in keys or selection.selects(saved.example.id, saved.example.metadata):
                found.add(saved.key.encode())
    return found


def _delete(batch: Batch, keys: set[bytes]) -> None:
    """Delete the lines with a key from the files of a batch; last the requests, which name rows."""
    asked = batch.file("asked")
    others = {path for path in batch.path.iterdir() if path.name != BATCH_FILE} - {asked}
    for path in (*others, asked):
        rewrite_without(path, lambda line: not keys.isdisjoint(_KEY.findall(line)))


# Answers


class AnswerLine(NamedTuple):
    """One line of an answer file."""

    text: str
    key: str
    status: int
    body: Mapping[str, Any] | None
    is_sent: bool = True
    """False if the request was not even sent, such as in a batch that expired."""


def answer_lines(files: list[Path]) -> Iterator[AnswerLine | None]:
    """Yield the lines of answer files; ``None`` for a line that cannot be read."""
    for path in files:
        with path.open("rb") as file:
            while content := file.readline(_LONGEST_LINE):
                if content.strip():
                    yield _parse_line(content.decode(errors="replace"))


def _parse_line(text: str) -> AnswerLine | None:
    line = object_of(json_of(text.encode()))
    key, response = line.get("custom_id"), object_of(line.get("response"))
    status = response.get("status_code")
    if not isinstance(key, str):
        return None
    if type(status) is int:
        return AnswerLine(text, key, status, object_of(response.get("body")) or None)
    is_error = isinstance(line.get("error"), dict)
    return AnswerLine(text, key, 0, None, is_sent=False) if is_error else None


class Judged(NamedTuple):
    """The state of a request after its answers, which mean the same as online."""

    messages: list[Mapping[str, Any]]
    """The messages of the next request."""
    cap: int | None
    """The cap of the next answer."""
    outcome: JudgeReply[Frozen] | UnusableAnswer | None = None
    """``None`` if the request has to be sent, or sent again."""
    flaw: ObservedError | None = None
    """Why the last answer is unusable."""
    usage: Usage | None = None
    """The charge for the last answer; ``None`` if the server does not report it."""
    broken: Mapping[str, int] = {}
    """Contract violations of the last answer, by kind."""


def judge(request: BatchRequest, spec: OpenAISpec) -> Judged:
    """Judge the answers to a request, one after the other, by the rules of the online judge."""
    task, host = request.task, host_of(spec.base_url)
    log = AttemptLog(task, cap=spec.max_output_tokens)
    state = Judged([*task.messages], log.cap)
    for line in map(_parse_line, request.answers):
        before = Counter(log.broken_contracts())
        log.attempts, log.violations = log.attempts + 1, ()
        found = _completion(line)
        flaw, detail = log.record_completion(found), ""
        outcome: JudgeReply[Frozen] | None = None
        if flaw is not None:
            is_longer = flaw.kind == "truncated" and log.raise_cap()
            is_again = is_longer or find_rule(flaw).policy in RETRIED
        else:
            is_again = log.reasks < spec.reasks
            try:
                answer = log.read(found.content, strict=True)
            except ValidationError as error:
                flaw, detail = log.rejection(error)
                state = state._replace(messages=_corrected(log))
            else:
                # The time that the answer took inside the batch is not known.
                facts = log.facts(host).model_copy(update={"seconds": None})
                outcome = JudgeReply(answer, facts, tokens=found.tokens, repairs=log.repairs)
        broken = Counter(log.broken_contracts()) - before
        state = Judged(state.messages, log.cap, outcome, flaw, found.usage, broken)
        if flaw is not None and not is_again:
            failed = AttemptFailed(flaw, detail)
            failed.stops = False  # the lines of a batch are answered already
            who = f"batch, model {spec.model!r} at {host}"
            error_ = final_error(failed, who, log.attempts, spec.timeout, **log.in_vain())
            return state._replace(outcome=cast("UnusableAnswer", error_))
    return state


def _completion(line: AnswerLine | None) -> Completion:
    if line is None or line.status != OK:
        return Completion(error=stated_error(line and line.body, line.status if line else 0))
    return read_completion(line.body)


def _corrected(log: AttemptLog) -> list[Mapping[str, Any]]:
    """Return the messages that ask the judge to correct its latest answer."""
    answer = log.latest.content.encode("utf-8", "replace").decode()  # without lone surrogates
    return [
        *log.task.messages,
        {"role": "assistant", "content": answer},
        {"role": "user", "content": log.reask_message()},
    ]
