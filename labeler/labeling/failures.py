"""Failures: the outcome of a row without a record, and the reason."""

from __future__ import annotations

import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

from labeler.errors import BadRow, UnstorableRecord
from labeler.judges.judge import UnusableAnswer
from labeler.judges.task import JudgeReply, Task
from labeler.labeling.tasks import TOO_LONG, MissingField, prompt_tokens
from labeler.labels.contract import Violation
from labeler.labels.record import AnyOutcome, AnyRecord, LabelFailure, ReplyFacts, Usage
from labeler.sentences.example import Example, KeyedExample
from labeler.version import __version__

UNSTORABLE = "unstorable"
"""Reason of a failure: no store can keep the record."""


def record_or_failure(task: Task[Any], reply: JudgeReply[Any]) -> AnyOutcome:
    """Check a reply: return its record, or a failure if its answer breaks the contract."""
    facts = reply.facts
    if facts.labeler_version != __version__:
        facts = facts.model_copy(update={"labeler_version": __version__})
        reply = replace(reply, facts=facts)
    checked = task.record(reply)
    if not isinstance(checked, tuple):
        return checked
    message = f"the judge broke the label contract: {'; '.join(map(str, checked))}"
    return task_failure(
        task, "contract", message, **_spent(facts), violations=checked, lasting=True
    )


def task_failure(
    task: Task[Any],
    reason: str,
    message: str,
    *,
    attempts: int = 1,
    reasks: int = 0,
    usage: Usage | None = None,
    violations: tuple[Violation, ...] = (),
    lasting: bool = False,
) -> LabelFailure:
    """Return the failure of a task; the row's id is put before the message."""
    return LabelFailure(
        id=task.example.id,
        reason=reason,
        message=f"{task.example.id!r}: {message}",
        key=task.key,
        signature=task.signature,
        metadata=task.example.metadata,
        attempts=attempts,
        reasks=reasks,
        usage=usage,
        violations=violations,
        lasting=lasting,
    )


def _spent(facts: ReplyFacts | UnusableAnswer) -> dict[str, Any]:
    """Return what an answer took, as fields of a failure."""
    return {"attempts": facts.attempts, "reasks": facts.reasks, "usage": facts.usage}


def unusable(task: Task[Any], error: UnusableAnswer) -> LabelFailure:
    """Return the failure of a task that was paid for without a usable answer."""
    message = str(error)
    if error.reason == TOO_LONG:  # the server's own words have its limit
        message += f"; the prompt has about {prompt_tokens(task):,} tokens"
    return task_failure(
        task,
        error.reason,
        message,
        **_spent(error),
        violations=error.violations,
        lasting=error.lasting,
    )


def bad_row(error: BadRow, message: str, example: Example | KeyedExample) -> LabelFailure:
    """Return the failure of a row without a task."""
    return LabelFailure(
        id=example.id,
        reason=error.reason,
        message=message,
        signature=error.signature if isinstance(error, MissingField) else None,
        metadata=example.metadata,
    )


def unstorable(task: Task[Any], record: AnyRecord, error: UnstorableRecord) -> LabelFailure:
    """Return the failure of a record that was paid for and that no store can keep."""
    return task_failure(task, UNSTORABLE, str(error), **_spent(record.reply), lasting=True)


def judge_bug(task: Task[Any], error: BaseException) -> LabelFailure:
    """Return the failure of a judge that raised an unexpected exception.

    The exception's own message may hold a key or a document and is left out.
    """
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return task_failure(
        task,
        "judge_error",
        f"judge {task.signature.judge!r} raised {type(error).__name__}{place}: "
        "a fault of the judge's code, not of the record",
    )


def repeated(failure: LabelFailure, example: KeyedExample) -> LabelFailure:
    """Return a known failure for another row with the same key; it cost nothing."""
    message = failure.message.removeprefix(f"{failure.id!r}: ")
    on_request = "; asked again only on request (retry_failed, --retry-failed)"
    if failure.lasting and on_request not in message:  # a retrieval label's has it
        message += on_request
    own = {"id": example.id, "message": f"{example.id!r}: {message}", "metadata": example.metadata}
    return failure.model_copy(update={**own, "attempts": 0, "reasks": 0, "usage": None})
