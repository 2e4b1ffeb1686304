"""Read answer files: each line is judged as the online judge judges the same answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from labeler.integrations.batch.request_files import BatchRequest, History
from labeler.judges.judge import UnusableAnswer
from labeler.judges.openai.address import host_of
from labeler.judges.openai.attempts import ATTEMPT_LOG, AttemptLog
from labeler.judges.openai.completion import Completion, read_completion, stated_error, text_of
from labeler.judges.openai.error_rules import (
    RETRIED,
    ObservedError,
    explain,
    find_rule,
)
from labeler.judges.openai.reading import read_body
from labeler.judges.task import JudgeReply
from labeler.labels.record import Usage
from labeler.sentences.example import Frozen

OK = 200
_LONGEST_LINE = 64 * 2**20


class AnswerLine(NamedTuple):
    """One line of an answer file."""

    key: str
    status: int
    body: Mapping[str, Any] | None
    error: str
    """The code of why the request was not even sent, such as ``batch_expired``."""


@dataclass(frozen=True)
class SendAgain:
    """A request that has to be sent again in a later round."""

    reason: str
    history: History


@dataclass(frozen=True)
class AnswerResult:
    """The outcome of one line of an answer file."""

    outcome: JudgeReply[Frozen] | UnusableAnswer | SendAgain
    history: History
    """The record's history, including this answer."""
    usage: Usage | None = None
    """The charge for this answer alone; ``None`` if the server does not report it."""


def answer_lines(files: list[Path]) -> Iterator[AnswerLine | None]:
    """Yield the lines of answer files; ``None`` for a line that cannot be read."""
    for path in files:
        with path.open("rb") as file:
            while content := file.readline(_LONGEST_LINE):
                if content.strip():
                    yield _parse_line(content)


def read_answer(
    request: BatchRequest, line: AnswerLine, base_url: str, timeout: float
) -> AnswerResult:
    """Judge the answer to one request as the same answer would be judged online.

    Args:
        request: the request.
        line: its answer.
        base_url: the address that answered.
        timeout: seconds for one request, for messages.
    """
    return _Reader(request, base_url, timeout).read(line.status, line.body)


class _Reader:
    """Reads the answer to one request."""

    def __init__(self, request: BatchRequest, base_url: str, timeout: float) -> None:
        self._request, self._host, self._timeout = request, host_of(base_url), timeout
        before = request.history
        self._log = AttemptLog(
            request.task,
            cap=before.cap,
            attempts=before.attempts + 1,
            answers=before.answers,
            readable=before.readable,
            broken=Counter(before.broken),
            usage=before.usage,
            cap_raised=before.lengthened,
        )

    def read(self, status: int, body: Mapping[str, Any] | None) -> AnswerResult:
        if status != OK:
            return self._without_answer(stated_error(body, status), None)
        completion = read_completion(body)
        if completion is None:
            return self._without_answer(ObservedError("not_json"), None)
        flaw = self._log.record_completion(completion)
        if flaw is not None:
            return self._without_answer(flaw, completion.usage)
        return self._answer(completion)

    def _without_answer(self, observed: ObservedError, usage: Usage | None) -> AnswerResult:
        longer = observed.kind == "truncated" and self._log.raise_cap()
        rule = find_rule(observed)
        if longer or rule.policy in RETRIED:
            return self._result(SendAgain(rule.reason, self._history()), usage)
        return self._result(self._no_label(observed, ""), usage)

    def _answer(self, completion: Completion) -> AnswerResult:
        """Return the label, or one re-ask for an answer that breaks the schema or contract."""
        text, usage = completion.content, completion.usage
        token = ATTEMPT_LOG.set(self._log)
        try:
            answer = self._log.read(text, strict=True)
        except ValidationError as error:
            observed, detail = self._log.rejection(error)
        else:
            return self._result(self._reply(answer), usage)
        finally:
            ATTEMPT_LOG.reset(token)
        history = self._history()
        if history.reasks >= self._request.reasks:
            return self._result(self._no_label(observed, detail), usage)
        reask = {
            "reasks": history.reasks + 1,
            "answer": text,
            "complaint": self._log.reask_message(),
        }
        again = SendAgain(find_rule(observed).reason, history.model_copy(update=reask))
        return self._result(again, usage)

    def _result(
        self, outcome: JudgeReply[Frozen] | UnusableAnswer | SendAgain, usage: Usage | None
    ) -> AnswerResult:
        return AnswerResult(outcome, self._history(), usage)

    def _reply(self, answer: Frozen) -> JudgeReply[Frozen]:
        # The time that the answer took inside the batch is not known.
        known = {"seconds": None, "reasks": self._request.history.reasks}
        facts = self._log.facts(self._host).model_copy(update=known)
        return JudgeReply(answer, facts, tokens=self._log.tokens, repairs=self._log.repairs)

    def _no_label(self, observed: ObservedError, detail: str) -> UnusableAnswer:
        rule, attempts = find_rule(observed), self._log.attempts
        message = (
            f"batch, model {self._request.task.signature.model!r} at {self._host}, after "
            f"{attempts} request{'s' * (attempts != 1)}: "
            f"{explain(observed, timeout=self._timeout, detail=detail)}"
        )
        return UnusableAnswer(
            message,
            reason=rule.reason,
            attempts=attempts,
            violations=self._log.violations,
            usage=self._log.usage,
            reasks=self._request.history.reasks,
            lasting=rule.lasting,
        )

    def _history(self) -> History:
        """Return the history for a later round; the re-ask of an earlier one is repeated."""
        log, before = self._log, self._request.history
        return History(
            attempts=log.attempts,
            answers=log.answers,
            readable=log.readable,
            reasks=before.reasks,
            broken=dict(log.broken),
            usage=log.usage,
            cap=log.cap,
            lengthened=log.cap_raised,
            answer=before.answer,
            complaint=before.complaint,
        )


def _parse_line(content: bytes) -> AnswerLine | None:
    try:
        line = read_body(content)
        if b"\\ud" in content.lower():
            line = _without_surrogates(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(line, dict) or not isinstance(line.get("custom_id"), str):
        return None
    response, error = line.get("response"), line.get("error")
    if isinstance(response, dict) and type(response.get("status_code")) is int:
        body = response.get("body")
        known = body if isinstance(body, dict) else None
        return AnswerLine(line["custom_id"], response["status_code"], known, "")
    if isinstance(error, dict):
        return AnswerLine(line["custom_id"], 0, None, text_of(error.get("code")) or "none")
    return None


def _without_surrogates(value: object) -> object:
    """Replace lone surrogates, which no file can hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {
            _without_surrogates(name): _without_surrogates(item) for name, item in value.items()
        }
    return value
