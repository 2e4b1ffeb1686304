"""Requests to a hosted model: retries, reports to the pace of the run, and the look-up before them.

Judge and embedder share this module, which is the only retry layer. tenacity repeats attempts;
the pace of the run holds them back and learns how each one ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception
from tenacity.wait import wait_random_exponential

from labeler.errors import FatalJudgeError, JudgeError
from labeler.judges.judge import UnusableAnswer
from labeler.judges.openai.address import plain_code
from labeler.judges.openai.error_rules import (
    RETRIED,
    AttemptFailed,
    ObservedError,
    RetryPolicy,
    Rule,
    explain,
)
from labeler.judges.openai.reading import at, json_of, text_of
from labeler.judges.openai.sender import Sender
from labeler.judges.openai.server import Server, quote
from labeler.judges.pace import BudgetSpent, Pace, SentRequest, Stopped
from labeler.judges.pricing import Price
from labeler.labels.record import Usage

LONGEST_PAUSE = 60.0
"""Upper limit of the back-off in seconds, unless the server names a time."""
_LONGEST_RATE_PAUSE = 8.0
"""The same after a rate limit: the pace slows the whole run down as well."""
_SHORT_PAUSE = 2.0
"""Longest server-named wait, in seconds, that never holds back other records. Servers round waits
up to a second, in which the whole run could send much of its quota."""

_TOO_MANY = 429
BACK_OFF = wait_random_exponential(multiplier=1, max=LONGEST_PAUSE)
"""Full jitter, so that records that fail together do not return together."""


class Once:
    """Counts the errors of one answer after which it is asked for once more only."""

    def __init__(self) -> None:
        self._errors = 0

    def is_last(self, rule: Rule) -> bool:
        """Count an error; return True if the answer is not asked for again."""
        self._errors += rule.once
        return rule.once and self._errors > 1


def retrying(
    pace: Pace, max_attempts: int, sleep: Callable[[float], Awaitable[None]]
) -> AsyncRetrying:
    """Return the retries of one request, which end in the last attempt's :class:`AttemptFailed`.

    Args:
        pace: of the run.
        max_attempts: attempts at most that count against the request.
        sleep: waits between attempts.
    """
    uncounted, once = 0, Once()

    def exhausted(state: RetryCallState) -> bool:
        nonlocal uncounted
        error = error_of(state)
        if error is None or error.again:
            uncounted += 1
            return False
        uncounted += not error.counts
        return once.is_last(error.rule) or state.attempt_number - uncounted >= max_attempts

    async def pause(seconds: float) -> None:
        if seconds:
            await pace.sleep(seconds, sleep)

    return AsyncRetrying(
        stop=exhausted,
        wait=_pause,
        retry=retry_if_exception(is_retried),
        sleep=pause,
        reraise=True,
    )


def concluded(
    error: AttemptFailed | BudgetSpent | Stopped, pace: Pace, row: Hashable, server: Server
) -> AttemptFailed:
    """Return the error of a row that got no usable answer, and report it to the pace."""
    if isinstance(error, AttemptFailed):
        error.detail = server.key_hint(error.observed) or error.detail
        if error.rule.reason != "timeout":  # counted by attempt
            settle_end(pace, row, error)
        return error
    if isinstance(error, BudgetSpent):
        return AttemptFailed(ObservedError("budget"), detail=str(error))
    return AttemptFailed(ObservedError("interrupted"))


def final_error(
    failed: AttemptFailed,
    who: str,
    sent: int,
    timeout: float,
    **facts: Any,  # noqa: ANN401 - its own
) -> JudgeError:
    """Return the error to raise for a row that got no usable answer.

    Args:
        failed: the last attempt.
        who: what was asked and where, for the message.
        sent: requests sent.
        timeout: deadline of an attempt in seconds.
        facts: further facts of an :class:`UnusableAnswer`.
    """
    rule = failed.rule
    sent = 0 if failed.observed.kind == "no_key" else sent
    said = explain(failed.observed, timeout=timeout, detail=failed.detail)
    message = f"{who}, after {sent} request{'s' * (sent != 1)}: {said}"
    if failed.stops:
        return FatalJudgeError(message, reason=rule.reason, attempts=sent)
    return UnusableAnswer(message, reason=rule.reason, attempts=sent, lasting=rule.lasting, **facts)


def report_usage(sent: SentRequest, usage: Usage | None, price: Price | None) -> None:
    """Report the tokens and the cost of an answer."""
    if usage is None:
        sent.answered()
        return
    cost = None if price is None else price.cost(usage)
    sent.answered(tokens=usage.prompt_tokens + usage.completion_tokens, cost=cost)


def report_failure(pace: Pace, sent: SentRequest, failed: AttemptFailed) -> AttemptFailed:
    """Report an attempt without an answer to the pace of the run, and return the error to raise."""
    observed, policy = failed.observed, failed.rule.policy
    if failed.rule.reason == "timeout":  # each attempt counts: a time-out takes long
        settle_end(pace, sent, failed)
    # A server that is busy takes some requests; one that takes none is away.
    is_away = observed.status != _TOO_MANY and pace.outage.in_vain >= pace.level.limit
    if policy is RetryPolicy.RATE and not is_away:
        sent.limited()
    elif policy in RETRIED and not failed.rule.of_model:
        sent.failed(charged=failed.charged)
    elif sent.end is None:
        # A rejected request costs nothing; of an unread answer, the charge is unknown.
        if failed.charged or policy is RetryPolicy.RETRY:
            sent.answered()
        else:
            sent.answered(tokens=0, cost=Decimal(0))
    wait = observed.retry_after or (sent.refill if policy is RetryPolicy.RATE else 0.0)
    if policy in RETRIED and wait > _SHORT_PAUSE:
        pace.hold(wait)
    if pace.waits_out_outages():
        failed.counts = policy is not RetryPolicy.RATE and not sent.probe
    elif sent.probe:
        outage = f"no answer for {pace.limits.max_outage / 60:.0f} min"
        detail = f"{outage}; the latest: {failed.rule.summary}"
        return AttemptFailed(ObservedError("unreachable"), detail)
    return failed


def settle_end(pace: Pace, row: Hashable, failed: AttemptFailed) -> None:
    """Report that a row got no label; mark the error if it shows that no row will get one."""
    observed, rule = failed.observed, failed.rule
    if failed.stops:
        return
    ending = (observed.status, plain_code(observed.code), rule.reason)
    alike = pace.health.failed(row, ending, of_row=rule.of_row, passing=rule.policy in RETRIED)
    if alike:
        failed.stops = True
        words = quote(observed.message)
        quoted = f'; the server: "{words}"' if words else ""
        often = f"this happened {alike} times with no success in between{quoted}"
        failed.detail = "; ".join(filter(None, [failed.detail, often]))


def error_of(state: RetryCallState) -> AttemptFailed | None:
    """Return the error of the latest attempt."""
    error = state.outcome.exception() if state.outcome else None
    return error if isinstance(error, AttemptFailed) else None


def is_retried(error: BaseException) -> bool:
    """Return true if another attempt may succeed."""
    # tenacity passes every BaseException; Ctrl-C and cancellation are not AttemptFailed.
    if not isinstance(error, AttemptFailed) or error.stops:
        return False
    return error.again or error.rule.policy in RETRIED


def _pause(state: RetryCallState) -> float:
    """Return the back-off in seconds, up to a minute of a wait that the server names."""
    pause, error = float(BACK_OFF(state)), error_of(state)
    if error is None or error.again:
        return 0.0
    if error.rule.policy is RetryPolicy.RATE:
        pause = min(pause, _LONGEST_RATE_PAUSE)
    return max(pause, min(error.observed.retry_after or 0.0, LONGEST_PAUSE))


PATIENCE = 20.0
"""Seconds that the look-up may take."""
_SOON_DAYS = 60
_CONCLUSIVE = frozenset({"authentication", "quota"})


async def look_up(sender: Sender, url: str, model: str) -> str:
    """Look a model up at an address, and return a warning for the user, or "".

    Raises:
        AttemptFailed: no record can be labeled.
    """
    try:
        async with asyncio.timeout(PATIENCE):
            found = json_of((await sender.send("GET", url)).whole)
    except TimeoutError:
        return ""
    except AttemptFailed as failed:
        failed.stops = True  # whatever a row with the same error would mean
        if failed.rule.reason in _CONCLUSIVE:  # no document is in the look-up
            raise
        return ""
    try:
        last = datetime.fromisoformat(text_of(at(found, "shutdown_date"))).date()
    except ValueError:
        return ""
    days = (last - datetime.now(UTC).date()).days
    if days > _SOON_DAYS:
        return ""
    when = f"in {days} days" if days > 0 else "now"
    return (
        f"the provider shuts model {model!r} down on {last}, {when}: stored labels stay, but more "
        "like them cannot be made after that"
    )
