"""openai's client, for batches and embeddings, over our own connections.

By default, the library takes host, proxy and headers from the environment and follows redirects
with the documents. Here it sends to the address that it was given, and its headers are replaced.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from typing import cast

from httpx2 import (
    AsyncBaseTransport,
    AsyncByteStream,
    AsyncClient,
    Request,
    RequestNotRead,
    Response,
)
from openai import AsyncOpenAI

from labeler.judges.openai import sender
from labeler.judges.openai.address import NO_KEY
from labeler.judges.openai.sender import LentResponse, Sender
from labeler.judges.openai.server import Server

_KEPT = frozenset({"accept", "content-type", "content-length"})
"""Headers of the library that are sent; it takes others from the environment."""
_REPLACED = frozenset({"content-encoding", "content-length", "set-cookie"})
"""Headers that do not hold for a decoded body, or that would be sent back."""


def open_client(server: Server, timeout: float) -> AsyncOpenAI:
    """Open a client on the running event loop; its timeout is between two pieces of a response."""
    transport = SenderTransport(Sender(server, timeout))
    return AsyncOpenAI(
        api_key=NO_KEY,  # the real one is added to each request
        base_url=server.base_url,
        max_retries=0,  # tenacity is the only retry layer
        http_client=AsyncClient(
            transport=transport, follow_redirects=False, trust_env=False, timeout=None
        ),
    )


class SenderTransport(AsyncBaseTransport):
    """Carries the requests of an HTTP client."""

    def __init__(self, carrier: Sender) -> None:
        self._sender = carrier

    async def handle_async_request(self, request: Request) -> Response:
        """Send a request; the body of its response is read later, piece by piece."""
        content: bytes | AsyncIterable[bytes]
        try:
            content = request.content
        except RequestNotRead:  # a file is sent as it is read
            content = cast("AsyncByteStream", request.stream)
        headers = {name: value for name, value in request.headers.items() if name in _KEPT}
        url = str(request.url)
        response = await self._sender.open(request.method, url, headers, content or None)
        return Response(
            response.status,
            headers=[one for one in response.headers.items() if one[0].lower() not in _REPLACED],
            stream=_Body(response),
            request=request,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._sender.aclose()


class _Body(AsyncByteStream):
    """The decoded body of a response."""

    def __init__(self, response: LentResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        is_file = self._response.is_success and self._response.url.path.endswith("/content")
        limit = sender.LARGEST_FILE if is_file else sender.LARGEST_BODY
        async for piece in self._response.pieces(limit):
            yield piece

    async def aclose(self) -> None:
        self._response.release()
