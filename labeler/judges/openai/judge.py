"""Judges behind OpenAI's chat completions, or behind an API with another :class:`Form`.

One structured call a record: instructor reads the answer and asks once more if it broke the label
contract, tenacity repeats failed attempts (see ``retries``), and a :class:`Sender` carries each. No
object and no exception of these libraries leaves this module.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple, cast

import msgspec
from instructor import AsyncInstructor, Mode, OpenAISchema, patch
from instructor.core import InstructorRetryException
from pydantic import ValidationError

from labeler.errors import UsageError
from labeler.judges.judge import ModeRejected
from labeler.judges.limits import Size
from labeler.judges.openai.address import environment_key, require_named_server
from labeler.judges.openai.attempts import ATTEMPT_LOG, AttemptLog
from labeler.judges.openai.completion import Completion
from labeler.judges.openai.error_rules import WORDS, AttemptFailed
from labeler.judges.openai.request import CHAT, Form, Request, rejects_caching, spec_of
from labeler.judges.openai.retries import (
    concluded,
    final_error,
    is_retried,
    look_up,
    report_failure,
    report_usage,
    retrying,
)
from labeler.judges.openai.sender import LentResponse, Sender
from labeler.judges.openai.server import KeySource, server_of
from labeler.judges.pace import BudgetSpent, SentRequest, Stopped, current
from labeler.judges.pricing import PRICE_FORM, Price, find_price
from labeler.judges.task import JudgeReply, Messages, Task
from labeler.judges.tokens import TokenCounter, answer_cap
from labeler.sentences.example import Frozen


class HostedJudge:
    """Labels records with a hosted model; each provider is a subclass.

    A judge serves any number of runs, also at once: each event loop has its own clients until
    :meth:`aclose` is called on that loop.

    Takes the arguments of :class:`OpenAIJudge`.

    Attributes:
        spec: settings of the judge, with the output modes that are known.
        auto: False if the user has chosen the output mode; otherwise the judge tries those of its
            provider in turn where the server rejects them.

    Raises:
        UsageError: a setting is unknown or out of range, the address is not safe, or the key
            is malformed.
    """

    provider: ClassVar[str]
    """Name in :data:`~labeler.judges.options.PROVIDERS`, and the judge in label keys."""
    form: Form = CHAT
    """The provider's API."""

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
        self._mode: str = self.spec.output_mode or "strict"
        self._kept = frozenset[str]()  # schemas whose mode stays, whatever the server accepts
        require_named_server(settings.get("base_url"), self.provider)
        if api_key is None and self.spec.api_key_command is None:
            api_key = environment_key(settings.get("base_url"), self.provider)
        self._server = server_of(self.spec, api_key)
        self._sleep = sleep
        if not isinstance(price, Price | None):
            raise UsageError(f"price must be of Price, got {price!r:.40}")
        self.price = price or find_price(self.spec.model, self.spec.base_url)
        self._counter = TokenCounter()
        self._clients: dict[asyncio.AbstractEventLoop, _OpenClient] = {}
        # JSON_SCHEMA mode reads answers as needed. No mode of instructor requests a strict schema,
        # so :meth:`complete` ignores its request and writes its own.
        self._instructor = AsyncInstructor(
            client=None,
            create=cast("Callable[..., Any]", patch(create=self.complete, mode=Mode.JSON_SCHEMA)),
            mode=Mode.JSON_SCHEMA,
        )

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
        log = await self._begin(task)
        try:
            answer, failed = log.read((await self._attempt(log, task.messages)).content), None
        except Exception as error:  # noqa: BLE001 - raised again below
            failed = error
        # Handled here, so that no exception that holds the key or documents is chained to ours.
        if failed is not None:
            answer = await self._ask_again(log, failed)
        log.pace.health.schemas.add(task.schema.name)
        return JudgeReply(
            answer, log.facts(self.host), tokens=log.latest.tokens, repairs=log.repairs
        )

    async def _begin(self, task: Task) -> AttemptLog:
        """Return the log of a record that may be sent."""
        pace, cap = current(), self.spec.max_output_tokens
        if self._may_change(task):
            mode, modes = self._begin_mode(task.schema.name), self.spec.provider.modes
            if not pace.health.labels:  # each further mode would cost a request
                pace.health.doubt(len(modes) - 1 - modes.index(mode))
        if pace.budget.cap is not None:
            self.require_bounds()
        if pace.budget.cap is not None or self.spec.provider.requires_cap:
            cap = answer_cap(cap, task.expected_tokens)
        log = AttemptLog(task, cap=cap, pace=pace)
        opened = self._opened()
        if self.spec.preflight and not opened.checked:
            await self._check_model(opened, log)
        return log

    @property
    def host(self) -> str:
        """The host that is asked."""
        return self._server.host

    async def aclose(self) -> None:
        """Close the connections of the running event loop; the judge may be used again."""
        opened = self._clients.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            await opened.sender.aclose()

    async def _check_model(self, opened: _OpenClient, log: AttemptLog) -> None:
        """Look the model up once, before the first record is sent."""
        failed = None
        async with opened.checking:
            if opened.checked:
                return
            model, path = self.spec.model, self.form.model_path
            url = self.form.url(self._server.base_url, path, model)
            warning = f"model {model!r} is asked at {self.host}"
            try:  # another record's look-up may have ended the run
                if path:
                    warning = await log.pace.unless_stopped(look_up(opened.sender, url, model))
            except (AttemptFailed, Stopped) as error:
                failed = error
            if failed is not None:
                log.attempts = int(not isinstance(failed, Stopped))
                raise self._failure(log, failed)
            if warning:
                log.pace.notice(warning)
            opened.checked = True

    async def _ask_again(self, log: AttemptLog, failed: Exception) -> Frozen:
        """Let tenacity repeat a failed attempt, and instructor ask again after a rejected answer.

        Their loops take more of a processor than a request, so they begin with a failure.
        """
        if is_retried(failed) or (isinstance(failed, ValidationError) and self.spec.reasks):
            log.failed, token = failed, ATTEMPT_LOG.set(log)
            try:
                found: Any = await self._instructor.create(
                    response_model=_Answer,
                    messages=cast("Any", [*log.task.messages]),
                    max_retries=self.spec.reasks,
                )
                return cast("Frozen", found.answer)
            except InstructorRetryException as error:
                failed = cast("Exception", error.__cause__ or error)
            except Exception as error:  # noqa: BLE001 - raised again below
                failed = error
            finally:
                ATTEMPT_LOG.reset(token)
        raise self._failure(log, failed)

    async def complete(self, *, messages: Messages, **_: object) -> Completion:
        """Return one completion for the record in :data:`ATTEMPT_LOG`, after as many attempts.

        instructor calls this for each ask.

        Raises:
            AttemptFailed: the last attempt's error.
        """
        log = ATTEMPT_LOG.get()
        if isinstance(log.failed, ValidationError):
            return log.latest
        if log.answers:
            # instructor's own re-ask names its classes and pydantic's version.
            messages = log.reask_messages()
        log.violations = ()
        return await self._repeated(log, messages)

    async def _repeated(self, log: AttemptLog, messages: Messages) -> Completion:
        """Return the completion of as many attempts as their errors allow."""

        async def attempt() -> Completion:
            failed, log.failed = log.failed, None
            if failed is not None:
                raise failed
            return await self._attempt(log, messages)

        return await retrying(log.pace, self.spec.max_attempts, self._sleep)(attempt)

    async def _attempt(self, log: AttemptLog, messages: Messages) -> Completion:
        """Return a completion after one request.

        Raises:
            AttemptFailed: there is no usable one.
            ModeRejected: the request was not sent.
        """
        opened = self._opened()
        async with log.pace.request(log.task.key, self._size(log, messages)) as sent:
            if not log.answers and self._may_change(log.task):
                mode, own = log.task.mode, self._begin_mode(log.task.schema.name)
                if mode != own:  # another record was rejected meanwhile
                    sent.answered(tokens=0, cost=Decimal(0))
                    raise ModeRejected(mode, own, attempts=log.attempts)
            log.attempts += 1
            cached = self.spec.prompt_cache != "off" and not log.pace.health.rejects_caching
            asked = Request(self.spec, log.task, messages, log.cap, cached)
            body = msgspec.json.encode(self.form.body(asked))
            try:
                response = await opened.sender.send("POST", opened.url, body)
            except AttemptFailed as failed:
                raise self._failed(log, sent, asked, failed) from None
            return self._completed(log, sent, asked, response)

    def _completed(
        self, log: AttemptLog, sent: SentRequest, asked: Request, response: LentResponse
    ) -> Completion:
        """Return the completion in a response, and report what it cost.

        Raises:
            AttemptFailed: there is no usable one.
        """
        sent.quotas(self.form.quotas(response.headers))
        completion = self.form.read(response.whole, asked)
        if completion.error is not None:
            response.spoil()  # as after an error status
        flaw, usage = log.record_completion(completion), log.latest.usage
        if flaw is None or usage or not flaw.status:
            report_usage(sent, usage, self.price)
            if usage is not None and log.cap is not None:
                log.pace.health.answered(usage.completion_tokens, log.cap)
        if flaw is None:
            return completion
        failed = report_failure(log.pace, sent, AttemptFailed(flaw))
        failed.again = flaw.kind == "truncated" and log.raise_cap()
        raise failed

    def _failed(
        self, log: AttemptLog, sent: SentRequest, asked: Request, failed: AttemptFailed
    ) -> AttemptFailed:
        """Report a request without an answer; without the fields for caching if only they fail."""
        sent.quotas(self.form.quotas(failed.headers))
        failed = report_failure(log.pace, sent, failed)
        if asked.cached and rejects_caching(failed.observed):
            failed.again, failed.stops, health = True, False, log.pace.health
            if not health.rejects_caching:
                health.rejects_caching = True
                log.pace.notice(
                    f"{self.host} rejects the fields for prompt caching: continuing without them, "
                    "as --prompt-cache off does"
                )
        return failed

    def _size(self, log: AttemptLog, messages: Messages) -> Size:
        """Return the tokens of a request and its greatest possible cost."""
        asked, schema = log.task.sent(messages)
        texts = [message["content"] for message in asked]
        tokens = self._counter.request(texts, schema)
        tokens += log.task.expected_tokens
        if self.price is None or log.cap is None:
            return Size(tokens)
        at_most = self._counter.request_at_most(texts, schema)
        longest = log.pace.health.longest_answer(log.cap)
        return Size(tokens, self.price.worst(at_most, longest))

    def require_bounds(self) -> None:
        """Check that a budget can be kept.

        Raises:
            UsageError: the model's price is unknown.
        """
        if self.price is None:
            raise UsageError(
                f"a budget needs a price, and none is known for {self.spec.model!r} at "
                f"{self.host}: give one (--price, {PRICE_FORM})"
            )

    def _failure(self, log: AttemptLog, cause: BaseException) -> BaseException:
        """Return the error to raise for a failed record; unexpected ones are unchanged."""
        if isinstance(cause, ValidationError):
            cause = AttemptFailed(*log.rejection(cause))
        if not isinstance(cause, AttemptFailed | BudgetSpent | Stopped):
            return cause
        if isinstance(cause, AttemptFailed) and (rejected := self._rejected_mode(log, cause)):
            return rejected
        failed = concluded(cause, log.pace, log.task.key, self._server)
        who = f"judge {self.spec.judge}, model {self.spec.model!r} at {self.host}"
        return final_error(failed, who, log.attempts, self.spec.timeout, **log.in_vain())

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

    def _may_change(self, task: Task) -> bool:
        """Return True if the output mode of a task is the judge's choice."""
        return self.auto and task.schema.name not in self._kept

    def _begin_mode(self, schema: str) -> str:
        """Return the output mode of a schema; at first, that in which the last one ended."""
        if schema not in self.spec.schema_modes:
            self.spec = self.spec.in_modes({schema: self._mode})
        return self.spec.schema_modes[schema]

    def _rejected_mode(self, log: AttemptLog, failed: AttemptFailed) -> ModeRejected | None:
        """Return the error that names another output mode, if the server rejects that of a task."""
        task, mode, schema = log.task, log.task.mode, log.task.schema.name
        if not (self._may_change(task) and failed.rule.names_format) or _quotes(task, failed):
            return None
        if mode == self._begin_mode(schema):  # no other record was rejected before
            modes = self.spec.provider.modes
            if mode == modes[-1] or schema in log.pace.health.schemas:
                return None
            self._mode = modes[modes.index(mode) + 1]
            self.spec = self.spec.in_modes({schema: self._mode})
            log.pace.health.doubt()
            log.pace.notice(
                f"the server does not accept output mode {mode}: asking in mode {self._mode}, "
                "which is part of the labels' signatures"
            )
        return ModeRejected(mode, self._begin_mode(schema), attempts=log.attempts)

    def _opened(self) -> _OpenClient:
        """Return the client of the running event loop; a client cannot change loops."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            server, form = self._server, self.form
            self._clients[loop] = _OpenClient(
                Sender(server, self.spec.timeout, form.key, form.headers),
                form.url(server.base_url, form.path, self.spec.model),
            )
        return self._clients[loop]


@dataclass
class _OpenClient:
    """The client of one event loop."""

    sender: Sender
    url: str
    """Address of requests."""
    checking: asyncio.Lock = field(default_factory=asyncio.Lock)
    checked: bool = False
    """True once the model has been looked up."""


def _quotes(task: Task, failed: AttemptFailed) -> bool:
    """Return True if an error may name a format only because it quotes the record."""
    message = f"{failed.observed.code} {failed.observed.message}"
    words = {found[0].lower() for found in WORDS["format"].finditer(message)}
    shown = task.messages[-1]["content"].lower()
    return failed.rule.marks is not None and bool(words) and all(word in shown for word in words)


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
    def model_validate_json(cls, text: str, **_: Any) -> Any:  # type: ignore[override]  # noqa: ANN401 - the same
        """Read the answer and check it against the contract."""
        return _Read(ATTEMPT_LOG.get().read(text))


class _NotWhileJudging(logging.Filter):
    """Silences instructor in a judge's call: it logs answers, and errors that are raised anyway."""

    def filter(self, _: logging.LogRecord) -> bool:
        return ATTEMPT_LOG.get(None) is None


for _name in ("instructor", "instructor.v2", "instructor.v2.retry"):
    logging.getLogger(_name).addFilter(_NotWhileJudging())


class OpenAIJudge(HostedJudge):
    """Labels records with a model behind OpenAI's chat completions.

    Args:
        model: name of the model.
        api_key: sent to the host of ``base_url`` only, never shown; by default read from the
            environment, such as ``OPENAI_API_KEY``. A function, which may be async, is called for
            the key, and again when the key expires.
        price: price of the model's tokens; by default from the price table, if listed.
        sleep: waits between attempts.
        settings: options of :func:`labeler.label` about the server and sampling, such as
            ``base_url``, ``header``, ``temperature`` from 0 to 2, ``max_output_tokens``, and
            ``timeout`` in seconds.

    Raises:
        UsageError: a setting is unknown or out of range, the address is not safe, or the key
            is malformed.

    Example:
        >>> judge = labeler.OpenAIJudge("MODEL", base_url="http://127.0.0.1:8000/v1")
        >>> judge.spec.model
        'MODEL'
    """

    provider = "openai"


class MistralJudge(OpenAIJudge):
    """Labels records with a model of Mistral's API; arguments as for :class:`OpenAIJudge`.

    Example:
        >>> labeler.judges.MistralJudge("MODEL", api_key="key").spec.model
        'MODEL'
    """

    provider = "mistral"


class OllamaJudge(OpenAIJudge):
    """Labels records with a model of Ollama, on this machine unless another address is given.

    Arguments as for :class:`OpenAIJudge`; no key is needed.

    Example:
        >>> labeler.judges.OllamaJudge("qwen3:8b").spec.model
        'qwen3:8b'
    """

    provider = "ollama"
