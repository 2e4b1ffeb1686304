"""OpenAI's Batch API, or any server that speaks it: files in, files out, for half the price.

The requests are those of the online judge, and the answers are read as it reads them: the same
flaws, the same schema, the same contract, the same reasons. What comes in is made plain here.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args

from httpx2 import HTTPError, TimeoutException
from openai import AsyncOpenAI, BaseModel
from openai.types import Batch, FileObject
from openai.types.chat import ChatCompletion
from pydantic import SecretStr, ValidationError
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_random_exponential

from labeler.errors import FatalJudgeError, JudgeError
from labeler.integrations.batch.service import (
    Again,
    Asked,
    GivenUp,
    History,
    RemoteBatch,
    RemoteStatus,
    Verdict,
)
from labeler.judges.openai.address import OFFICIAL_URL, host_of, safe_url, usable_key
from labeler.judges.openai.attempts import EXCHANGE, Exchange, reader_of
from labeler.judges.openai.client import (
    WIRE_ERRORS,
    open_client,
    public_names,
    symptom_of,
    text_of,
    usage_of,
)
from labeler.judges.openai.failures import Course, Failed, Symptom, diagnose, explain, plain_code
from labeler.judges.openai.request import request_body
from labeler.judges.openai.spec import spec_of
from labeler.judges.task import JudgeReply
from labeler.labels.record import Usage
from labeler.sentences.characters import plain_json
from labeler.sentences.example import Frozen

ENDPOINT: Literal["/v1/chat/completions"] = "/v1/chat/completions"
MARKER = "labeler_part"
"""The metadata field that holds our own name of a batch."""

_TRANSFER_SECONDS = 3600.0
"""What moving a whole file may take; between two bytes of it, ``timeout`` holds."""
_LONGEST_PAUSE = 60.0
_CLOCKS_APART = 86_400.0
"""Seconds by which the provider's clock and ours may differ, generously."""
_PAGE, _MOST_PAGES = 100, 100
_SEARCH_SECONDS = 3600.0
"""What reading long lists several times may take; for one request, ``timeout`` holds."""
_PAUSES_BEFORE_LOOKS = (0.0, 10.0, 20.0)
"""Seconds."""
_PASSING = (Course.RETRY, Course.RATE)
_OK, _NOT_FOUND = 200, 404
_LOOK, _CANCEL, _FETCH = "look at the batch", "cancel the batch", "fetch the answers"
_LIST = "list batches"
_OF_ONE_BATCH = (_LOOK, _CANCEL, _FETCH)
_UNKNOWN_THERE = (
    "the server does not know it (status 404): use the key and the project that it was handed in "
    "with; if it is gone for good, `labeler batch cancel NAME --drop` lets go of its rows"
)
_LOOK_THERE = (
    "nothing was started; see in the provider's own list whether a batch was started for these "
    "rows, and run it again; `labeler batch cancel NAME --drop` lets go of them"
)
_MOST_PROBLEMS = 5
_MOST_COUNTED = 10**9
"""No batch has more requests: a larger count is nonsense."""

T = TypeVar("T")
Model = TypeVar("Model", bound=BaseModel)


class OpenAIBatches:
    """Where batches are handed in and fetched; use it on one event loop at a time.

    Args:
        api_key: sent to ``base_url``'s host and shown nowhere.
        base_url: the address of the API.
        organization: whose account is used, where a key has several.
        project: the same, one level below.
        timeout: seconds for one request, but for the transfer of a file.
        max_attempts: requests at most for one step.
        max_retry_after: seconds that a server may ask to wait.
        sleep: waits between attempts.

    Raises:
        UsageError: the address is not safe, or the key cannot be one.
    """

    def __init__(
        self,
        *,
        api_key: str,
        base_url: str = OFFICIAL_URL,
        organization: str | None = None,
        project: str | None = None,
        timeout: float = 180.0,
        max_attempts: int = 6,
        max_retry_after: float = 120.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.base_url = safe_url(base_url)
        self._key = SecretStr(usable_key(api_key))
        self._organization, self._project = organization, project
        self._timeout, self._max_attempts = timeout, max_attempts
        self._max_retry_after, self._sleep = max_retry_after, sleep
        self._opened: AsyncOpenAI | None = None

    # What is sent

    def line(self, asked: Asked) -> str:
        """The line that stands for a request in the file: its body is the one that is sent online.

        The line's own name is the label's key.
        """
        line = {
            "custom_id": asked.request.key,
            "method": "POST",
            "url": ENDPOINT,
            "body": _body(asked),
        }
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        # Some would take a line separator in a text for the end of the line.
        return plain_json(text)

    async def upload(self, path: Path) -> str:
        """Hand in a file of requests; returns the file's id."""

        async def send() -> str:
            # An open file is sent piece by piece; a path would be read into memory first.
            with path.open("rb") as file:
                made: object = await self._client().files.create(file=file, purpose="batch")
            name = text_of(made.id) if isinstance(made, FileObject) else ""
            if not name:
                raise Failed(Symptom("not_json"))
            return name

        return await self._step("hand in the file of requests", send, _TRANSFER_SECONDS)

    async def create(self, file_id: str, marker: str, *, since: float, again: bool) -> RemoteBatch:
        """Start a batch, unless there is one of this marker already.

        A failed attempt may have started it all the same: before each further one it is looked for
        as :meth:`find` does, three times within half a minute. The provider knows no way to ask
        for a thing once, so this rests on its listing being no later than that.

        Raises:
            FatalJudgeError: the provider does not take it.
            JudgeError: the provider is out of reach, or it cannot be told whether there is one.
        """
        unsure = again

        async def send() -> RemoteBatch:
            nonlocal unsure
            found = await self.find(file_id, marker, since=since) if unsure else None
            if found is not None:
                return found
            unsure = True
            async with asyncio.timeout(self._timeout):
                made = await self._client().batches.create(
                    completion_window="24h",
                    endpoint=ENDPOINT,
                    input_file_id=file_id,
                    metadata={MARKER: marker},
                )
            return _remote(made)

        return await self._step("start the batch", send, _SEARCH_SECONDS)

    async def find(self, file_id: str, marker: str, *, since: float) -> RemoteBatch | None:
        """The batch that was started of a file, or ``None`` after a look now and two later ones.

        A batch may be listed a while after it was started: the looks are 10 and 20 seconds apart.

        Raises:
            FatalJudgeError: the provider lets nobody in.
            JudgeError: it is out of reach, or what it lists cannot be read or is too much.
        """
        for pause in _PAUSES_BEFORE_LOOKS:
            if pause:
                await self._sleep(pause)
            found = await self._step(
                _LIST, lambda: self._find(file_id, marker, since), _SEARCH_SECONDS
            )
            if found is not None:
                return found
        return None

    async def look(self, batch_id: str) -> RemoteBatch:
        """How a batch is getting on."""

        async def send() -> RemoteBatch:
            return _remote(await self._client().batches.retrieve(batch_id))

        return await self._step(_LOOK, send)

    async def cancel(self, batch_id: str) -> RemoteBatch:
        """Ask for an end; what is answered by then stays."""

        async def send() -> RemoteBatch:
            return _remote(await self._client().batches.cancel(batch_id))

        return await self._step(_CANCEL, send)

    async def download(self, file_id: str, path: Path) -> None:
        """Write a file of answers; it stands under its path only when it is whole and durable."""
        partial = path.with_name(f".{path.name}.partial")

        async def send() -> None:
            files = self._client().files.with_streaming_response
            async with files.content(file_id) as response:
                with partial.open("wb") as file:
                    async for piece in response.iter_bytes():
                        file.write(piece)
                    file.flush()
                    os.fsync(file.fileno())
            with partial.open("rb") as file:
                if file.read(1) != b"{":  # a proxy's page; taken for answers, all would be lost
                    raise Failed(Symptom("not_json"))
            partial.replace(path)

        await self._step(_FETCH, send, _TRANSFER_SECONDS)

    async def aclose(self) -> None:
        """Close the connections; it may be used again."""
        client, self._opened = self._opened, None
        if client is not None:
            await client.close()

    # What comes back

    def read(
        self, asked: Asked, status: int, body: Mapping[str, Any] | None, *, worked: bool
    ) -> Verdict:
        """Judge the answer to one line as the same answer would be judged online."""
        before = asked.history
        exchange = Exchange(
            asked.request,
            cap=before.cap,
            attempts=before.attempts + 1,
            answers=before.answers,
            readable=before.readable,
            broken=Counter(before.broken),
            usage=before.usage,
            lengthened=before.lengthened,
        )
        usage = None
        if status == _OK:
            completion = _completion(body)
            usage = usage_of(completion) if completion else None
            flaw = exchange.note(completion)
            if completion is not None and flaw is None:
                return self._answer(asked, exchange, completion, usage)
            symptom = Symptom(flaw or "not_json")
        else:
            symptom = _symptom_of_line(status, body)
            if worked and diagnose(symptom).course is Course.SUSPECT:
                symptom = replace(symptom, sign="rejected")
        return self._flawed(asked, exchange, symptom, usage)

    def _flawed(
        self, asked: Asked, exchange: Exchange, symptom: Symptom, usage: Usage | None
    ) -> Verdict:
        """What follows from a line without an answer."""
        longer = symptom.sign == "truncated" and exchange.lengthen()
        history = _history(asked.history, exchange)
        rule = diagnose(symptom)
        if longer or rule.course in _PASSING:
            return Verdict(Again(rule.reason, history), history, usage)
        return Verdict(self._given_up(asked, exchange, symptom, ""), history, usage)

    def _answer(
        self, asked: Asked, exchange: Exchange, completion: ChatCompletion, usage: Usage | None
    ) -> Verdict:
        """A label, or the one re-ask that an answer that is none gets."""
        said = text_of(completion.choices[0].message.content)
        token = EXCHANGE.set(exchange)
        try:
            answer = reader_of(asked.request.answer_type).validate_json(said, strict=True)
        except ValidationError as error:
            symptom, detail = exchange.verdict(error)
        else:
            history = _history(asked.history, exchange)
            return Verdict(self._reply(answer, exchange, history), history, usage)
        finally:
            EXCHANGE.reset(token)
        history = _history(asked.history, exchange)
        if history.reasks >= asked.reasks:
            return Verdict(self._given_up(asked, exchange, symptom, detail), history, usage)
        mended = {
            "reasks": history.reasks + 1,
            "answer": said,
            "complaint": exchange.reproof(),
        }
        again = Again(diagnose(symptom).reason, history.model_copy(update=mended))
        return Verdict(again, history, usage)

    def _reply(self, answer: Frozen, exchange: Exchange, history: History) -> JudgeReply[Frozen]:
        facts = exchange.facts(host_of(self.base_url))
        # How long it took in the batch is not known.
        facts = facts.model_copy(update={"seconds": None, "reasks": history.reasks})
        return JudgeReply(answer, facts, tokens=exchange.tokens)

    def _given_up(self, asked: Asked, exchange: Exchange, symptom: Symptom, detail: str) -> GivenUp:
        rule = diagnose(symptom)
        message = (
            f"batch, model {asked.request.signature.model!r} at {host_of(self.base_url)}, after "
            f"{exchange.attempts} request{'s' * (exchange.attempts != 1)}: "
            f"{explain(symptom, timeout=self._timeout, detail=detail)}"
        )
        return GivenUp(rule.reason, message, rule.lasting, exchange.violations)

    # How it is sent

    async def _find(self, file_id: str, marker: str, since: float) -> RemoteBatch | None:
        """The batch of a marker, or of a file, which no other batch was ever given.

        ``None`` lets it be started: whatever leaves that in doubt is an error.
        """
        after: str | None = None
        for _ in range(_MOST_PAGES):
            page = await self._page(after)
            for batch in page.batches:
                metadata = batch.get("metadata")
                marked = isinstance(metadata, Mapping) and metadata.get(MARKER) == marker
                if marked or batch.get("input_file_id") == file_id:
                    return _remote(_made_of(Batch, batch))
            if page.is_last or page.reaches_before(since - _CLOCKS_APART):
                return None
            after = page.batches[-1]["id"]
        raise JudgeError(
            f"could not {_LIST} at {host_of(self.base_url)}: it lists more than "
            f"{_MOST_PAGES * _PAGE}, and the one that was to be started is not among them; "
            f"{_LOOK_THERE}",
            reason="unclear",
        )

    async def _page(self, after: str | None) -> _Page:
        """One page of the provider's batches, as it was sent: the library would not check it."""
        batches = self._client().batches.with_raw_response
        at: dict[str, Any] = {} if after is None else {"after": after}
        async with asyncio.timeout(self._timeout):
            answer = await batches.list(limit=_PAGE, **at)
        listed: object = answer.http_response.json()
        page = _page(listed)
        if page is not None:
            return page
        if isinstance(listed, Mapping) and isinstance(listed.get("data"), list):
            raise JudgeError(
                f"could not {_LIST} at {host_of(self.base_url)}: what it lists is no list of "
                f"batches, each with an id; {_LOOK_THERE}",
                reason="unclear",
            )
        raise Failed(Symptom("not_json"))

    async def _step(
        self, doing: str, send: Callable[[], Awaitable[T]], seconds: float | None = None
    ) -> T:
        """The one retry layer."""
        retrying = AsyncRetrying(
            stop=stop_after_attempt(self._max_attempts),
            wait=_pause,
            retry=retry_if_exception(self._worth_retrying),
            sleep=self._sleep,
            reraise=True,
        )
        try:
            return await retrying(self._attempt, send, seconds or self._timeout)
        except Failed as failed:
            symptom = failed.symptom
        # Raised out here, so that no exception hangs on ours that holds the key.
        raise self._failure(doing, symptom)

    async def _attempt(self, send: Callable[[], Awaitable[T]], seconds: float) -> T:
        try:
            async with asyncio.timeout(seconds):
                return await send()
        except WIRE_ERRORS as error:
            symptom = symptom_of(error)
        except HTTPError as error:
            # What ends a stream half-way is not wrapped by the library.
            symptom = Symptom("timeout" if isinstance(error, TimeoutException) else "connection")
        raise Failed(symptom)

    def _worth_retrying(self, error: BaseException) -> bool:
        return (
            isinstance(error, Failed)
            and error.rule.course in _PASSING
            and (error.symptom.retry_after or 0.0) <= self._max_retry_after
        )

    def _failure(self, doing: str, symptom: Symptom) -> JudgeError:
        rule = diagnose(symptom)
        where = f"could not {doing} at {host_of(self.base_url)}"
        if symptom.status == _NOT_FOUND and doing in _OF_ONE_BATCH:
            return JudgeError(f"{where}: {_UNKNOWN_THERE}", reason="not_found")
        message = f"{where}: {explain(symptom, timeout=self._timeout)}"
        if rule.course in _PASSING:
            return JudgeError(message, reason=rule.reason)
        return FatalJudgeError(message, reason=rule.reason)

    def _client(self) -> AsyncOpenAI:
        if self._opened is None:
            self._opened = open_client(
                self.base_url,
                self._key.get_secret_value(),
                timeout=self._timeout,
                organization=self._organization,
                project=self._project,
            )
        return self._opened


@dataclass(frozen=True)
class _Page:
    """A page of a list of batches."""

    batches: list[Mapping[str, Any]]
    is_last: bool

    def reaches_before(self, moment: float) -> bool:
        """Whether the newest come first and all that follow are older than a Unix time."""
        first: object = self.batches[0].get("created_at")
        last: object = self.batches[-1].get("created_at")
        if not isinstance(first, int) or not isinstance(last, int):
            return False
        return last < first and last < moment


def _page(listed: object) -> _Page | None:
    """A page made plain; ``None`` where it is no list, or anything on it is no batch."""
    found = listed.get("data") if isinstance(listed, Mapping) else None
    if not isinstance(listed, Mapping) or not isinstance(found, list):
        return None
    named = [one for one in found if isinstance(one, Mapping) and text_of(one.get("id"))]
    more = listed.get("has_more")
    if len(named) < len(found) or (more and not named):
        return None
    goes_on = more or (more is None and len(named) == _PAGE)
    return _Page(named, is_last=not goes_on)


def _body(asked: Asked) -> dict[str, Any]:
    request, history = asked.request, asked.history
    messages: list[Mapping[str, Any]] = list(request.messages)
    if history.complaint is not None:
        messages.append({"role": "assistant", "content": history.answer or ""})
        messages.append({"role": "user", "content": history.complaint})
    spec = spec_of(request.signature.model, request.signature.sampling)
    return request_body(spec, request, messages, history.cap)


def _pause(state: RetryCallState) -> float:
    """Seconds until the next attempt: what the server asks for, and never less than back-off."""
    error = state.outcome.exception() if state.outcome else None
    asked = (error.symptom.retry_after if isinstance(error, Failed) else None) or 0.0
    return max(asked, _BACK_OFF(state))


_BACK_OFF = wait_random_exponential(multiplier=1, max=_LONGEST_PAUSE)


def _remote(batch: object) -> RemoteBatch:
    """A batch made plain; the library does not check what it reads."""
    name = text_of(batch.id) if isinstance(batch, Batch) else ""
    if not isinstance(batch, Batch) or not name:
        raise Failed(Symptom("not_json"))
    status = text_of(batch.status)
    counts: object = batch.request_counts
    return RemoteBatch(
        id=name,
        status=cast("RemoteStatus", status) if status in get_args(RemoteStatus) else "unknown",
        total=_count(counts, "total"),
        completed=_count(counts, "completed"),
        failed=_count(counts, "failed"),
        output_file=text_of(batch.output_file_id) or None,
        error_file=text_of(batch.error_file_id) or None,
        problems=tuple(_problems(batch.errors)),
    )


def _problems(errors: object) -> list[str]:
    listed = getattr(errors, "data", None)
    said = []
    for problem in listed if isinstance(listed, list) else []:
        code = plain_code(text_of(getattr(problem, "code", None))) or "no code"
        line = getattr(problem, "line", None)
        said.append(f"{code} in line {line}" if type(line) is int else code)
    more = [f"and {len(said) - _MOST_PROBLEMS} more"] if len(said) > _MOST_PROBLEMS else []
    return said[:_MOST_PROBLEMS] + more


def _count(counts: object, name: str) -> int:
    value = getattr(counts, name, None)
    return value if type(value) is int and 0 < value <= _MOST_COUNTED else 0


def _completion(body: Mapping[str, Any] | None) -> ChatCompletion | None:
    """A completion as the client library would have made it of the same body."""
    if body is None:
        return None
    return _made_of(ChatCompletion, body)


def _made_of(kind: type[Model], body: Mapping[str, Any]) -> Model:
    """What the client library makes of a body, unchecked."""
    return kind.construct(None, **json.loads(json.dumps(body), object_hook=public_names))


def _symptom_of_line(status: int, body: Mapping[str, Any] | None) -> Symptom:
    said: object = (body or {}).get("error")
    error = cast("Mapping[str, object]", said) if isinstance(said, Mapping) else {}
    return Symptom(
        "status",
        status=status,
        code=text_of(error.get("code")) or text_of(error.get("type")),
        param=text_of(error.get("param")),
        words=text_of(error.get("message")),
    )


def _history(before: History, exchange: Exchange) -> History:
    """What is carried into a later round; a request that only failed is asked as it was."""
    return History(
        attempts=exchange.attempts,
        answers=exchange.answers,
        readable=exchange.readable,
        reasks=before.reasks,
        broken=dict(exchange.broken),
        usage=exchange.usage,
        cap=exchange.cap,
        lengthened=exchange.lengthened,
        answer=before.answer,
        complaint=before.complaint,
    )
