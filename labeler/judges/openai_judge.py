"""A judge behind OpenAI's chat completions API, or any server that speaks it.

One structured call a record: openai carries it, instructor reads the answer and asks once more
where it broke the label contract, tenacity repeats what failed on the way. What comes in is made
plain here: no object and no exception of theirs leaves this module.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any, cast

from instructor import AsyncInstructor, Mode, patch
from instructor.core import InstructorRetryException
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam
from openai.types.shared_params import ResponseFormatJSONSchema
from pydantic import SecretStr, ValidationError
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_random_exponential

from labeler.errors import FatalJudgeError
from labeler.judges import STOPPING, JudgeReply, UnusableAnswer, stopping
from labeler.judges.exchange import EXCHANGE, CheckedAnswer, Exchange
from labeler.judges.experience import Experience
from labeler.judges.failures import Course, Failed, Symptom, diagnose, explain
from labeler.judges.openai_client import (
    WIRE_ERRORS,
    host_of,
    open_client,
    symptom_of,
    usable_key,
)
from labeler.judges.openai_spec import spec_of
from labeler.labels import GPTLabelingOutput
from labeler.prompting import JudgeRequest, ResponseSchema

_LONGEST_PAUSE = 60.0
"""Seconds that back-off grows to where the server names no time."""


class OpenAIJudge:
    """Labels records with a hosted model.

    A judge serves any number of runs, also at once: each event loop has a client of its own until
    :meth:`aclose` is called on it.

    Args:
        model: the model to ask.
        api_key: sent to ``base_url``'s host and shown nowhere.
        sleep: waits between attempts.
        settings: the other fields of :class:`~labeler.judges.openai_spec.OpenAISpec`.

    Raises:
        UsageError: a setting is unknown or out of range, the address is not safe, or the key
            cannot be one.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        **settings: Any,  # noqa: ANN401 - checked by OpenAISpec
    ) -> None:
        self.spec = spec_of(model, settings)
        self._key = SecretStr(usable_key(api_key))
        self._host = host_of(self.spec.base_url)
        self._sleep = sleep
        self._experience = Experience()
        self._clients: dict[asyncio.AbstractEventLoop, AsyncOpenAI] = {}
        # JSON_SCHEMA mode reads the answer as we need it. What instructor would send is set aside:
        # no mode of it asks for a strict schema, so _complete writes the request itself.
        self._instructor = AsyncInstructor(
            client=None,
            create=cast("Callable[..., Any]", patch(create=self._complete, mode=Mode.JSON_SCHEMA)),
            mode=Mode.JSON_SCHEMA,
        )

    async def label(self, request: JudgeRequest) -> JudgeReply:
        """Judge one record.

        Raises:
            UnusableAnswer: this record got no usable answer (a :class:`JudgeError`).
            FatalJudgeError: no record can be labelled with this key, model and address.
        """
        exchange = Exchange(request, cap=self.spec.max_output_tokens)
        token = EXCHANGE.set(exchange)
        try:
            answer = await self._ask(exchange)
        finally:
            EXCHANGE.reset(token)
        self._experience.succeed()
        # instructor answers with a subclass that it made on the way; a plain label leaves.
        plain = GPTLabelingOutput.model_validate(answer.model_dump())
        return JudgeReply(plain, exchange.facts(self._host))

    async def aclose(self) -> None:
        """Close the connections of the running event loop; the judge may be used again."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    async def _ask(self, exchange: Exchange) -> GPTLabelingOutput:
        try:
            answer: GPTLabelingOutput = await self._instructor.create(
                response_model=CheckedAnswer,
                messages=cast("list[ChatCompletionMessageParam]", list(exchange.request.messages)),
                max_retries=self.spec.reasks,
            )
        except InstructorRetryException as error:
            cause = error.__cause__ or error
        else:
            return answer
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
        retrying = AsyncRetrying(
            stop=stop_after_attempt(self.spec.max_attempts),
            wait=_pause,
            retry=retry_if_exception(self._worth_retrying),
            sleep=self._rest,
            reraise=True,
        )
        return await retrying(self._attempt, exchange, messages)

    async def _rest(self, seconds: float) -> None:
        """Sleep, but not longer than the run goes on."""
        stop = STOPPING.get()
        if stop is None:
            await self._sleep(seconds)
            return
        sleeping = asyncio.ensure_future(self._sleep(seconds))
        stopped = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait({sleeping, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if sleeping.done():
                sleeping.result()
        finally:
            sleeping.cancel()
            stopped.cancel()

    def _worth_retrying(self, error: BaseException) -> bool:
        # tenacity hands over every BaseException; Ctrl-C and cancellation are no Failed.
        return (
            isinstance(error, Failed)
            and error.rule.course is Course.RETRY
            and (error.symptom.retry_after or 0.0) <= self.spec.max_retry_after
        )

    async def _attempt(
        self, exchange: Exchange, messages: list[ChatCompletionMessageParam]
    ) -> ChatCompletion:
        """Send one request, unless the run is being stopped."""
        if stopping():
            raise Failed(Symptom("interrupted"))
        client = self._client()
        exchange.attempts += 1
        try:
            # The client's own time-out starts anew with every byte; this one does not.
            async with asyncio.timeout(self.spec.timeout):
                completion: ChatCompletion = await client.chat.completions.create(
                    **self._parameters(exchange), messages=messages
                )
        except WIRE_ERRORS as error:
            symptom = symptom_of(error)
        else:
            flaw = exchange.note(completion)
            if flaw is None:
                return completion
            symptom = Symptom(flaw)
        raise Failed(symptom)

    def _parameters(self, exchange: Exchange) -> dict[str, Any]:
        """The request's body, but for the messages."""
        parameters = {
            **self.spec.parameters(),
            "response_format": response_format(exchange.request.schema),
        }
        if exchange.cap is not None:
            parameters["max_completion_tokens"] = exchange.cap
        return parameters

    def _failure(self, exchange: Exchange, cause: BaseException) -> BaseException:
        """Say in our words why there is no label; what is not foreseen is passed on as it is."""
        if isinstance(cause, Failed):
            symptom, history = self._experience.weigh(cause.symptom)
            detail = history or self._impatience(symptom)
        elif isinstance(cause, ValidationError):
            symptom, detail = exchange.verdict(cause)
        else:
            return cause
        rule = diagnose(symptom)
        message = (
            f"judge openai, model {self.spec.model!r} at {self._host}, after "
            f"{exchange.attempts} request{'s' * (exchange.attempts != 1)}: "
            f"{explain(symptom, timeout=self.spec.timeout, detail=detail)}"
        )
        if rule.course in {Course.FATAL, Course.SUSPECT}:
            return FatalJudgeError(message, reason=rule.reason, attempts=exchange.attempts)
        return UnusableAnswer(
            message,
            reason=rule.reason,
            attempts=exchange.attempts,
            violations=exchange.violations,
            usage=exchange.usage,
        )

    def _impatience(self, symptom: Symptom) -> str:
        wait, limit = symptom.retry_after or 0.0, self.spec.max_retry_after
        return f"it asks to wait {wait:g} s, max_retry_after is {limit:g}" if wait > limit else ""

    def _client(self) -> AsyncOpenAI:
        """The client, made on the event loop that uses it: a client cannot change loops."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = open_client(
                self.spec.base_url,
                self._key.get_secret_value(),
                timeout=self.spec.timeout,
                organization=self.spec.organization,
                project=self.spec.project,
            )
        return self._clients[loop]


def response_format(schema: ResponseSchema) -> ResponseFormatJSONSchema:
    """The strict response format of a published schema, property order as published."""
    return {
        "type": "json_schema",
        "json_schema": {
            "name": re.sub(r"[^A-Za-z0-9_-]", "_", schema.name)[:64],
            "strict": True,
            "schema": dict(schema.json_schema),
        },
    }


def _pause(state: RetryCallState) -> float:
    """Seconds until the next attempt: what the server asks for, and never less than back-off."""
    error = state.outcome.exception() if state.outcome else None
    asked = (error.symptom.retry_after if isinstance(error, Failed) else None) or 0.0
    return max(asked, _BACK_OFF(state))


_BACK_OFF = wait_random_exponential(multiplier=1, max=_LONGEST_PAUSE)
"""Full jitter, so that many records that fail together do not come back together."""


class _NotWhileJudging(logging.Filter):
    """Silences instructor in a judge's call: it logs answers, and errors that we raise anyway."""

    def filter(self, _: logging.LogRecord) -> bool:
        return EXCHANGE.get(None) is None


for _name in ("instructor", "instructor.v2", "instructor.v2.retry"):
    logging.getLogger(_name).addFilter(_NotWhileJudging())
