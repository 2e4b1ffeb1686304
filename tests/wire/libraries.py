"""Client libraries of providers that tests run without: the few names that labeler uses.

``scripts/check_elsewhere providers`` runs the same tests with the real ones.
"""

from __future__ import annotations

from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pytest
from httpx2 import AsyncClient, HTTPError, Response

from labeler.judges import anthropic


class APIError(Exception):
    """A response with another status, or none."""

    def __init__(self, response: Response | None = None) -> None:
        super().__init__("api error")
        self.response = response


class AsyncAnthropic:
    """A client of Anthropic."""

    def __init__(self, *, base_url: str, http_client: AsyncClient, **_: Any) -> None:
        self._base_url, self._http = base_url, http_client

    async def post(self, path: str, *, cast_to: type[Response], content: bytes) -> Response:
        """Send a body."""
        del cast_to
        return await self._send("POST", path, content)

    async def get(self, path: str, *, cast_to: type[Response]) -> Response:
        """Get a resource."""
        del cast_to
        return await self._send("GET", path, None)

    async def _send(self, method: str, path: str, content: bytes | None) -> Response:
        headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
        url = f"{self._base_url}{path}"
        try:
            response = await self._http.request(method, url, content=content, headers=headers)
        except HTTPError as error:
            raise APIError from error
        if not response.is_success:
            raise APIError(response)
        return response


def is_installed(name: str) -> bool:
    """Whether the library of a judge is installed."""
    return find_spec({"anthropic": "anthropic"}[name]) is not None


def install(patch: pytest.MonkeyPatch) -> None:
    """Put stand-ins where a library is not installed."""
    if not is_installed("anthropic"):
        library = SimpleNamespace(APIError=APIError, AsyncAnthropic=AsyncAnthropic)
        patch.setattr(anthropic, "client_library", lambda *_: library)
