"""A client of OpenAI's Batch API, or any server that speaks it: files in, files out, half price.

The requests equal the online judge's. Every response of the server is validated here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from openai import AsyncOpenAI, Omit, omit
from openai.resources.batches import AsyncBatchesWithRawResponse
from openai.resources.files import AsyncFilesWithRawResponse
from pydantic import BaseModel

from labeler.data.lines import BOM, bounded_lines, durable, file_errors
from labeler.errors import (
    FatalJudgeError,
    JudgeError,
    StoreError,
    count_of,
    number_in,
)
from labeler.judges.limits import number_of
from labeler.judges.openai.address import MaskedBytes
from labeler.judges.openai.client import open_client
from labeler.judges.openai.completion import Completion, read_completion
from labeler.judges.openai.error_rules import (
    RETRIED,
    AttemptFailed,
    ObservedError,
    RetryPolicy,
    explain,
    find_rule,
)
from labeler.judges.openai.reading import json_of, object_of
from labeler.judges.openai.retries import LONGEST_PAUSE, retrying
from labeler.judges.openai.sender import WIRE_ERRORS, failed_request
from labeler.judges.openai.server import KeySource, quote, read_server
from labeler.judges.openai.server_errors import stated_error
from labeler.judges.pace import Pace
from labeler.labeling.engine import Engine
from labeler.plugins.batch.folder import ENDPOINT
from labeler.plugins.batch.remote import MARKER, RemoteBatch

_TRANSFER_SECONDS = 3600.0
"""Limit for the transfer of a whole file, and for starting a batch; ``timeout`` applies between two
bytes, and to one request."""
_PAGE, _MOST_PAGES = 100, 1000
_BEGIN = 1000
"""Bytes of a file of answers that show whether it is one."""
_SEARCH_PAUSES = (0.0, 10.0, 20.0)
"""Seconds before each search."""
OK = 200
_STATUSES, _SUCCESSES = range(100, 1000), range(200, 300)
_MOST_LOOKS, _LOOK_PAUSE = 60, 5.0
"""Looks at an uploaded file at most, and seconds before each."""
_RETRIEVE, _CANCEL, _FETCH = "look at the batch", "cancel the batch", "fetch the answers"
_UPLOAD, _START, _LIST = "hand in the file of requests", "start the batch", "list batches"
_GONE, _TOO_LARGE = frozenset({404, 405, 410}), 413
_NOT_KNOWN = (
    "the server does not know it, or has deleted it: use the key and the project that it was "
    "handed in with"
)
_NO_BATCHES = (
    "the server offers no batches at this address: check --base-url, or label the rows online"
)
_UNCLEAR = (
    "nothing was started; see in the provider's own list whether a batch was started for these "
    "rows, and run it again"
)

T = TypeVar("T")


class _Page(BaseModel, strict=True):
    """A page of the provider's list of batches."""

    data: list[RemoteBatch]
    has_more: bool = False


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
        self.base_url, self.host = self._server.base_url, self._server.host
        self.timeout, self.sleep = number_in("timeout", timeout, 0.001), sleep
        self._max_attempts = count_of("max_attempts", max_attempts, 1)
        self._opened: AsyncOpenAI | None = None

    async def upload(self, path: Path) -> str:
        """Upload a file of requests, wait until the provider has read it; return the file's id."""

        async def send() -> RemoteBatch:
            # An open file is streamed; a path would be read into memory first.
            with path.open("rb") as file:
                return await _described(self._files().create(file=file, purpose="batch"))

        # A file has an id and a status, as a batch has.
        sent = await self._step(_UPLOAD, send, _TRANSFER_SECONDS)

        async def look() -> RemoteBatch:
            return await _described(self._files().retrieve(sent.id))

        for _ in range(_MOST_LOOKS):  # Azure starts no batch of a file that it has not read
            if sent.status not in {"validating", "in_progress"}:
                break
            await self.sleep(_LOOK_PAUSE)
            sent = await self._step(_UPLOAD, look)
        return sent.id

    async def create(self, file_id: str, marker: str, *, again: bool) -> RemoteBatch:
        """Start the batch of an uploaded file, unless there is one with this marker already.

        A failed attempt may have started it: before each further attempt, :meth:`find` searches for
        it. The provider has no idempotency key, so this relies on its list.

        Args:
            file_id: the uploaded file.
            marker: our name for the batch, which the provider keeps.
            again: true if it may have been started already: then it is searched for first.
        """
        unsure = again

        async def send() -> RemoteBatch:
            nonlocal unsure
            if unsure and (found := await self.find(file_id, marker)):
                return found
            unsure = True
            async with asyncio.timeout(self.timeout):
                making = self._batches().create(
                    completion_window="24h",
                    endpoint=ENDPOINT,
                    input_file_id=file_id,
                    metadata={MARKER: marker},
                )
                return await _described(making)

        return await self._step(_START, send, _TRANSFER_SECONDS)

    async def find(self, file_id: str, marker: str) -> RemoteBatch | None:
        """Search for the batch of a file; ``None`` if there is none, and any doubt is an error.

        A batch may be listed some time after it was started: there are three searches, 10 and 20
        seconds apart. Arguments as for :meth:`create`.
        """
        for pause in _SEARCH_PAUSES:
            if pause:
                await self.sleep(pause)
            async for one in self._listed():
                if one.marker == marker or one.input_file == file_id:  # no other batch uses it
                    return one
        return None

    async def retrieve(self, batch_id: str) -> RemoteBatch:
        """Return the current state of a batch."""
        return await self._step(_RETRIEVE, lambda: _described(self._batches().retrieve(batch_id)))

    async def cancel(self, batch_id: str) -> RemoteBatch:
        """Cancel a batch; answers that exist by then stay available."""
        return await self._step(_CANCEL, lambda: _described(self._batches().cancel(batch_id)))

    async def download(self, file_id: str, path: Path) -> None:
        """Download a file of answers; the path exists only when it is complete and durable."""
        partial = path.with_name(f".{path.name}.partial")

        async def send() -> None:
            files, mask = self._client().files.with_streaming_response, MaskedBytes()
            async with files.content(file_id) as response:
                with durable(partial) as file:
                    async for piece in response.iter_bytes():
                        file.write(mask.add(piece))
                    file.write(mask.end())
            with partial.open("rb") as file:  # empty if there are none, as Azure's of errors
                if file.read(_BEGIN).removeprefix(BOM).lstrip()[:1] not in {b"{", b""}:
                    raise ValueError("a proxy's page: read as answers, all would be lost")
            partial.replace(path)

        await self._step(_FETCH, send, _TRANSFER_SECONDS)

    async def aclose(self) -> None:
        """Close the connections; the client may be used again."""
        client, self._opened = self._opened, None
        if client is not None:
            await client.close()

    async def _listed(self) -> AsyncIterator[RemoteBatch]:
        """Yield the batches that the provider lists."""
        after: str | Omit = omit

        async def read() -> _Page:
            answer = await self._batches().list(limit=_PAGE, after=after)
            found = _Page.model_validate_json(answer.http_response.content)
            if found.has_more and not found.data:
                raise ValueError("more batches are said to follow none")
            return found

        for _ in range(_MOST_PAGES):
            page = await self._step(_LIST, read)
            for one in page.data:
                yield one
            if not page.has_more:
                return
            after = page.data[-1].id
        raise JudgeError(
            f"could not {_LIST} at {self.host}: it lists more than {_PAGE * _MOST_PAGES}, and the "
            f"one that was to be started is not among them; {_UNCLEAR}",
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
            except WIRE_ERRORS as error:  # a value that does not validate among them
                failed = failed_request(error)
            # The next look asks again; asking before the time that the server names helps nobody.
            failed.stops = (failed.observed.retry_after or 0.0) > LONGEST_PAUSE
            raise failed

        try:
            return await retrying(Pace(), self._max_attempts, self.sleep)(attempt)
        except AttemptFailed as failed:
            observed = failed.observed
        # Raised here, so that no exception that holds the key is chained to ours.
        raise self._failure(doing, observed)

    def _failure(self, doing: str, observed: ObservedError) -> JudgeError:
        rule, status = find_rule(observed), observed.status
        where = f"could not {doing} at {self.host}"
        # Of a start it may be the model that the server does not know.
        if status in _GONE and (doing != _START or rule.policy is RetryPolicy.RECORD):
            is_known = doing in {_RETRIEVE, _CANCEL, _FETCH}
            kind, remedy = (JudgeError, _NOT_KNOWN) if is_known else (FatalJudgeError, _NO_BATCHES)
            return kind(f"{where}: {remedy} (status {status})", reason="not_found")
        if observed.kind == "not_json" and doing == _LIST:
            message = f"{where}: it does not list batches, each with an id; {_UNCLEAR}"
            return JudgeError(message, reason="unclear")
        if doing == _UPLOAD and status == _TOO_LARGE:
            remedy = "the file is too large for this server: cancel it, and submit fewer rows"
            return FatalJudgeError(f"{where}: {remedy} (status {status})", reason="oversize")
        hint = self._server.key_hint(observed) or quote(observed.message)
        message = f"{where}: {explain(observed, timeout=self.timeout, detail=hint)}"
        kind = JudgeError if rule.policy in RETRIED else FatalJudgeError
        return kind(message, reason=rule.reason)

    def _files(self) -> AsyncFilesWithRawResponse:
        return self._client().files.with_raw_response

    def _batches(self) -> AsyncBatchesWithRawResponse:
        return self._client().batches.with_raw_response

    def _client(self) -> AsyncOpenAI:
        if self._opened is None:
            self._opened = open_client(self._server, self.timeout)
        return self._opened


class AnswerLine(NamedTuple):
    """One line of an answer file."""

    text: str
    key: str
    status: int
    body: object
    """The completion; of another status, what states the error."""
    is_sent: bool = True
    """False if the request was not even sent, such as in a batch that expired."""

    @property
    def completion(self) -> Completion:
        """The completion, or the error in its place."""
        if self.status != OK:
            return Completion(error=stated_error(self.body, self.status))
        return read_completion(object_of(self.body))


def answer_lines(path: Path, start: int = 0) -> Iterator[tuple[int, AnswerLine | None]]:
    """Yield the lines of an answer file from a byte on; ``None`` for one that cannot be read.

    Yields:
        The place of a line, and what it holds.

    Raises:
        UsageError: the file cannot be read.
    """
    with file_errors(str(path)), path.open("rb") as file:
        file.seek(start)
        for content in bounded_lines(file):
            line = content.removeprefix(BOM)
            if line.strip():
                yield start, parse_line(line.decode(errors="replace"))
            start = file.tell()


def parse_line(text: str) -> AnswerLine | None:
    """Return what a line of an answer file holds; ``None`` if it cannot be read."""
    line = object_of(json_of(text.encode()))
    key, response = line.get("custom_id"), object_of(line.get("response"))
    body: object = response if "choices" in response else response.get("body")  # vLLM
    if isinstance(body, str):  # as some servers write it
        body = json_of(body.encode("utf-8", "replace"))
    body = object_of(body)
    # Some servers leave it out.
    status = number_of(str(response.get("status_code") or (OK if body else ""))) or 0
    if not isinstance(key, str):
        return None
    if status in _STATUSES:
        stated = body or line.get("error")  # vLLM
        return AnswerLine(text, key, OK if status in _SUCCESSES else int(status), stated)
    is_error = isinstance(line.get("error"), dict)
    return AnswerLine(text, key, 0, None, is_sent=False) if is_error else None


UNREAD = AnswerLine("", "", 0, None)
"""Stands for a stored answer that is not a line of answers."""


async def _described(call: Awaitable[Any]) -> RemoteBatch:
    """Return the batch in a response, validated here: openai's classes take anything."""
    return RemoteBatch.model_validate_json((await call).http_response.content)


def run(work: Callable[[], Coroutine[Any, Any, T]], client: OpenAIBatches | None) -> T:
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
