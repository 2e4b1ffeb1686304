"""Read answer files: each line is judged as the online judge judges the same answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

from pydantic import ValidationError

from labeler.judges.judge import UnusableAnswer
from labeler.judges.openai.address import host_of
from labeler.judges.openai.completion import object_of, read_completion, stated_error
from labeler.judges.openai.error_rules import RETRIED, AttemptFailed, ObservedError, find_rule
from labeler.judges.openai.reading import read_body
from labeler.judges.openai.retries import final_error
from labeler.judges.task import JudgeReply
from labeler.labels.record import Usage
from labeler.plugins.batch.requests import BatchRequest, History
from labeler.sentences.example import Frozen

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
