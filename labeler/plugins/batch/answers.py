"""Lines of answer files, and what they mean: the same as online."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, cast

from pydantic import ValidationError

from labeler.data.lines import BOM, bounded_lines, file_errors
from labeler.judges.judge import UnusableAnswer
from labeler.judges.limits import number_of
from labeler.judges.openai.address import host_of
from labeler.judges.openai.attempts import AttemptLog
from labeler.judges.openai.completion import Completion, read_completion
from labeler.judges.openai.error_rules import RETRIED, AttemptFailed, ObservedError, find_rule
from labeler.judges.openai.reading import json_of, object_of
from labeler.judges.openai.request import OpenAISpec
from labeler.judges.openai.retries import Once, final_error
from labeler.judges.openai.server_errors import stated_error
from labeler.judges.task import JudgeReply, Messages
from labeler.plugins.batch.folder import BatchRequest
from labeler.sentences.example import Frozen

OK = 200
_STATUSES, _SUCCESSES = range(100, 1000), range(200, 300)


class AnswerLine(NamedTuple):
    """One line of an answer file."""

    text: str
    key: str
    status: int
    body: object
    """The completion; of another status, what states the error."""
    is_sent: bool = True
    """False if the request was not even sent, such as in a batch that expired."""

    @property
    def completion(self) -> Completion:
        """The completion, or the error in its place."""
        if self.status != OK:
            return Completion(error=stated_error(self.body, self.status))
        return read_completion(object_of(self.body))


def answer_lines(path: Path, start: int = 0) -> Iterator[tuple[int, AnswerLine | None]]:
    """Yield the lines of an answer file; ``None`` stands for one that cannot be read.

    Args:
        path: of the file.
        start: place of the first line, in bytes.

    Yields:
        The place of a line, and what it holds.

    Raises:
        UsageError: the file cannot be read.
    """
    with file_errors(str(path)), path.open("rb") as file:
        file.seek(start)
        for content in bounded_lines(file):
            line = content.removeprefix(BOM)
            if line.strip():
                yield start, parse_line(line.decode(errors="replace"))
            start = file.tell()


def parse_line(text: str) -> AnswerLine | None:
    """Return what a line of an answer file holds; ``None`` if it cannot be read."""
    line = object_of(json_of(text.encode()))
    key, response = line.get("custom_id"), object_of(line.get("response"))
    body: object = response if "choices" in response else response.get("body")  # vLLM
    if isinstance(body, str):  # as some servers write it
        body = json_of(body.encode("utf-8", "replace"))
    body = object_of(body)
    # Some servers leave it out.
    status = number_of(str(response.get("status_code") or (OK if body else ""))) or 0
    if not isinstance(key, str):
        return None
    if status in _STATUSES:
        stated = body or line.get("error")  # vLLM
        return AnswerLine(text, key, OK if status in _SUCCESSES else int(status), stated)
    is_error = isinstance(line.get("error"), dict)
    return AnswerLine(text, key, 0, None, is_sent=False) if is_error else None


_UNREAD = AnswerLine("", "", 0, None)


@dataclass
class Judged:
    """The state of a request after its answers, which mean the same as online.

    Attributes:
        log: of its attempts; the next one has its cap.
        messages: of the next request.
        outcome: ``None`` if the request has to be sent, or sent again.
        flaw: why the last answer is unusable.
        broken: contract violations of the last answer, by kind.
    """

    log: AttemptLog
    messages: Messages
    outcome: JudgeReply[Frozen] | UnusableAnswer | None = None
    flaw: ObservedError | None = None
    broken: Mapping[str, int] = field(default_factory=dict)


def judge(request: BatchRequest, spec: OpenAISpec) -> Judged:
    """Judge the answers to a request, one after the other, by the rules of the online judge."""
    task, host = request.task, host_of(spec.base_url)
    log = AttemptLog(task, cap=spec.max_output_tokens)
    state, once = Judged(log, task.messages), Once()
    for text in request.answers:
        before = Counter(log.broken_contracts())
        log.attempts, log.violations = log.attempts + 1, ()
        found, detail = (parse_line(text) or _UNREAD).completion, ""
        state.flaw = flaw = log.record_completion(found)
        if flaw is not None:
            is_longer = flaw.kind == "truncated" and log.raise_cap()
            rule = find_rule(flaw)
            is_again = is_longer or (rule.policy in RETRIED and not once.is_last(rule))
        else:
            is_again, once = log.reasks < spec.reasks, Once()
            try:
                answer = log.read(found.content)
            except ValidationError as error:
                state.flaw, detail = log.rejection(error)
                state.messages = log.reask_messages()
            else:
                # The time that the answer took inside the batch is not known.
                facts = log.facts(host).model_copy(update={"seconds": None})
                state.outcome = JudgeReply(answer, facts, tokens=found.tokens, repairs=log.repairs)
        state.broken = Counter(log.broken_contracts()) - before
        if state.flaw is not None and not is_again:
            failed = AttemptFailed(state.flaw, detail)
            failed.stops = False  # the lines of a batch are answered already
            who = f"batch, model {spec.model!r} at {host}"
            error_ = final_error(failed, who, log.attempts, spec.timeout, **log.in_vain())
            state.outcome = cast("UnusableAnswer", error_)
            break
    return state
