"""What the answers to one request of a batch mean: the same as online."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from pydantic import ValidationError

from labeler.judges.judge import UnusableAnswer
from labeler.judges.openai.address import host_of
from labeler.judges.openai.attempts import AttemptLog
from labeler.judges.openai.error_rules import RETRIED, AttemptFailed, ObservedError, find_rule
from labeler.judges.openai.request import OpenAISpec
from labeler.judges.openai.retries import Once, final_error
from labeler.judges.task import JudgeReply, Messages
from labeler.plugins.batch.client import UNREAD, parse_line
from labeler.plugins.batch.folder import BatchRequest
from labeler.sentences.example import Frozen


@dataclass
class Judged:
    """The state of a request after its answers.

    Attributes:
        log: of its attempts; the next one has its cap.
        messages: of the next request.
        outcome: ``None`` if the request has to be sent, or sent again.
        flaw: why the last answer is unusable.
    """

    log: AttemptLog
    messages: Messages
    outcome: JudgeReply[Frozen] | UnusableAnswer | None = None
    flaw: ObservedError | None = None


def judge(request: BatchRequest, spec: OpenAISpec) -> Judged:
    """Judge the answers to a request, one after the other, by the rules of the online judge."""
    task, host = request.task, host_of(spec.base_url)
    log = AttemptLog(task, cap=spec.max_output_tokens)
    state, once = Judged(log, task.messages), Once()
    for text in request.answers:
        log.attempts, log.violations = log.attempts + 1, ()
        found, detail = (parse_line(text) or UNREAD).completion, ""
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
        if state.flaw is not None and not is_again:
            failed = AttemptFailed(state.flaw, detail)
            failed.stops = False  # the lines of a batch are answered already
            who = f"batch, model {spec.model!r} at {host}"
            error_ = final_error(failed, who, log.attempts, spec.timeout, **log.in_vain())
            state.outcome = cast("UnusableAnswer", error_)
            break
    return state
