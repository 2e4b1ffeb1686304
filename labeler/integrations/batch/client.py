"""A client of OpenAI's Batch API, or any server that speaks it: files in, files out, half price.

The requests are those of the online judge. Every response of the server is validated here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args

from openai import AsyncOpenAI
from openai.resources.batches import AsyncBatchesWithRawResponse
from openai.types import FileObject
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from labeler.errors import FatalJudgeError, JudgeError, StoreError
from labeler.integrations.batch.folder import RemoteBatch, RemoteStatus
from labeler.integrations.batch.request_files import BatchRequest
from labeler.judges.openai.access import KeySource
from labeler.judges.openai.client import open_client
from labeler.judges.openai.completion import text_of
from labeler.judges.openai.error_rules import (
    RETRIED,
    AttemptFailed,
    ObservedError,
    explain,
    find_rule,
    plain_code,
)
from labeler.judges.openai.masking import MaskedBytes
from labeler.judges.openai.request import request_body
from labeler.judges.openai.retries import BACK_OFF, error_of, is_retried
from labeler.judges.openai.sender import WIRE_ERRORS, observed_error
from labeler.judges.openai.server import read_server, server_of
from labeler.judges.openai.spec import spec_of
from labeler.sentences.characters import plain_json

ENDPOINT: Literal["/v1/chat/completions"] = "/v1/chat/completions"
MARKER = "labeler_part"
"""The metadata field that holds our name of a batch."""

_TRANSFER_SECONDS = 3600.0
"""Limit for the transfer of a whole file; ``timeout`` applies between two bytes of it."""
_CLOCKS_APART = 86_400.0
"""Most seconds by which the provider's clock and ours may differ."""
_PAGE, _MOST_PAGES = 100, 100
_SEARCH_SECONDS = 3600.0
"""Limit for reading long lists several times; ``timeout`` applies to one request."""
_SEARCH_PAUSES = (0.0, 10.0, 20.0)
"""Seconds before each search."""
_NOT_FOUND = 404
_RETRIEVE, _CANCEL, _FETCH = "look at the batch", "cancel the batch", "fetch the answers"
_LIST = "list batches"
_OF_ONE_BATCH = (_RETRIEVE, _CANCEL, _FETCH)
_UNKNOWN_BATCH = (
    "the server does not know it (status 404): use the key and the project that it was handed in "
    "with; if it is gone for good, `labeler batch cancel NAME --drop` lets go of its rows"
)
_CHECK_LIST = (
    "nothing was started; see in the provider's own list whether a batch was started for these "
    "rows, and run it again; `labeler batch cancel NAME --drop` lets go of them"
)
_MOST_PROBLEMS = 5
_MOST_COUNTED = 10**9
"""No batch has more requests: a larger count is invalid."""

T = TypeVar("T")


class OpenAIBatches:
    """Uploads, starts, follows and downloads batches; use it on one event loop at a time.

    Every method retries transient failures. It raises a :class:`~labeler.errors.FatalJudgeError`
    if a retry cannot help, and another :class:`~labeler.errors.JudgeError` if the server stays out
    of reach.

    Args:
        api_key: sent to ``base_url``'s host only, and never shown; as for :class:`OpenAIJudge`.
        timeout: seconds for one request, except the transfer of a file.
        max_attempts: most requests for one step.
        max_retry_after: most seconds that a server may ask to wait.
        sleep: waits between attempts.
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
        max_retry_after: float = 120.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        **server: Any,  # noqa: ANN401 - checked by ServerOptions
    ) -> None:
        self._server = server_of(read_server(**server), api_key)
        self.base_url = self._server.base_url
        self.timeout, self._max_attempts = timeout, max_attempts
        self._max_retry_after, self._sleep = max_retry_after, sleep
        self._opened: AsyncOpenAI | None = None

    def line(self, request: BatchRequest) -> str:
        """Return the line of a request in the uploaded file, named by the label's key.

        Its body equals the online request.

        Raises:
            UsageError: the signature does not belong to this provider's judge.
        """
        line = {
            "custom_id": request.task.key,
            "method": "POST",
            "url": ENDPOINT,
            "body": _body(request),
        }
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        # Some servers would take a line separator inside a text for the end of the line.
        return plain_json(text)

    async def upload(self, path: Path) -> str:
        """Upload a file of requests; return the file's id."""

        async def send() -> str:
            # An open file is streamed; a path would be read into memory first.
            with path.open("rb") as file:
                made: object = await self._client().files.create(file=file, purpose="batch")
            name = text_of(made.id) if isinstance(made, FileObject) else ""
            if not name:
                raise AttemptFailed(ObservedError("not_json"))
            return name

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
                    metadata={MARKER: marker},
                )
            return _remote(made.http_response.json())

        return await self._step("start the batch", send, _SEARCH_SECONDS)

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
                await self._sleep(pause)
            found = await self._step(
                _LIST, lambda: self._find(file_id, marker, since), _SEARCH_SECONDS
            )
            if found is not None:
                return found
        return None

    async def retrieve(self, batch_id: str) -> RemoteBatch:
        """Return the current state of a batch."""

        async def send() -> RemoteBatch:
            answer = await self._batches().retrieve(batch_id)
            return _remote(answer.http_response.json())

        return await self._step(_RETRIEVE, send)

    async def cancel(self, batch_id: str) -> RemoteBatch:
        """Cancel a batch; answers that exist by then stay available."""

        async def send() -> RemoteBatch:
            answer = await self._batches().cancel(batch_id)
            return _remote(answer.http_response.json())

        return await self._step(_CANCEL, send)

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

    async def _find(self, file_id: str, marker: str, since: float) -> RemoteBatch | None:
        """Return the batch with a marker, or of a file, which no other batch ever uses.

        ``None`` means that a batch will be started: any doubt is an error.
        """
        after: str | None = None
        for _ in range(_MOST_PAGES):
            page = await self._page(after)
            for batch in page.batches:
                metadata = batch.get("metadata")
                marked = isinstance(metadata, Mapping) and metadata.get(MARKER) == marker
                if marked or batch.get("input_file_id") == file_id:
                    return _remote(batch)
            if page.is_last or page.reaches_before(since - _CLOCKS_APART):
                return None
            after = page.batches[-1]["id"]
        raise JudgeError(
            f"could not {_LIST} at {self._server.host}: it lists more than "
            f"{_MOST_PAGES * _PAGE}, and the one that was to be started is not among them; "
            f"{_CHECK_LIST}",
            reason="unclear",
        )

    async def _page(self, after: str | None) -> _Page:
        """Return one page of the provider's batches, validated: the library would not check it."""
        at: dict[str, Any] = {} if after is None else {"after": after}
        async with asyncio.timeout(self.timeout):
            answer = await self._batches().list(limit=_PAGE, **at)
        listed: object = answer.http_response.json()
        page = _page(listed)
        if page is not None:
            return page
        if isinstance(listed, Mapping) and isinstance(listed.get("data"), list):
            raise JudgeError(
                f"could not {_LIST} at {self._server.host}: what it lists is no list of "
                f"batches, each with an id; {_CHECK_LIST}",
                reason="unclear",
            )
        raise AttemptFailed(ObservedError("not_json"))

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
            return await retrying(self._attempt, send, seconds or self.timeout)
        except AttemptFailed as failed:
            observed = failed.observed
        # Raised here, so that no exception that holds the key is chained to ours.
        raise self._failure(doing, observed)

    async def _attempt(self, send: Callable[[], Awaitable[T]], seconds: float) -> T:
        try:
            async with asyncio.timeout(seconds):
                return await send()
        except WIRE_ERRORS as error:
            observed = observed_error(error)
        raise AttemptFailed(observed)

    def _worth_retrying(self, error: BaseException) -> bool:
        return is_retried(error) and _asked_wait(error) <= self._max_retry_after

    def _failure(self, doing: str, observed: ObservedError) -> JudgeError:
        rule = find_rule(observed)
        where = f"could not {doing} at {self._server.host}"
        if observed.status == _NOT_FOUND and doing in _OF_ONE_BATCH:
            return JudgeError(f"{where}: {_UNKNOWN_BATCH}", reason="not_found")
        hint = self._server.key_hint(observed)
        message = f"{where}: {explain(observed, timeout=self.timeout, detail=hint)}"
        if rule.policy in RETRIED:
            return JudgeError(message, reason=rule.reason)
        return FatalJudgeError(message, reason=rule.reason)

    def _batches(self) -> AsyncBatchesWithRawResponse:
        """Return the calls about batches; their responses are validated here, not by openai."""
        return self._client().batches.with_raw_response

    def _client(self) -> AsyncOpenAI:
        if self._opened is None:
            self._opened = open_client(self._server, self.timeout)
        return self._opened


def run(work: Coroutine[Any, Any, T], client: OpenAIBatches | None, store: str | Path) -> T:
    """Return the result of a coroutine, and close the client's connections.

    It runs on its own thread, and therefore also in a notebook, whose loop is already running. A
    signal, which Python raises on the main thread, cannot be swallowed inside a callback of the
    loop; it cancels the work, and the caller waits for the work's end.
    """
    cancel: Future[Callable[[], object]] = Future()

    async def main() -> T:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None  # noqa: S101 - a coroutine on a loop runs in a task
        # call_soon_threadsafe raises a RuntimeError once the loop has ended.
        cancel.set_result(lambda: loop.call_soon_threadsafe(task.cancel))
        try:
            return await work
        except OSError as error:
            raise StoreError(
                f"the batches of {store} cannot be read or written: {error}; mend that and run "
                "this again: nothing is lost"
            ) from error
        finally:
            if client is not None:
                await client.aclose()

    with ThreadPoolExecutor(1, "labeler-batches") as thread:
        result = thread.submit(lambda: asyncio.run(main()))
        try:
            return result.result()
        except BaseException:
            # The work's own error, or a signal; after the former nothing is left to cancel.
            with contextlib.suppress(RuntimeError):
                cancel.result()()
            raise


@dataclass(frozen=True)
class _Page:
    """A page of the provider's list of batches."""

    batches: list[Mapping[str, Any]]
    is_last: bool

    def reaches_before(self, moment: float) -> bool:
        """Return true if the newest come first and all later ones are older than a Unix time."""
        first: object = self.batches[0].get("created_at")
        last: object = self.batches[-1].get("created_at")
        if not isinstance(first, int) or not isinstance(last, int):
            return False
        return last < first and last < moment


def _page(listed: object) -> _Page | None:
    """Validate a page; ``None`` if it is no list, or any item is not a batch."""
    found = listed.get("data") if isinstance(listed, Mapping) else None
    if not isinstance(listed, Mapping) or not isinstance(found, list):
        return None
    named = [one for one in found if isinstance(one, Mapping) and text_of(one.get("id"))]
    more = listed.get("has_more")
    if len(named) < len(found) or (more and not named):
        return None
    goes_on = more or (more is None and len(named) == _PAGE)
    return _Page(named, is_last=not goes_on)


def _body(line: BatchRequest) -> dict[str, Any]:
    request, history = line.task, line.history
    messages: list[Mapping[str, Any]] = list(request.messages)
    if history.complaint is not None:
        messages.append({"role": "assistant", "content": history.answer or ""})
        messages.append({"role": "user", "content": history.complaint})
    settings = {**request.signature.sampling, "cap_field": line.cap_field}
    spec = spec_of(request.signature.model, settings)
    # A server that refuses the fields for caching would refuse every line of a file.
    return request_body(spec, request, messages, history.cap, cached=False)


def _pause(state: RetryCallState) -> float:
    """Return the seconds until the next attempt: the back-off, or more if the server asks."""
    return max(_asked_wait(error_of(state)), BACK_OFF(state))


def _asked_wait(error: BaseException | None) -> float:
    """Return the seconds that the server asks to wait."""
    return (error.observed.retry_after or 0.0) if isinstance(error, AttemptFailed) else 0.0


def _remote(batch: object) -> RemoteBatch:
    """Validate a batch; the library does not."""
    fields: Mapping[str, Any] = batch if isinstance(batch, Mapping) else {}
    name, status = text_of(fields.get("id")), text_of(fields.get("status"))
    if not name:
        raise AttemptFailed(ObservedError("not_json"))
    found = fields.get("request_counts")
    counts = found if isinstance(found, Mapping) else {}
    return RemoteBatch(
        id=name,
        status=cast("RemoteStatus", status) if status in get_args(RemoteStatus) else "unknown",
        **{kind: _count(counts.get(kind)) for kind in ("total", "completed", "failed")},
        output_file=text_of(fields.get("output_file_id")) or None,
        error_file=text_of(fields.get("error_file_id")) or None,
        problems=tuple(_problems(fields.get("errors"))),
    )


def _problems(errors: object) -> list[str]:
    listed = errors.get("data") if isinstance(errors, Mapping) else None
    found = []
    for problem in listed if isinstance(listed, list) else []:
        fields = problem if isinstance(problem, Mapping) else {}
        code, line = plain_code(text_of(fields.get("code"))) or "no code", fields.get("line")
        found.append(f"{code} in line {line}" if type(line) is int else code)
    more = [f"and {len(found) - _MOST_PROBLEMS} more"] if len(found) > _MOST_PROBLEMS else []
    return found[:_MOST_PROBLEMS] + more


def _count(value: object) -> int:
    return value if type(value) is int and 0 < value <= _MOST_COUNTED else 0
