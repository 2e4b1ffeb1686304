"""A client of OpenAI's API with a fixed address, and readers of its responses.

By default, the library takes host, proxy and headers from the environment and follows redirects
with the documents. This client uses only the address that it is given and that was validated.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from ssl import SSLCertVerificationError, SSLContext
from traceback import format_exception
from typing import Any

import msgspec
from aiohttp import (
    ClientConnectorError,
    ClientHttpProxyError,
    ClientResponseError,
    ConnectionTimeoutError,
)
from httpx2 import AsyncClient, Auth, DecodingError, HTTPError
from openai import APIConnectionError, APIError, APIStatusError, AsyncOpenAI
from pydantic import SecretStr, TypeAdapter, ValidationError

from labeler.errors import UsageError, describe_faults
from labeler.judges.openai.access import Access, KeyCommand, KeySource, NoKey
from labeler.judges.openai.address import NO_KEY, OFFICIAL_URL, host_of, safe_url, usable_key
from labeler.judges.openai.completion import response_error
from labeler.judges.openai.error_rules import ErrorKind, ObservedError, find_rule
from labeler.judges.openai.headers import retry_after
from labeler.judges.openai.masking import masked, remember_key, remember_value
from labeler.judges.openai.network import Proxy, read_headers, read_proxy, read_query
from labeler.judges.openai.transport import (
    OversizedBody,
    Posts,
    ReadResponse,
    certificates,
    open_connections,
    open_http,
)
from labeler.judges.options import ServerOptions
from labeler.judges.providers import PROVIDERS

WIRE_ERRORS = (
    APIError,
    HTTPError,  # in the middle of a stream, where the library wraps none
    TimeoutError,
    ValueError,  # no JSON, no UTF-8, a number with more digits than Python parses
    RecursionError,  # JSON nested too deeply
)
"""The errors of one request that are not bugs of this package."""


@dataclass(frozen=True)
class Server:
    """A server as options describe it: all is checked and read, and nothing sent."""

    base_url: str
    host: str
    key: SecretStr | KeySource
    headers: Mapping[str, str] = field(repr=False)
    query: Mapping[str, str]
    proxy: Proxy | None
    context: SSLContext
    organization: str | None
    project: str | None
    key_variables: tuple[str, ...] = ()
    """Variables of the environment that may hold the key."""

    def key_hint(self, observed: ObservedError) -> str:
        """Return what is missing if a server rejects requests without a key; "" otherwise."""
        is_sent = not isinstance(self.key, SecretStr) or self.key.get_secret_value() != NO_KEY
        reason = find_rule(observed).reason if observed.kind == "status" else ""
        refused = reason in {"authentication", "permission"}
        if is_sent or self.headers or not refused or observed.status == _PROXY_ACCESS:
            return ""
        named = " or ".join(self.key_variables)
        unset = f"{named} is not set, so no key was sent: set it" if named else "no key was sent"
        return f"{unset}, or give --api-key-command"

    def open(self, timeout: float) -> AsyncOpenAI:
        """Open a client on the running event loop.

        Args:
            timeout: seconds between two pieces of a response.
        """
        return self._client(self.open_http(timeout, Access(self.key, self.headers)))

    def open_chat(self, timeout: float, path: str = "chat/completions") -> Chat:
        """Open a client that requests chat completions, or the answers of another path.

        Args:
            timeout: as for :meth:`open`.
            path: path behind the address.
        """
        access = Access(self.key, self.headers)
        connections = open_connections(self.context, self.proxy)
        http = open_http(connections, timeout, access)
        posts, query = Posts(connections, timeout), dict(self.query)
        return Chat(self._client(http), http, posts, access, query, path)

    def _client(self, http: AsyncClient) -> AsyncOpenAI:
        client = AsyncOpenAI(
            api_key=NO_KEY,  # the real one is added to each request
            base_url=self.base_url,
            default_query=dict(self.query),
            max_retries=0,  # tenacity is the only retry layer
            http_client=http,
        )
        # The constructor takes omitted values from the environment.
        client.organization, client.project = self.organization, self.project
        client._custom_headers = {}  # noqa: SLF001 - the only way to ignore OPENAI_CUSTOM_HEADERS
        return client

    def open_http(self, timeout: float, access: Auth) -> AsyncClient:
        """Open an HTTP client on the running event loop.

        Args:
            timeout: as above.
            access: adds headers and key to each request.
        """
        return open_http(open_connections(self.context, self.proxy), timeout, access)


def read_server(**settings: Any) -> ServerOptions:  # noqa: ANN401 - checked here
    """Validate a user's options of a server.

    Raises:
        UsageError: an option has a wrong type.
    """
    options = vars(ServerOptions(**settings))
    try:
        return TypeAdapter(ServerOptions).validate_python(options)
    except ValidationError as error:
        faults = describe_faults(error, most=error.error_count())
        raise UsageError(f"the server does not accept these options: {faults}") from None


def server_of(options: ServerOptions, key: str | KeySource | None) -> Server:
    """Return the server that options describe.

    Args:
        options: of the server.
        key: the API key, a function that returns it, or ``None`` if a command prints it.

    Raises:
        UsageError: the address is not safe, the key is malformed, missing or given twice, an option
            is malformed, or a file or a variable that it names cannot be read.
    """
    url = options.base_url or OFFICIAL_URL
    safe_url(url, options.allow_http or ())
    proxy = read_proxy(options.proxy, url)
    headers = read_headers(options.header or ())
    for value in headers.values():
        remember_value(value)
    plain = all(
        address.lower().startswith("http:") for address in [url, proxy.url if proxy else url]
    )
    return Server(
        base_url=url,
        host=host_of(url),
        key=_key_of(options, key),
        headers=headers,
        query=read_query(options.query or ()),
        proxy=proxy,
        context=certificates(plain, options.ca_file),
        organization=options.organization,
        project=options.project,
        key_variables=PROVIDERS[getattr(options, "judge", "openai")].key_variables,
    )


def _key_of(options: ServerOptions, key: str | KeySource | None) -> SecretStr | KeySource:
    if options.api_key_command is not None:
        if key is not None:
            raise UsageError("api_key and api_key_command (--api-key-command) are both given")
        return KeyCommand(options.api_key_command)
    if key is None or isinstance(key, str):
        usable = usable_key(key or "")
        remember_key(usable)
        return SecretStr(usable)
    return key


class Chat:
    """Requests chat completions at the address of openai's client, with its headers.

    The client's own method searches each body for names to convert, and its layers merge headers,
    options and addresses anew: most of the time of a request. Here that is done once.

    Args:
        client: client of the server.
        http: HTTP client that it uses.
        posts: posts bodies through the connections of both.
        access: credentials, the same as those of the HTTP client.
        query: parameters of each request's address.
        path: path of each request behind the client's address.
    """

    def __init__(  # noqa: PLR0917 - made in one place
        self,
        client: AsyncOpenAI,
        http: AsyncClient,
        posts: Posts,
        access: Access,
        query: dict[str, str],
        path: str,
    ) -> None:
        self.client, self._posts, self._access = client, posts, access
        given = client.default_headers.items()
        self._empty = http.build_request(
            "POST",
            f"{client.base_url}{path}",
            params=query or None,
            headers={name: value for name, value in given if isinstance(value, str)},
        )
        self._url = str(self._empty.url)
        replaced = {"authorization", "content-length"}
        self._headers = {n: v for n, v in self._empty.headers.items() if n not in replaced}

    async def send(self, body: Mapping[str, Any]) -> ReadResponse:
        """Request a chat completion; return the complete response with its headers.

        Raises:
            Exception: one of :data:`WIRE_ERRORS`.
        """
        content = msgspec.json.encode(body)

        async def post(credentials: Mapping[str, str]) -> ReadResponse:
            return await self._posts.post(self._url, {**self._headers, **credentials}, content)

        try:
            response = await self._access.send(post)
        except Exception as error:
            raise APIConnectionError(request=self._empty) from error
        if not response.is_success:
            failed = response.to(self._empty)
            raise APIStatusError(failed.reason_phrase, response=failed, body=None)
        return response


_KINDS: tuple[tuple[ErrorKind, tuple[type[BaseException], ...]], ...] = (
    ("no_key", (NoKey,)),
    ("proxy", (ClientHttpProxyError,)),
    ("oversized", (OversizedBody,)),
    ("untrusted", (SSLCertVerificationError,)),
    ("unconnected", (ClientConnectorError, ConnectionTimeoutError)),  # timeouts, too
    ("timeout", (TimeoutError,)),
    ("garbled", (ClientResponseError, DecodingError)),
    ("connection", (APIConnectionError, HTTPError)),
)
"""Kinds of errors without a status, by the errors that they were raised from; the first counts."""
_UNSENT = frozenset({"no_key", "proxy", "untrusted", "unconnected"})
"""Kinds after which the server has seen nothing of the request."""


def observed_error(error: Exception) -> ObservedError:
    """Describe one of :data:`WIRE_ERRORS` without the parts of the request that it holds."""
    if isinstance(error, APIStatusError):
        response = error.response
        wait = retry_after(response.headers)
        return response_error(response.content, response.status_code, wait)
    kind, cause = _kind_of(error)
    if isinstance(cause, ClientHttpProxyError):
        return ObservedError(kind, status=cause.status)
    return ObservedError(kind, facts=str(cause) if kind == "no_key" else "")


def _kind_of(error: BaseException) -> tuple[ErrorKind, BaseException]:
    """Return the kind of an error without a status, and the cause that shows it."""
    causes = [error]
    while (cause := causes[-1].__cause__) is not None:
        causes.append(cause)
    found = ((kind, one) for kind, types in _KINDS for one in causes if isinstance(one, types))
    return next(found, ("not_json", error))


def headers_of(error: Exception) -> Mapping[str, str]:
    """Return an error's response headers; their names are case-insensitive."""
    return error.response.headers if isinstance(error, APIStatusError) else {}


_PROXY_ACCESS = 407
AFTER_WORK = frozenset({408, 500, 502, 504})
"""Statuses that a provider may send although it has answered."""
_GATEWAY_STATUSES = 520
"""First of the statuses that a gateway may send although its provider has answered."""


def charged_status(status: int) -> bool:
    """Return true for an error status after which the provider may have answered."""
    return status in AFTER_WORK or status >= _GATEWAY_STATUSES


def may_be_charged(error: Exception) -> bool:
    """Return true if the provider may have answered although no complete response arrived."""
    if isinstance(error, APIStatusError):
        return charged_status(error.status_code)
    return _kind_of(error)[0] not in _UNSENT


class _WithoutBodies(logging.Filter):
    """Keeps documents out of the logs: at DEBUG the library logs request bodies."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (isinstance(record.args, Mapping) and _BODIES & record.args.keys())


_BODIES = {"content", "json_data"}


class _WithoutKeys(logging.Filter):
    """Keeps keys out of the logs: the libraries log headers and errors from the server."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if (text := masked(message)) != message:
            record.msg, record.args = text, None
        error = record.exc_info[1] if record.exc_info else None
        if error and any(masked(line) != line for line in format_exception(error)):
            record.exc_info = None
        return True


_WITHOUT_BODIES, _WITHOUT_KEYS = _WithoutBodies(), _WithoutKeys()


def guard_logs(*names: str) -> None:
    """Keep documents and keys out of the logs of a library.

    Args:
        names: its loggers.
    """
    for name in names:
        logging.getLogger(name).addFilter(_WITHOUT_BODIES)
        logging.getLogger(name).addFilter(_WITHOUT_KEYS)


guard_logs("openai._base_client", "openai._response", "openai._legacy_response", "httpx2")
guard_logs("aiohttp.client", "aiohttp.internal")
