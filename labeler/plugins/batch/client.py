"""A client of OpenAI's Batch API, or any server that speaks it: files in, files out, half price.

The requests are those of the online judge. Every response of the server is validated here.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from openai import AsyncOpenAI
from openai.resources.batches import AsyncBatchesWithRawResponse
from pydantic import BaseModel, Field, ValidationError

from labeler.errors import FatalJudgeError, JudgeError, StoreError
from labeler.judges.openai.client import open_client
from labeler.judges.openai.completion import object_of, text_of
from labeler.judges.openai.error_rules import (
    RETRIED,
    AttemptFailed,
    ObservedError,
    explain,
    find_rule,
    plain_code,
)
from labeler.judges.openai.masking import MaskedBytes
from labeler.judges.openai.retries import LONGEST_PAUSE, retrying
from labeler.judges.openai.sender import WIRE_ERRORS, failed_request
from labeler.judges.openai.server import KeySource, read_server
from labeler.judges.pace import Pace
from labeler.labeling.engine import Engine
from labeler.plugins.batch.folder import RemoteBatch
from labeler.plugins.batch.requests import ENDPOINT

_MARKER = "labeler_part"
"""The metadata field that holds our name of a batch."""
_TRANSFER_SECONDS = 3600.0
"""Limit for the transfer of a whole file, or of long lists that are read several times;
``timeout`` applies between two bytes, and to one request."""
_CLOCKS_APART = 86_400.0
"""Most seconds by which the provider's clock and ours may differ."""
_PAGE, _MOST_PAGES = 100, 100
_MOST_PROBLEMS = 5
_SEARCH_PAUSES = (0.0, 10.0, 20.0)
"""Seconds before each search."""
_NOT_FOUND = 404
_RETRIEVE, _CANCEL, _FETCH = "look at the batch", "cancel the batch", "fetch the answers"
_LIST = "list batches"
_UNCLEAR = (
    "nothing was started; see in the provider's own list whether a batch was started for these "
    "rows, and run it again"
)

T = TypeVar("T")
_Read = TypeVar("_Read", bound=BaseModel)


class _Named(BaseModel, extra="allow"):
    """An object of the server."""

    id: str = Field(min_length=1, strict=True)

    def field(self, name: str) -> Any:  # noqa: ANN401 - whatever the server has written
        """Return another field, ``None`` if there is none."""
        return (self.model_extra or {}).get(name)

    def remote(self) -> RemoteBatch:
        """Return the batch that it describes."""
        counts = object_of(self.field("request_counts"))
        listed = object_of(self.field("errors")).get("data")
        problems = [_code(one) for one in listed] if isinstance(listed, list) else []
        more = [f"and {len(problems) - _MOST_PROBLEMS} more"] * (len(problems) > _MOST_PROBLEMS)
        found = {name: counts.get(name) for name in ("total", "completed", "failed")}
        files = {f"{kind}_file": self.field(f"{kind}_file_id") for kind in ("output", "error")}
        shown = (*problems[:_MOST_PROBLEMS], *more)
        fields = {"id": self.id, "status": self.field("status"), "problems": shown}
        return RemoteBatch.model_validate(fields | found | files)


class _Page(BaseModel, strict=True):
    """A page of the provider's list of batches."""

    data: list[_Named]
    has_more: bool | None = None

    def is_last(self, since: float) -> bool:
        """Return True if no batch of this time or later can stand on the next page.

        Raises:
            AttemptFailed: more are said to follow none.
        """
        if not self.data:
            if self.has_more:
                raise AttemptFailed(ObservedError("not_json"))
            return True
        first, last = (one.field("created_at") for one in (self.data[0], self.data[-1]))
        if type(first) is type(last) is int and last < first and last < since:
            return True  # the newest come first
        return not (len(self.data) == _PAGE if self.has_more is None else self.has_more)


class OpenAIBatches:
    """Uploads, starts, follows and downloads batches; use it on one event loop at a time.

    Every method retries transient failures. It raises a :class:`~labeler.errors.FatalJudgeError`
    if a retry cannot help, and another :class:`~labeler.errors.JudgeError` if the server stays out
    of reach.

    Args:
        api_key: sent to ``base_url``'s host only, and never shown; as for :class:`OpenAIJudge`.
        timeout: seconds for one request, except the transfer of a file.
        max_attempts: most requests for one step.
        sleep: waits between attempts, and between looks at batches.
        server: fields of :class:`~labeler.judges.options.ServerOptions`, such as ``base_url``.

    Raises:
        UsageError: an option of the server is malformed, the address is not safe, or the key
            cannot be one.

    Example:
        >>> batches = labeler.OpenAIBatches(api_key="key", timeout=60)
    """

    def __init__(
        self,
        *,
        api_key: str | KeySource | None = None,
        timeout: float = 180.0,
        max_attempts: int = 6,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        **server: Any,  # noqa: ANN401 - checked by ServerOptions
    ) -> None:
        self._server = read_server(api_key, **server)
        self.base_url = self._server.base_url
        self.timeout, self._max_attempts, self.sleep = timeout, max_attempts, sleep
        self._opened: AsyncOpenAI | None = None

    async def upload(self, path: Path) -> str:
        """Upload a file of requests; return the file's id."""

        async def send() -> str:
            # An open file is streamed; a path would be read into memory first.
            with path.open("rb") as file:
                files = self._client().files.with_raw_response
                made = await files.create(file=file, purpose="batch")
            return _read(_Named, made.http_response.content).id

        return await self._step("hand in the file of requests", send, _TRANSFER_SECONDS)

    async def create(self, file_id: str, marker: str, *, since: float, again: bool) -> RemoteBatch:
        """Start a batch, unless there is one with this marker already.

        A failed attempt may have started it: before each further attempt, :meth:`find` searches for
        it, three times within half a minute. The provider has no idempotency key, so this relies on
        its list showing a batch within that time.

        Args:
            file_id: the uploaded file.
            marker: our name for it, which the provider keeps.
            since: Unix time before which it cannot have been started.
            again: true if it may have been started already: then it is searched for first.

        Raises:
            FatalJudgeError: the provider rejects it.
            JudgeError: the provider is out of reach, or its list is unclear; none was started.
        """
        unsure = again

        async def send() -> RemoteBatch:
            nonlocal unsure
            found = await self.find(file_id, marker, since=since) if unsure else None
            if found is not None:
                return found
            unsure = True
            async with asyncio.timeout(self.timeout):
                made = await self._batches().create(
                    completion_window="24h",
                    endpoint=ENDPOINT,
                    input_file_id=file_id,
                    metadata={_MARKER: marker},
                )
            return _read(_Named, made.http_response.content).remote()

        return await self._step("start the batch", send, _TRANSFER_SECONDS)

    async def find(self, file_id: str, marker: str, *, since: float) -> RemoteBatch | None:
        """Search for the batch of a file, now and two more times; ``None`` if there is none.

        A batch may be listed some time after it was started: the searches are 10 and 20 seconds
        apart.

        Args:
            file_id: as for :meth:`create`.
            marker: the same.
            since: the same.

        Raises:
            FatalJudgeError: the provider denies access.
            JudgeError: it is out of reach, or its list cannot be read or is too long.
        """
        for pause in _SEARCH_PAUSES:
            if pause:
                await self.sleep(pause)
            found = await self._step(
                _LIST, lambda: self._find(file_id, marker, since), _TRANSFER_SECONDS
            )
            if found is not None:
                return found
        return None

    async def retrieve(self, batch_id: str) -> RemoteBatch:
        """Return the current state of a batch."""
        return await self._of_batch(_RETRIEVE, self._batches().retrieve, batch_id)

    async def cancel(self, batch_id: str) -> RemoteBatch:
        """Cancel a batch; answers that exist by then stay available."""
        return await self._of_batch(_CANCEL, self._batches().cancel, batch_id)

    async def download(self, file_id: str, path: Path) -> None:
        """Download a file of answers; the path exists only when it is complete and durable."""
        partial = path.with_name(f".{path.name}.partial")

        async def send() -> None:
            files = self._client().files.with_streaming_response
            async with files.content(file_id) as response:
                with partial.open("wb") as file:
                    mask = MaskedBytes()
                    async for piece in response.iter_bytes():
                        file.write(mask.add(piece))
                    file.write(mask.end())
                    file.flush()
                    os.fsync(file.fileno())
            with partial.open("rb") as file:
                if file.read(1) != b"{":  # a proxy's error page; read as answers, all would be lost
                    raise AttemptFailed(ObservedError("not_json"))
            partial.replace(path)

        await self._step(_FETCH, send, _TRANSFER_SECONDS)

    async def aclose(self) -> None:
        """Close the connections; the client may be used again."""
        client, self._opened = self._opened, None
        if client is not None:
            await client.close()

    async def _of_batch(
        self, doing: str, call: Callable[[str], Awaitable[Any]], batch_id: str
    ) -> RemoteBatch:
        async def send() -> RemoteBatch:
            return _read(_Named, (await call(batch_id)).http_response.content).remote()

        return await self._step(doing, send)

    async def _find(self, file_id: str, marker: str, since: float) -> RemoteBatch | None:
        """Return the batch with a marker, or of a file, which no other batch ever uses.

        ``None`` means that a batch will be started: any doubt is an error.
        """
        after: dict[str, Any] = {}
        for _ in range(_MOST_PAGES):
            async with asyncio.timeout(self.timeout):
                answer = await self._batches().list(limit=_PAGE, **after)
            page = _read(_Page, answer.http_response.content)
            for one in page.data:
                marked = object_of(one.field("metadata")).get(_MARKER) == marker
                if marked or one.field("input_file_id") == file_id:
                    return one.remote()
            if page.is_last(since - _CLOCKS_APART):
                return None
            after = {"after": page.data[-1].id}
        raise JudgeError(
            f"could not {_LIST} at {self._server.host}: it lists more than "
            f"{_MOST_PAGES * _PAGE}, and the one that was to be started is not among them; "
            f"{_UNCLEAR}",
            reason="unclear",
        )

    async def _step(
        self, doing: str, send: Callable[[], Awaitable[T]], seconds: float | None = None
    ) -> T:
        """The one retry layer."""

        async def attempt() -> T:
            try:
                async with asyncio.timeout(seconds or self.timeout):
                    return await send()
            except WIRE_ERRORS as error:
                failed = AttemptFailed(failed_request(error).observed)
            # The next look asks again; asking before the time that the server names helps nobody.
            failed.stops = failed.stops or (failed.observed.retry_after or 0.0) > LONGEST_PAUSE
            raise failed

        try:
            return await retrying(Pace(), self._max_attempts, self.sleep)(attempt)
        except AttemptFailed as failed:
            observed = failed.observed
        # Raised here, so that no exception that holds the key is chained to ours.
        raise self._failure(doing, observed)

    def _failure(self, doing: str, observed: ObservedError) -> JudgeError:
        rule = find_rule(observed)
        where = f"could not {doing} at {self._server.host}"
        if observed.status == _NOT_FOUND and doing in {_RETRIEVE, _CANCEL, _FETCH}:
            remedy = "use the key and the project that it was handed in with"
            message = f"{where}: the server does not know it (status 404): {remedy}"
            return JudgeError(message, reason="not_found")
        if observed.kind == "not_json" and doing == _LIST:
            message = f"{where}: it does not list batches, each with an id; {_UNCLEAR}"
            return JudgeError(message, reason="unclear")
        hint = self._server.key_hint(observed)
        message = f"{where}: {explain(observed, timeout=self.timeout, detail=hint)}"
        kind = JudgeError if rule.policy in RETRIED else FatalJudgeError
        return kind(message, reason=rule.reason)

    def _batches(self) -> AsyncBatchesWithRawResponse:
        """Return the calls about batches; their responses are validated here, not by openai."""
        return self._client().batches.with_raw_response

    def _client(self) -> AsyncOpenAI:
        if self._opened is None:
            self._opened = open_client(self._server, self.timeout)
        return self._opened


def run(
    work: Callable[[], Coroutine[Any, Any, T]],
    client: OpenAIBatches | None,
) -> T:
    """Return the result of a coroutine, and close the client's connections.

    It runs on a thread of its own, also in a notebook, whose loop is already running. A signal
    cancels it and waits for its end.
    """

    async def close() -> None:
        if client is not None:
            await client.aclose()

    engine = Engine(Pace(), grace=0.0, last=close)
    try:
        return engine.wait(engine.submit(work))
    except OSError as error:
        raise StoreError(
            f"batches cannot be read or written: {error}; mend that and run this again: nothing is "
            "lost"
        ) from error
    finally:
        engine.stop()


def _code(problem: object) -> str:
    """Return the short code of a problem, with its line."""
    fields = object_of(problem)
    code, line = plain_code(text_of(fields.get("code"))) or "no code", fields.get("line")
    return f"{code} in line {line}" if type(line) is int else code


def _read(model: type[_Read], body: bytes) -> _Read:
    """Validate a server's object; the library does not.

    Raises:
        AttemptFailed: it is none.
    """
    try:
        return model.model_validate_json(body)
    except ValidationError:
        raise AttemptFailed(ObservedError("not_json")) from None
