"""Embeddings from OpenAI's API or a compatible server.

Judges send in the same way: to a checked and final address, without environment defaults and
redirects. Requests obey the run's traffic control with its limits and budget.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from openai import AsyncOpenAI, omit
from pydantic import ValidationError

from labeler.errors import FatalJudgeError, JudgeError, UsageError, describe_faults, number_in
from labeler.judges.judge import UnusableAnswer
from labeler.judges.limits import Size
from labeler.judges.openai.attempts import most_tokens
from labeler.judges.openai.client import open_client
from labeler.judges.openai.completion import count_of, fact_of, unreadable
from labeler.judges.openai.error_rules import AttemptFailed, ObservedError
from labeler.judges.openai.reading import at, json_of, list_of, object_of
from labeler.judges.openai.retries import (
    concluded,
    final_error,
    report_failure,
    report_usage,
    retrying,
)
from labeler.judges.openai.sender import WIRE_ERRORS, failed_request
from labeler.judges.openai.server import KeySource, read_server
from labeler.judges.openai.server_errors import error_in
from labeler.judges.pace import BudgetSpent, Pace, SentRequest, Stopped, current
from labeler.judges.pricing import Price, find_price
from labeler.judges.tokens import TokenCounter
from labeler.labels.record import ReplyFacts, Usage
from labeler.plugins.similarity.embedders import (
    KEY_VARIABLE,
    Embedded,
    Vector,
    Vectors,
    as_vector,
)
from labeler.plugins.similarity.records import EmbedderSpec
from labeler.version import __version__

TEXTS_PER_REQUEST = 128
"""Below every provider's limit (OpenAI: 2,048); more would save no time."""


class OpenAIEmbedder:
    """Embeds texts with a hosted model.

    An embedder serves any number of runs, even at once: each event loop has its own client until
    :meth:`aclose` is called on it.

    Args:
        model: model name.
        api_key: sent to the host of ``base_url`` only; as for :class:`OpenAIJudge`.
        dimensions: requested dimensions; by default the model's own.
        timeout: seconds that one attempt may take in all.
        max_attempts: most requests for one batch of texts; rate limits and outages do not count.
        price: price of the model; by default from the price table, if it has one.
        sleep: waits between attempts.
        server: fields of :class:`~labeler.judges.options.ServerOptions`, such as ``base_url``.

    Raises:
        UsageError: a setting is out of range, the address is not safe, or the key cannot be one.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | KeySource | None = None,
        dimensions: int | None = None,
        timeout: float = 60.0,
        max_attempts: int = 6,
        price: Price | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        **server: Any,  # noqa: ANN401 - checked by ServerOptions
    ) -> None:
        try:
            self.spec = EmbedderSpec(embedder="openai", model=model, dimensions=dimensions)
        except ValidationError as error:
            fault = describe_faults(error)
            raise UsageError(f"embedder openai does not accept its {fault}") from None
        self._server = read_server(api_key, **server)
        if api_key is not None:  # a third host's, see :func:`key_of_embedder`
            self._server = replace(self._server, key_variables=(KEY_VARIABLE,))
        self._timeout = number_in("timeout", timeout, 0.001)
        self._price = price or find_price(model, self._server.base_url, has_answers=False)
        self._max_attempts, self._sleep = int(number_in("max_attempts", max_attempts, 1)), sleep
        self._counter = TokenCounter()
        self._clients: dict[asyncio.AbstractEventLoop, AsyncOpenAI] = {}

    @property
    def price(self) -> Price | None:
        """Price of the model's tokens, if known."""
        return self._price

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Embed texts, many in one request.

        Rejected texts, such as ones that are too long, get an error instead of a vector.

        Raises:
            FatalJudgeError: no text can be embedded with this key, model and address.
            RunPaused: the server asks to wait longer than the run may.
        """
        job = _Job(current())
        # An empty text is not sent: it spoils a whole request.
        fault = UnusableAnswer("an empty text has no vector", reason="empty_text", attempts=0)
        found: dict[str, Vector | JudgeError] = {"": fault}
        sent = [text for text in texts if text]
        starts = range(0, len(sent), TEXTS_PER_REQUEST)
        waiting = [sent[start : start + TEXTS_PER_REQUEST] for start in starts][::-1]
        while waiting:
            batch = waiting.pop()
            vectors = await self._embedded(job, batch)
            if vectors is None:
                middle = len(batch) // 2
                waiting += [batch[middle:], batch[:middle]]
            else:
                found |= zip(batch, vectors, strict=True)
        return Embedded(tuple(found[text] for text in texts), job.facts(self._server.host))

    async def aclose(self) -> None:
        """Close the connections of the running event loop; the embedder may be used again."""
        opened = self._clients.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            await opened.close()

    async def _embedded(self, job: _Job, texts: list[str]) -> Vectors | None:
        """Embed texts in one request, with retries; ``None`` asks to bisect for a faulty text."""
        before = job.attempts

        async def attempt() -> Vectors:
            async with job.traffic.request(job, self._size(texts)) as sent:
                job.attempts += 1
                return await self._send(job, texts, sent)

        try:
            vectors: Vectors = await retrying(job.traffic, self._max_attempts, self._sleep)(attempt)
        except (AttemptFailed, Stopped, BudgetSpent) as error:
            cause = error
        else:
            job.traffic.labeled()
            return vectors
        # Continued outside the handler: the cause may hold the key or the texts.
        if isinstance(cause, AttemptFailed) and len(texts) > 1 and cause.rule.lasting:
            return None
        failed = concluded(cause, job.traffic, tuple(texts), self._server)
        who = f"embedder {self.spec} at {self._server.host}"
        fault = final_error(failed, who, job.attempts - before, self._timeout)
        if isinstance(fault, FatalJudgeError):
            raise fault
        return (fault,) * len(texts)

    async def _send(self, job: _Job, texts: list[str], sent: SentRequest) -> Vectors:
        try:
            # The client's own timeout restarts with every byte; this one does not.
            async with asyncio.timeout(self._timeout):
                response = await self._client().embeddings.with_raw_response.create(
                    model=self.spec.model,
                    input=texts,
                    encoding_format="base64",
                    dimensions=self.spec.dimensions or omit,
                )
        except WIRE_ERRORS as error:
            failed = failed_request(error)
            sent.quotas(failed.headers)
        else:
            sent.quotas(response.headers)
            try:
                return self._vectors(job, sent, response.content, texts)
            except AttemptFailed as error:
                failed = error
        raise report_failure(job.traffic, sent, failed)

    def _vectors(self, job: _Job, sent: SentRequest, body: bytes, texts: list[str]) -> Vectors:
        """Return the vectors in a response, and report what they cost.

        Raises:
            AttemptFailed: there is not one for each text.
        """
        answer = json_of(body)
        if not isinstance(answer, dict):
            raise AttemptFailed(unreadable(body))
        if error := error_in(answer, "data"):
            raise AttemptFailed(error)
        counts = (at(answer, "usage", name) for name in ("prompt_tokens", "total_tokens"))
        tokens = next(filter(None, map(count_of, counts)), 0)
        usage = Usage(prompt_tokens=tokens) if 0 < tokens <= most_tokens(texts) else None
        job.served_model = fact_of(answer.get("model")) or job.served_model
        job.usage = job.usage + usage if job.usage and usage else usage or job.usage
        report_usage(sent, usage, self._price)
        try:
            return _vectors_of(answer.get("data"), len(texts), self.spec.dimensions)
        except ValueError as error:
            fault = str(error)
        raise AttemptFailed(ObservedError("garbled"), fault)  # paid for: asked once more

    def _size(self, texts: list[str]) -> Size:
        tokens = sum(map(self._counter.count, texts))
        if self._price is None:
            return Size(tokens)
        return Size(tokens, self._price.worst(sum(map(self._counter.at_most, texts)), 0))

    def _client(self) -> AsyncOpenAI:
        """Return the event loop's client; clients cannot change loops."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = open_client(self._server, self._timeout)
        return self._clients[loop]


@dataclass(eq=False)
class _Job:
    """Usage of one call of ``embed``."""

    traffic: Pace
    attempts: int = 0
    usage: Usage | None = None
    served_model: str | None = None
    started: float = field(default_factory=time.monotonic)

    def facts(self, host: str) -> ReplyFacts:
        """Return the facts of the requests."""
        return ReplyFacts(
            served_model=self.served_model,
            host=host,
            usage=self.usage,
            attempts=self.attempts,
            seconds=round(time.monotonic() - self.started, 3),
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            labeler_version=__version__,
        )


# The response: any part may be missing or wrong.


def _vectors_of(data: object, count: int, dimensions: int | None) -> Vectors:
    """Return the vectors of a response in the order of the texts; an error for an unusable one.

    Args:
        data: its field of this name.
        count: number of texts sent.
        dimensions: requested size of the vectors, if any.

    Raises:
        ValueError: there is not one vector for each text, none is usable, or their sizes differ.
    """
    items = list(map(object_of, list_of(data)))
    # Servers that write JSON from Protocol Buffers leave out a 0, and some every index.
    places = [item.get("index", 0) for item in items]
    if not any("index" in item for item in items):
        places = list(range(len(items)))
    if not all(type(place) is int for place in places) or sorted(places) != list(range(count)):
        raise ValueError(f"{len(items)} vectors for {count} texts, or other indexes")
    found = dict(zip(places, map(_vector_of, items), strict=True))
    sizes = {len(vector) for vector in found.values() if not isinstance(vector, JudgeError)}
    if not sizes:
        raise ValueError(str(found[0]))
    if len(sizes) != 1 or (dimensions is not None and sizes != {dimensions}):
        raise ValueError("vectors of a size that was not requested, or of several sizes")
    return tuple(found[index] for index in range(count))


def _vector_of(item: Mapping[str, Any]) -> Vector | JudgeError:
    """Return a vector; an error if it is unusable, as a model's may be for a single text."""
    try:
        return as_vector(item.get("embedding"))
    except ValueError as error:
        return UnusableAnswer(
            f"the text has no usable vector: {error}", reason="malformed", attempts=1
        )
