"""Judges behind a provider's API, whichever it is.

One structured call a record: a :class:`~labeler.judges.openai.wire.Wire` carries it, instructor
reads the answer and asks once more if it broke the label contract, tenacity repeats failed attempts
(see ``retries``). No object and no exception of these libraries leaves this module.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple, cast

from instructor import AsyncInstructor, Mode, OpenAISchema, patch
from instructor.core import InstructorRetryException
from instructor.v2 import Provider, mode_registry
from openai.types.chat import ChatCompletionMessageParam
from pydantic import ValidationError

from labeler.errors import FatalJudgeError, UsageError
from labeler.judges.judge import ModeRejected, UnusableAnswer
from labeler.judges.limits import Size
from labeler.judges.openai.access import KeySource
from labeler.judges.openai.address import environment_key
from labeler.judges.openai.attempts import ATTEMPT_LOG, AttemptLog
from labeler.judges.openai.client import Server, server_of
from labeler.judges.openai.completion import Completion
from labeler.judges.openai.error_rules import (
    FORMAT_NAMES,
    AttemptFailed,
    ObservedError,
    explain,
)
from labeler.judges.openai.request import mode_facts, mode_of, rejects_caching, request_parts
from labeler.judges.openai.retries import (
    Retries,
    accepted,
    report_failure,
    report_quotas,
    report_usage,
    settle_end,
)
from labeler.judges.openai.spec import OpenAISpec, spec_of
from labeler.judges.openai.wire import Reply, Request, Wire
from labeler.judges.pace import SentRequest, Stopped, current
from labeler.judges.pricing import PRICE_FORM, Price, price_of
from labeler.judges.task import JudgeReply, Task
from labeler.judges.tokens import Approximation, answer_cap, request_tokens, request_tokens_at_most
from labeler.sentences.example import Frozen

_HANDLERS = mode_registry.get_handlers(Provider.OPENAI, Mode.JSON_SCHEMA)
"""instructor's reader of answers, among others."""


class HostedJudge(ABC):
    """Labels records with a hosted model; each provider is a subclass.

    A judge serves any number of runs, also at once: each event loop has its own clients until
    :meth:`aclose` is called on that loop.

    Args:
        model: name of the model.
        api_key: sent to the host of ``base_url`` only, never shown; by default that of the
            environment, such as ``OPENAI_API_KEY``. A function, which may be async, is called for
            the key, and again when the key expires.
        price: price of the model's tokens; by default that of the price table, if listed.
        sleep: waits between attempts.
        settings: the other fields of :class:`~labeler.judges.openai.spec.OpenAISpec`.

    Raises:
        UsageError: a setting is unknown or out of range, the address is not safe, or the key
            is malformed.
    """

    provider: ClassVar[str]
    """Name in :data:`~labeler.judges.providers.PROVIDERS`, and the judge in label keys."""

    def __init__(
        self,
        model: str,
        *,
        api_key: str | KeySource | None = None,
        price: Price | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        **settings: Any,  # noqa: ANN401 - checked by OpenAISpec
    ) -> None:
        self.spec = spec_of(model, settings, self.provider)
        self.auto = settings.get("output_mode", "auto") == "auto"
        self._kept = frozenset[str]()
        self._mode: str = self.spec.output_mode or "strict"
        self._open = self.wires()
        if api_key is None and self.spec.api_key_command is None:
            api_key = environment_key(settings.get("base_url"), self.provider)
        self._server = server_of(self.spec, api_key)
        self._retries = Retries(self.spec.max_attempts, sleep)
        self.price = price or price_of(model, self.spec.base_url)
        self._counter = Approximation()
        self._clients: dict[asyncio.AbstractEventLoop, _OpenClient] = {}
        # JSON_SCHEMA mode reads answers as needed. No mode of instructor requests a strict schema,
        # so _complete ignores its request and writes its own.
        self._instructor = AsyncInstructor(
            client=None,
            create=cast("Callable[..., Any]", patch(create=self._complete, mode=Mode.JSON_SCHEMA)),
            mode=Mode.JSON_SCHEMA,
        )

    @staticmethod
    @abstractmethod
    def wires() -> Callable[[Server, OpenAISpec], Wire]:
        """Return what opens connections to the provider on the running event loop.

        Raises:
            UsageError: its client library is not installed.
        """

    async def label(self, task: Task) -> JudgeReply[Frozen]:
        """Judge one record.

        Raises:
            UnusableAnswer: this record got no usable answer (a :class:`JudgeError`).
            ModeRejected: the server does not accept the output mode of the task; the judge has
                chosen another one.
            FatalJudgeError: no record can be labeled with this key, model and address.
            RunPaused: the server asks to wait longer than the run may.
            UsageError: the run has a budget, and the model's price is unknown.
        """
        traffic = current()
        cap = self.spec.max_output_tokens
        if self._may_change(task):
            mode = self._begin_mode(task.schema.name)
            if not traffic.health.labels:  # each further mode would cost a request
                modes = self.spec.provider.modes
                traffic.health.doubt(len(modes) - 1 - modes.index(mode))
        if traffic.budget.cap is not None:
            self.require_bounds()
        if traffic.budget.cap is not None or self.spec.provider.requires_cap:
            cap = answer_cap(cap, task.expected_tokens)
        log = AttemptLog(task, cap=cap, traffic=traffic)
        await self._check_model(log)
        token = ATTEMPT_LOG.set(log)
        try:
            answer = await self._ask(log)
        finally:
            ATTEMPT_LOG.reset(token)
        traffic.health.schemas.add(task.schema.name)
        return self._reply(log, answer)

    def _reply(self, log: AttemptLog, answer: Any) -> JudgeReply[Frozen]:  # noqa: ANN401 - of _answer
        """Return the reply that an answer makes."""
        facts = log.facts(self.host)
        return JudgeReply(answer, facts, tokens=log.tokens, repairs=log.repairs)

    @property
    def host(self) -> str:
        """The host that is asked."""
        return self._server.host

    def choose_modes(self, known: Mapping[str, str], others: str | None) -> None:
        """Ask in the output modes of stored labels.

        Args:
            known: by schema; they stay, whatever the server accepts.
            others: first mode of other schemas, if any is known; it may change.
        """
        if self.auto:
            self._kept = frozenset(known)
            self._mode = others or self._mode
            self.spec = self.spec.in_modes(known, others)

    async def aclose(self) -> None:
        """Close the connections of the running event loop; the judge may be used again."""
        opened = self._clients.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            await opened.wire.aclose()

    async def _check_model(self, log: AttemptLog) -> None:
        """Look the model up once, before the first record is sent."""
        opened = self._opened()
        if opened.checked or not self.spec.preflight:
            return
        async with opened.checking:
            if not opened.checked:
                lookup = opened.wire.look_up(self.spec.model)
                try:  # another record's look-up may have ended the run
                    found = await log.traffic.unless_stopped(lookup)
                except Stopped:
                    interrupted = AttemptFailed(ObservedError("interrupted"))
                    raise self._failure(log, interrupted) from None
                if found.failure is not None:
                    failed = AttemptFailed(found.failure)
                    failed.stops = True  # whatever a row with the same error would mean
                    raise self._failure(log, failed, sent=1)
                if found.warning:
                    log.traffic.notice(found.warning)
                opened.checked = True

    async def _ask(self, log: AttemptLog) -> Any:  # noqa: ANN401 - of _answer
        try:
            return await self._answer(log)
        except InstructorRetryException as error:
            cause: BaseException = error.__cause__ or error
        except Exception as error:  # noqa: BLE001 - raised again below
            cause = error
        # Raised here, so that no exception that holds the key or documents is chained to ours.
        raise self._failure(log, cause)

    async def _answer(self, log: AttemptLog) -> Any:  # noqa: ANN401 - read by _reply
        """Ask once, and let instructor ask again only if the answer cannot be used.

        Its loop would otherwise cost as much time a record as the request itself.
        """
        messages = list(log.task.messages)
        completion = await self._complete(messages=messages)
        try:
            read: Any = _HANDLERS.response_parser(completion, _Answer)
        except ValidationError as error:
            if not self.spec.reasks:
                raise
            log.rejected = error
            read = await self._instructor.create(
                response_model=_Answer,
                messages=cast("list[ChatCompletionMessageParam]", messages),
                max_retries=self.spec.reasks,
            )
        found: _Read = read
        return found.answer

    async def _complete(
        self, *, messages: Sequence[Mapping[str, Any]], **_: object
    ) -> SimpleNamespace:
        """Return one completion; instructor calls this for each ask, the first included."""
        log = ATTEMPT_LOG.get()
        if log.rejected is not None:
            return _for_instructor(log.content)
        if log.answers:
            # instructor's own re-ask names its classes and pydantic's version.
            messages = [*messages[:-1], {"role": "user", "content": log.reask_message()}]
        log.violations = ()
        try:
            completion = await self._complete_with_retries(log, messages)
        except AttemptFailed as failed:
            if failed.observed.kind != "truncated" or not log.raise_cap():
                raise
            completion = await self._complete_with_retries(log, messages)
        return _for_instructor(completion.content)

    async def _complete_with_retries(
        self, log: AttemptLog, messages: Sequence[Mapping[str, Any]]
    ) -> Completion:
        async def attempt() -> Completion:
            async with accepted(log.traffic, log.task.key, self._size(log, messages)) as sent:
                self._require_mode(log, sent)
                log.attempts += 1
                return await self._send(log, messages, sent)

        return await self._retries.run(log.traffic, attempt)

    async def _send(
        self, log: AttemptLog, messages: Sequence[Mapping[str, Any]], sent: SentRequest
    ) -> Completion:
        """Send one request and return its completion.

        Raises:
            AttemptFailed: there is no usable answer.
        """
        wire = self._opened().wire
        try:
            # The client's own timeout restarts with every byte; this one does not.
            async with asyncio.timeout(self.spec.timeout):
                completion, headers = await self._respond(wire, log, messages)
        except wire.errors as error:
            observed, charged, headers = wire.observe(error)
            report_quotas(sent, headers)
        else:
            report_quotas(sent, headers)
            flaw: ObservedError | None = ObservedError("not_json")
            if completion is not None:
                flaw = log.record_completion(completion)
            if completion is not None and (flaw is None or completion.usage or not flaw.status):
                report_usage(sent, completion.usage, self.price)
                if completion.usage is not None and log.cap is not None:
                    log.traffic.health.answered(completion.usage.completion_tokens, log.cap)
                if flaw is None:
                    return completion
            observed, charged = flaw or ObservedError("not_json"), True
        raise report_failure(log.traffic, sent, observed, charged=charged)

    async def _respond(
        self, wire: Wire, log: AttemptLog, messages: Sequence[Mapping[str, Any]]
    ) -> Reply:
        """Return the reply to a request, which is repeated if only its caching is rejected.

        Raises:
            Exception: one of the wire's errors.
        """
        health, request = log.traffic.health, Request(self.spec, log.task, messages, log.cap)
        if self.spec.prompt_cache != "off" and not health.rejects_caching:
            try:
                return await wire.send(request)
            except wire.errors as error:
                if not rejects_caching(wire.observe(error).observed):
                    raise
            log.attempts += 1
            if not health.rejects_caching:
                health.rejects_caching = True
                log.traffic.notice(
                    f"{self.host} rejects the fields for prompt caching: going on without them, "
                    "as --prompt-cache off does"
                )
        return await wire.send(request._replace(cached=False))

    def _size(self, log: AttemptLog, messages: Sequence[Mapping[str, Any]]) -> Size:
        """Return the tokens of a request and its greatest possible cost."""
        asked, schema = request_parts(log.task, messages)
        tokens = request_tokens(self._counter, asked, schema)
        tokens += log.task.expected_tokens
        if self.price is None or log.cap is None:
            return Size(tokens)
        at_most = request_tokens_at_most(self._counter, asked, schema)
        longest = log.traffic.health.longest_answer(log.cap)
        return Size(tokens, self.price.worst(at_most, longest))

    def require_bounds(self) -> None:
        """Check that a budget can be kept.

        Raises:
            UsageError: the model's price is unknown.
        """
        if self.price is None:
            raise UsageError(
                f"a budget needs a price, and none is known for {self.spec.model!r} at "
                f"{self.host}: give one (price, --price {PRICE_FORM})"
            )

    def _failure(
        self, log: AttemptLog, cause: BaseException, *, sent: int | None = None
    ) -> BaseException:
        """Return the error to raise for a failed record; unexpected ones are unchanged."""
        sent = log.attempts if sent is None else sent
        if isinstance(cause, ValidationError):
            cause = AttemptFailed(*log.rejection(cause))
        if not isinstance(cause, AttemptFailed):
            return cause
        if cause.observed.kind == "no_key":
            sent = 0
        rejected = self._rejected_mode(log, cause)
        if rejected is not None:
            return rejected
        if cause.observed.kind != "timeout":  # counted by attempt
            settle_end(log.traffic, log.task.key, cause)
        rule = cause.rule
        detail = self._server.key_hint(cause.observed) or cause.detail
        message = (
            f"judge {self.spec.judge}, model {self.spec.model!r} at {self.host}, after "
            f"{sent} request{'s' * (sent != 1)}: "
            f"{explain(cause.observed, timeout=self.spec.timeout, detail=detail)}"
        )
        if cause.stops:
            return FatalJudgeError(message, reason=rule.reason, attempts=sent)
        return UnusableAnswer(
            message,
            reason=rule.reason,
            attempts=log.attempts,
            violations=log.violations,
            usage=log.usage,
            reasks=log.reasks,
            lasting=rule.lasting,
        )

    def _rejected_mode(self, log: AttemptLog, failed: AttemptFailed) -> ModeRejected | None:
        """Return the task in another output mode if the server rejects that of its own."""
        task, mode = log.task, mode_of(log.task.signature)
        if not (self._may_change(task) and failed.rule.names_format) or _quotes(task, failed):
            return None
        schema = task.schema.name
        if mode == self._begin_mode(schema):  # no other record was rejected before
            modes = self.spec.provider.modes
            if mode == modes[-1] or schema in log.traffic.health.schemas:
                return None
            self._mode = modes[modes.index(mode) + 1]
            self.spec = self.spec.in_mode(self._mode, schema)
            log.traffic.health.doubt()
            log.traffic.notice(
                f"the server does not accept output mode {mode}: asking in mode {self._mode}, "
                "which is part of the labels' signatures"
            )
        return ModeRejected(mode, mode_facts(self._begin_mode(schema)), attempts=log.attempts)

    def _may_change(self, task: Task) -> bool:
        """Return True if the output mode of a task is the judge's choice."""
        return self.auto and task.schema.name not in self._kept

    def _begin_mode(self, schema: str) -> str:
        """Return the output mode of a schema; at first, that in which the last one ended."""
        if schema not in self.spec.schema_modes:
            self.spec = self.spec.in_mode(self._mode, schema)
        return self.spec.schema_modes[schema]

    def _require_mode(self, log: AttemptLog, unsent: SentRequest) -> None:
        """Check, as late as possible, that the mode of a task was not rejected meanwhile.

        Raises:
            ModeRejected: it was; the request is not sent.
        """
        if log.answers or not self._may_change(log.task):
            return
        mode, own = mode_of(log.task.signature), self._begin_mode(log.task.schema.name)
        if mode != own:
            unsent.answered(tokens=0, cost=Decimal(0))
            raise ModeRejected(mode, mode_facts(own), attempts=log.attempts)

    def _opened(self) -> _OpenClient:
        """Return the client of the running event loop; a client cannot change loops."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = _OpenClient(self._open(self._server, self.spec))
        return self._clients[loop]


@dataclass
class _OpenClient:
    """The client of one event loop."""

    wire: Wire
    checking: asyncio.Lock = field(default_factory=asyncio.Lock)
    checked: bool = False
    """True once the model has been looked up."""


def _for_instructor(content: str) -> SimpleNamespace:
    """Return what instructor reads of a completion with this answer."""
    message = SimpleNamespace(role="assistant", content=content)
    return SimpleNamespace(choices=[SimpleNamespace(finish_reason="stop", message=message)])


def _quotes(task: Task, failed: AttemptFailed) -> bool:
    """Return True if an error may name a format only because it quotes the record."""
    message = f"{failed.observed.code} {failed.observed.message}"
    words = {found[0].lower() for found in FORMAT_NAMES.finditer(message)}
    if failed.rule.marks is None or not words:
        return False
    shown = task.messages[-1]["content"].lower()
    return all(word in shown for word in words)


class _Read(NamedTuple):
    """Wrapped answer: instructor attaches the whole completion to every bare model."""

    answer: Frozen


class _Answer(OpenAISchema):
    """The response model for instructor, which walks through all fields of one: it has none."""

    @classmethod
    def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:  # noqa: ANN401 - as above it
        """Return nothing: the published schema is sent instead."""
        return {}

    @classmethod
    def model_validate_json(cls, text: str, **how: Any) -> Any:  # type: ignore[override]  # noqa: ANN401 - the same
        """Read the answer and check it against the contract."""
        return _Read(ATTEMPT_LOG.get().read(text, strict=how.get("strict")))


class _NotWhileJudging(logging.Filter):
    """Silences instructor in a judge's call: it logs answers, and errors that are raised anyway."""

    def filter(self, _: logging.LogRecord) -> bool:
        return ATTEMPT_LOG.get(None) is None


for _name in ("instructor", "instructor.v2", "instructor.v2.retry"):
    logging.getLogger(_name).addFilter(_NotWhileJudging())
