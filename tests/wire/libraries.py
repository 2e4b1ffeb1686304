"""Client libraries of providers that tests run without: the few names that labeler uses.

``scripts/check_elsewhere providers`` runs the same tests with the real ones.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pytest
from httpx2 import AsyncClient, HTTPError, Response

from labeler.judges import anthropic, gemini


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


class GoogleModels:
    """The models of a client of Google, which writes JSON with spaces."""

    def __init__(self, options: SimpleNamespace) -> None:
        self._options, self._http = options, options.httpx_async_client

    async def generate_content(
        self, *, model: str, contents: str, config: SimpleNamespace
    ) -> SimpleNamespace:
        """Request a candidate."""
        body = {"contents": contents} | config.http_options.extra_body
        response = await self._send("POST", f"{model}:generateContent", json.dumps(body).encode())
        sent = SimpleNamespace(body=response.text, headers=response.headers)
        return SimpleNamespace(sdk_http_response=sent)

    async def get(self, *, model: str) -> Response:
        """Look a model up."""
        return await self._send("GET", model, None)

    async def _send(self, method: str, path: str, content: bytes | None) -> Response:
        url = f"{self._options.base_url}/{self._options.api_version}/models/{path}"
        headers = {"content-type": "application/json"}
        response: Response = await self._http.request(method, url, content=content, headers=headers)
        if response.status_code != HTTPStatus.OK:
            raise APIError(response)
        return response


def _google(*, http_options: SimpleNamespace, **_: Any) -> SimpleNamespace:
    return SimpleNamespace(aio=SimpleNamespace(models=GoogleModels(http_options)))


_TYPES = ("HttpOptions", "GenerateContentConfig", "AutomaticFunctionCallingConfig")
LIBRARIES = {
    "anthropic": SimpleNamespace(APIError=APIError, AsyncAnthropic=AsyncAnthropic),
    "gemini": SimpleNamespace(
        Client=_google,
        errors=SimpleNamespace(APIError=APIError),
        types=SimpleNamespace(**dict.fromkeys(_TYPES, SimpleNamespace)),
    ),
}
"""Stand-ins by the judge that uses them."""
MODULES = {"anthropic": "anthropic", "gemini": "google.genai"}
"""By the judge that needs one."""


def is_installed(name: str) -> bool:
    """Whether the library of a judge is installed, if it needs one."""
    module = MODULES.get(name, "json")
    return all(find_spec(part) for part in (module.partition(".")[0], module))


def install(patch: pytest.MonkeyPatch) -> None:
    """Put stand-ins where a library is not installed."""
    for judge, module in ((anthropic, "anthropic"), (gemini, "gemini")):
        if not is_installed(module):
            patch.setattr(judge, "client_library", lambda _, name: LIBRARIES[name])
