"""A judge behind OpenAI's chat completions API, or any server that speaks it.

One structured call a record: openai carries it, instructor reads the answer and asks once more
where it broke the label contract, tenacity repeats what failed on the way. What comes in is made
plain here: no object and no exception of theirs leaves this module.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache, lru_cache
from typing import Any, NamedTuple, cast

from instructor import AsyncInstructor, Mode, OpenAISchema, patch
from instructor.core import InstructorRetryException
from instructor.v2 import Provider, mode_registry
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam
from pydantic import SecretStr, ValidationError
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception
from tenacity.wait import wait_random_exponential

from labeler.errors import FatalJudgeError, UsageError
from labeler.judges.judge import UnusableAnswer
from labeler.judges.openai.address import host_of, usable_key
from labeler.judges.openai.attempts import EXCHANGE, Exchange, reader_of
from labeler.judges.openai.client import (
    WIRE_ERRORS,
    completion_of,
    headers_of,
    may_be_charged,
    open_client,
    quota_of,
    send,
    symptom_of,
    usage_of,
)
from labeler.judges.openai.failures import Course, Failed, Symptom, diagnose, explain
from labeler.judges.openai.health import Experience
from labeler.judges.openai.preflight import preflight
from labeler.judges.openai.request import request_body
from labeler.judges.openai.spec import spec_of
from labeler.judges.pricing import PRICE_FORM, Price, price_of
from labeler.judges.task import JudgeReply, Task
from labeler.judges.tokens import Approximation, compact, request_tokens, request_tokens_at_most
from labeler.judges.traffic.traffic import BudgetSpent, Sent, Size, Stopped, current
from labeler.labels.record import Usage
from labeler.labels.schemas import ResponseSchema
from labeler.sentences.example import Frozen

# Left alone, instructor imports what reads answers when the first one is on its way, and with it
# all other requests of the run wait.
mode_registry.get_handlers(Provider.OPENAI, Mode.JSON_SCHEMA)

_LONGEST_PAUSE = 60.0
"""Seconds that back-off grows to where the server names no time."""
_LONGEST_RATE_PAUSE = 8.0
"""The same after a rate limit: the traffic of the whole run slows down besides."""
_SHORT_PAUSE = 2.0
"""Seconds up to which a time that the server names concerns the one record: servers round it up to
a second, in which the whole run could send much of what they allow."""


class OpenAIJudge:
    """Labels records with a hosted model.

    A judge serves any number of runs, also at once: each event loop has a client of its own until
    :meth:`aclose` is called on it.

    Args:
        model: the model to ask.
        api_key: sent to ``base_url``'s host and shown nowhere.
        price: what the model's tokens cost; by default what the table of prices says, if anything.
        sleep: waits between attempts.
        settings: the other fields of :class:`~labeler.judges.openai.spec.OpenAISpec`.

    Raises:
        UsageError: a setting is unknown or out of range, the address is not safe, or the key
            cannot be one.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str,
        price: Price | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        **settings: Any,  # noqa: ANN401 - checked by OpenAISpec
    ) -> None:
        self.spec = spec_of(model, settings)
        self._key = SecretStr(usable_key(api_key))
        self._host = host_of(self.spec.base_url)
        self._sleep = sleep
        self.price = price or price_of(model, self.spec.base_url)
        self._counter = Approximation()
        self._experience = Experience()
        self._lines: dict[asyncio.AbstractEventLoop, _Line] = {}
        # JSON_SCHEMA mode reads the answer as we need it. What instructor would send is set aside:
        # no mode of it asks for a strict schema, so _complete writes the request itself.
        self._instructor = AsyncInstructor(
            client=None,
            create=cast("Callable[..., Any]", patch(create=self._complete, mode=Mode.JSON_SCHEMA)),
            mode=Mode.JSON_SCHEMA,
        )

    async def label(self, request: Task) -> JudgeReply[Frozen]:
        """Judge one record.

        Raises:
            UnusableAnswer: this record got no usable answer (a :class:`JudgeError`).
            FatalJudgeError: no record can be labelled with this key, model and address.
            RunPaused: the server asks to wait longer than the run may.
            UsageError: the run has a budget, and nobody knows what an answer may cost.
        """
        exchange = Exchange(request, cap=self.spec.max_output_tokens, traffic=current())
        if exchange.traffic.budget.cap is not None:
            self.require_bounds()
        await self._be_ready(exchange)
        token = EXCHANGE.set(exchange)
        try:
            answer = await self._ask(exchange)
        finally:
            EXCHANGE.reset(token)
        self._experience.succeed()
        return JudgeReply(answer, exchange.facts(self._host), tokens=exchange.tokens)

    async def aclose(self) -> None:
        """Close the connections of the running event loop; the judge may be used again."""
        line = self._lines.pop(asyncio.get_running_loop(), None)
        if line is not None:
            await line.close()

    async def _be_ready(self, exchange: Exchange) -> None:
        """Find out, before the first record is sent, whether any record could be labelled."""
        line = self._line()
        if line.checked or not self.spec.preflight:
            return
        async with line.checking:
            if not line.checked:
                with line.client() as client:
                    looking = preflight(client, self.spec.model)
                    try:  # also where the look-up of another record has ended the run
                        found = await exchange.traffic.unless_stopped(looking)
                    except Stopped:
                        interrupted = Failed(Symptom("interrupted"))
                        raise self._failure(exchange, interrupted) from None
                self._experience.alive |= found.alive
                if found.failure is not None:
                    raise self._failure(exchange, Failed(found.failure), sent=1)
                if found.warning:
                    exchange.traffic.notice(found.warning)
                line.checked = True

    async def _ask(self, exchange: Exchange) -> Frozen:
        try:
            read: Any = await self._instructor.create(
                response_model=_readable(exchange.request.answer_type),
                messages=cast("list[ChatCompletionMessageParam]", list(exchange.request.messages)),
                max_retries=self.spec.reasks,
            )
        except InstructorRetryException as error:
            cause = error.__cause__ or error
        else:
            found: _Read = read
            return found.answer
        # Raised out here, so that no exception hangs on ours that holds the key or the documents.
        raise self._failure(exchange, cause)

    async def _complete(
        self, *, messages: list[ChatCompletionMessageParam], **_: object
    ) -> ChatCompletion:
        """What instructor calls for each ask: one completion, however many requests it takes."""
        exchange = EXCHANGE.get()
        if exchange.answers:
            # instructor's own words name its classes and the version of pydantic; these are ours.
            messages = [*messages[:-1], {"role": "user", "content": exchange.reproof()}]
        exchange.violations = ()
        try:
            return await self._persist(exchange, messages)
        except Failed as failed:
            if failed.symptom.sign != "truncated" or not exchange.lengthen():
                raise
        return await self._persist(exchange, messages)

    async def _persist(
        self, exchange: Exchange, messages: list[ChatCompletionMessageParam]
    ) -> ChatCompletion:
        """The one retry layer."""
        exchange.forgiven = 0
        retrying = AsyncRetrying(
            stop=lambda state: self._enough(exchange, state),
            wait=_pause,
            retry=retry_if_exception(_worth_retrying),
            sleep=lambda seconds: exchange.traffic.rest(seconds, self._sleep),
            reraise=True,
        )
        return await retrying(self._attempt, exchange, messages)

    def _enough(self, exchange: Exchange, state: RetryCallState) -> bool:
        return state.attempt_number - exchange.forgiven >= self.spec.max_attempts

    async def _attempt(
        self, exchange: Exchange, messages: list[ChatCompletionMessageParam]
    ) -> ChatCompletion:
        """Send one request as soon as the traffic allows it, unless the run is being stopped."""
        traffic = exchange.traffic
        try:
            size = self._size(exchange, messages)
            async with traffic.request(exchange.request.key, size) as sent:
                exchange.attempts += 1
                return await self._send(exchange, messages, sent)
        except Stopped:
            raise Failed(Symptom("interrupted")) from None
        except BudgetSpent as spent:
            raise Failed(Symptom("budget"), detail=str(spent)) from None

    async def _send(
        self, exchange: Exchange, messages: list[ChatCompletionMessageParam], sent: Sent
    ) -> ChatCompletion:
        body = request_body(self.spec, exchange.request, messages, exchange.cap)
        try:
            # The client's own time-out starts anew with every byte; this one does not.
            async with asyncio.timeout(self.spec.timeout):
                with self._line().client() as client:
                    response = await send(client, body)
                completion = completion_of(response)
        except WIRE_ERRORS as error:
            symptom, charged = symptom_of(error), may_be_charged(error)
            _tell_quotas(sent, headers_of(error))
        else:
            _tell_quotas(sent, response.headers)
            flaw = exchange.note(completion)
            if completion is not None:
                self._bill(sent, usage_of(completion))
                if flaw is None:
                    return completion
            symptom, charged = Symptom(flaw or "not_json"), True
        raise self._failed(exchange, sent, symptom, charged=charged)

    def _size(self, exchange: Exchange, messages: Sequence[Mapping[str, Any]]) -> Size:
        """What a request may take of the run's limits."""
        schema = _schema_text(exchange.request.schema)
        tokens = request_tokens(self._counter, messages, schema)
        tokens += exchange.request.expected_tokens
        if self.price is None or exchange.cap is None:
            return Size(tokens)
        at_most = request_tokens_at_most(self._counter, messages, schema)
        return Size(tokens, self.price.worst(at_most, exchange.cap))

    def _bill(self, sent: Sent, usage: Usage | None) -> None:
        """Tell the traffic what an answer took."""
        if usage is None:
            sent.answered()
            return
        cost = None if self.price is None else self.price.cost(usage)
        sent.answered(tokens=usage.prompt_tokens + usage.completion_tokens, cost=cost)

    def require_bounds(self) -> None:
        """Refuse a budget that could not be kept.

        Raises:
            UsageError: nobody knows what an answer may cost at most.
        """
        if self.price is None:
            raise UsageError(
                f"a budget needs a price, and none is known for {self.spec.model!r} at "
                f"{self._host}: give one (price, --price {PRICE_FORM})"
            )
        if self.spec.max_output_tokens is None:
            raise UsageError(
                "a budget needs max_output_tokens (--max-output-tokens): without a cap on its "
                "answer, nobody knows what a request may cost at most"
            )

    def _failed(self, exchange: Exchange, sent: Sent, symptom: Symptom, *, charged: bool) -> Failed:
        """Tell the traffic of a request that brought no answer, and forgive what all suffer."""
        failed, traffic = Failed(symptom), exchange.traffic
        course = failed.rule.course
        if course is Course.RATE:
            sent.limited()
        elif course is Course.RETRY:
            sent.failed(charged=charged)
        elif sent.end is None:
            sent.answered(tokens=0, cost=Decimal(0))  # refused, so that nothing was taken
        wait = symptom.retry_after or (sent.refill if course is Course.RATE else 0.0)
        if course in {Course.RATE, Course.RETRY} and wait > _SHORT_PAUSE:
            traffic.pause(wait)
        if traffic.patient():
            exchange.forgiven += course is Course.RATE or sent.probe
        elif sent.probe:
            away = f"no answer for {traffic.limits.max_outage / 60:.0f} min"
            return Failed(Symptom("unreachable"), f"{away}; the latest: {failed.rule.what}")
        return failed

    def _failure(
        self, exchange: Exchange, cause: BaseException, *, sent: int | None = None
    ) -> BaseException:
        """Say in our words why there is no label; what is not foreseen is passed on as it is."""
        sent = exchange.attempts if sent is None else sent
        if isinstance(cause, Failed):
            symptom, history = self._experience.weigh(cause.symptom)
            detail = history or cause.detail
        elif isinstance(cause, ValidationError):
            symptom, detail = exchange.verdict(cause)
        else:
            return cause
        rule = diagnose(symptom)
        message = (
            f"judge openai, model {self.spec.model!r} at {self._host}, after "
            f"{sent} request{'s' * (sent != 1)}: "
            f"{explain(symptom, timeout=self.spec.timeout, detail=detail)}"
        )
        if rule.course in {Course.FATAL, Course.SUSPECT}:
            return FatalJudgeError(message, reason=rule.reason, attempts=sent)
        return UnusableAnswer(
            message,
            reason=rule.reason,
            attempts=exchange.attempts,
            violations=exchange.violations,
            usage=exchange.usage,
            reasks=exchange.reasks,
            lasting=rule.lasting,
        )

    def _line(self) -> _Line:
        """The clients, made on the event loop that uses them: a client cannot change loops."""
        loop = asyncio.get_running_loop()
        if loop not in self._lines:
            self._lines[loop] = _Line(self._open)
        return self._lines[loop]

    def _open(self) -> AsyncOpenAI:
        return open_client(
            self.spec.base_url,
            self._key.get_secret_value(),
            timeout=self.spec.timeout,
            organization=self.spec.organization,
            project=self.spec.project,
        )


_CROWD = 8
"""Requests of one client at once from which another one is opened. For each request a client looks
at all of its idle connections, which for one client with 64 takes as long as the request itself."""
_MOST_CLIENTS = 8


@dataclass
class _Line:
    """The connections to the server from one event loop."""

    open: Callable[[], AsyncOpenAI]
    """Makes a client."""
    checking: asyncio.Lock = field(default_factory=asyncio.Lock)
    checked: bool = False
    """Whether the preflight is over."""
    _requests: dict[AsyncOpenAI, int] = field(default_factory=dict)
    """How many requests each client has out."""

    @contextmanager
    def client(self) -> Iterator[AsyncOpenAI]:
        """The client that has the least to do, for one request."""
        client = min(self._requests, key=self._requests.__getitem__, default=None)
        crowded = client is None or self._requests[client] >= _CROWD
        if client is None or (crowded and len(self._requests) < _MOST_CLIENTS):
            client = self.open()
            self._requests[client] = 0
        self._requests[client] += 1
        try:
            yield client
        finally:
            self._requests[client] -= 1

    async def close(self) -> None:
        """Close all connections."""
        for client in self._requests:
            await client.close()


def _tell_quotas(sent: Sent, headers: Mapping[str, str]) -> None:
    sent.told(requests=quota_of(headers, "requests"), tokens=quota_of(headers, "tokens"))


class _Read(NamedTuple):
    """An answer in a wrapping: instructor hangs the whole completion on every bare model."""

    answer: Frozen


@cache
def _readable(output: type[Frozen]) -> type[OpenAISchema]:
    """What instructor takes for an answer's class, made once: it would make one for every call.

    It has no fields: instructor looks through all of a class and of the classes of its parts, five
    times a call, which for a label takes as long as the rest of what it does.
    """

    class Answer(OpenAISchema):
        @classmethod
        def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:  # noqa: ANN401 - as above it
            """Nothing: the published schema is sent instead."""
            return {}

        @classmethod
        def model_validate_json(cls, *said: Any, **how: Any) -> Any:  # noqa: ANN401 - the same
            """Read the answer, and hold it against the contract."""
            return _Read(reader_of(output).validate_json(*said, **how))

    return Answer


@lru_cache
def _schema_text(schema: ResponseSchema) -> str:
    return compact(schema.json_schema)


def _worth_retrying(error: BaseException) -> bool:
    # tenacity hands over every BaseException; Ctrl-C and cancellation are no Failed.
    return isinstance(error, Failed) and error.rule.course in {Course.RETRY, Course.RATE}


def _pause(state: RetryCallState) -> float:
    """Seconds of back-off; a long time that the server names is waited for by the whole run."""
    error = state.outcome.exception() if state.outcome else None
    if not isinstance(error, Failed):
        return _BACK_OFF(state)
    limited = error.rule.course is Course.RATE
    pause = min(_BACK_OFF(state), _LONGEST_RATE_PAUSE if limited else _LONGEST_PAUSE)
    return max(pause, min(error.symptom.retry_after or 0.0, _SHORT_PAUSE))


_BACK_OFF = wait_random_exponential(multiplier=1, max=_LONGEST_PAUSE)
"""Full jitter, so that many records that fail together do not come back together."""


class _NotWhileJudging(logging.Filter):
    """Silences instructor in a judge's call: it logs answers, and errors that we raise anyway."""

    def filter(self, _: logging.LogRecord) -> bool:
        return EXCHANGE.get(None) is None


for _name in ("instructor", "instructor.v2", "instructor.v2.retry"):
    logging.getLogger(_name).addFilter(_NotWhileJudging())
