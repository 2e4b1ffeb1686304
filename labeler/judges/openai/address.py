"""Addresses, keys, headers, queries and proxies, checked before anything is sent.

Secrets come from variables of the environment that the user names; no message repeats a value.
Keys and documents are masked, as a server may repeat them and a library may log them.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import re
from base64 import b64encode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from traceback import format_exception
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from labeler.errors import UsageError
from labeler.judges.options import PROVIDERS

OFFICIAL_URL = PROVIDERS["openai"].base_url
NO_KEY = "none"
"""The key of a server that needs none."""
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_RESERVED = frozenset((
    *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization"),
    *("proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "expect"),
    *("host", "content-length", "content-type", "content-encoding", "accept-encoding"),
))  # fmt: skip
"""Headers of one connection or one body."""
_LONGEST = 8000
"""Characters of a value at most."""


def safe_url(url: str, allow_http: Collection[str] = ()) -> str:
    """Return the address of an API if it is encrypted or stays here, and holds no credentials.

    Args:
        url: HTTPS, or HTTP to this machine.
        allow_http: other hosts that may be reached by HTTP.

    Raises:
        UsageError: the address is anything else; it is not repeated, because it may hold a secret.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port  # reading it validates it
    except ValueError:
        raise UsageError("base_url is not a URL; give one such as " + OFFICIAL_URL) from None
    if not host or parts.scheme not in {"http", "https"}:
        raise UsageError(f"base_url must start with https:// and a host, such as {OFFICIAL_URL}")
    if parts.username is not None or parts.password is not None:
        raise UsageError("base_url must hold no user or password: pass the key as api_key")
    if parts.query or parts.fragment:
        raise UsageError(
            "base_url must end with its path: give what follows ? as --query api-version=2024-10-21"
        )
    allowed = {name.lower() for name in allow_http}
    if parts.scheme == "http" and not is_loopback(host) and host not in allowed:
        raise UsageError(
            f"base_url would send documents and the API key to {host!r} in the clear: use https, "
            f"or give --allow-http={host} if you trust the network up to there"
        )
    return url


def host_of(url: str) -> str:
    """Return host and port of an address, without credentials and path."""
    return urlsplit(url).netloc.rpartition("@")[2]


def environment_key(base_url: str | None, provider: str = "openai") -> str:
    """Return the API key of a provider's variables; ``none`` for a named server without a key.

    Args:
        base_url: the named server; ``None`` for that of the provider.
        provider: name of the provider.

    Raises:
        UsageError: there is no key, or as for :func:`require_named_server`.
    """
    require_named_server(base_url, provider)
    variables = PROVIDERS[provider].key_variables
    key = next(filter(None, map(os.environ.get, variables)), None)
    if not key and variables and base_url is None:
        raise UsageError(
            f"a hosted model needs a key in {' or '.join(variables)} or from --api-key-command, or "
            "--base-url for a server that needs none"
        )
    return key or NO_KEY


def require_named_server(base_url: str | None, provider: str = "openai") -> None:
    """Check that the environment names no other server, which the provider's library would ask.

    Raises:
        UsageError: it does, and ``base_url`` names none: a gateway's key would go to the provider.
    """
    variables = PROVIDERS[provider].address_variables
    elsewhere = next(filter(os.environ.get, variables), None)
    if elsewhere and base_url is None:
        raise UsageError(
            f"{elsewhere} is set, and labeler sends documents to addresses on the command line "
            "only: give --base-url, or unset the variable"
        )


def usable_key(key: object) -> str:
    """Return an API key if it can be sent in a header.

    Raises:
        UsageError: the key is not a text, is empty, or has invalid characters; it is not repeated.
    """
    if not key or not isinstance(key, str):
        raise UsageError(
            "the API key is empty or no text: pass api_key, such as from OPENAI_API_KEY"
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(
            "the API key holds a space, a line break or a non-ASCII letter: check how it was read"
        )
    return key


def is_loopback(host: str) -> bool:
    """Return true if a host is this machine, judged by its name alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True)
class Proxy:
    """A proxy."""

    url: str
    """Without credentials."""
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    """Headers that are sent to the proxy alone; aiohttp gives them their name there."""


def read_headers(pairs: Sequence[str]) -> dict[str, str]:
    """Return the headers of ``NAME=@VARIABLE`` texts, names in lower case.

    Raises:
        UsageError: a text has another form, a name is invalid, reserved or given twice, or a
            variable is not set or holds no header value.
    """
    headers: dict[str, str] = {}
    for pair in pairs:
        name, _, source = pair.partition("=")
        lowered = name.lower()
        if not _NAME.fullmatch(name) or not source.startswith("@"):
            raise UsageError(
                f"--header {name!r:.80} must be NAME=@VARIABLE, such as api-key=@AZURE_API_KEY: "
                "values come from the environment, because everyone can read a command line"
            )
        if lowered in _RESERVED or lowered in headers:
            fault = "is given twice" if lowered in headers else "belongs to the connection"
            raise UsageError(f"--header {name} {fault}: drop it")
        headers[lowered] = _variable(f"--header {name}", source[1:])
        remember_value(headers[lowered])
    return headers


def read_query(pairs: Sequence[str]) -> dict[str, str]:
    """Return the query parameters of ``NAME=VALUE`` texts.

    Raises:
        UsageError: a text has another form, or a name is given twice.
    """
    query: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals or name in query:
            fault = "is given twice" if name in query else "must be NAME=VALUE"
            raise UsageError(f"--query {name!r:.80} {fault}: write --query api-version=2024-10-21")
        query[name] = value
    return query


def read_proxy(choice: str | None, base_url: str) -> Proxy | None:
    """Return the proxy before an address; ``None`` for a direct connection.

    Args:
        choice: a URL, ``@VARIABLE`` that holds one, or ``env`` for the usual variables, which are
            ignored otherwise.
        base_url: the address. With ``env``, ``NO_PROXY`` may exempt it, and this machine is exempt.

    Raises:
        UsageError: it is not an address of an HTTP proxy, or a URL on the command line holds
            credentials.
    """
    if choice is None:
        return None
    if choice == "env":
        address = urlsplit(base_url)
        proxies = getproxies_environment()
        url = proxies.get(address.scheme) or proxies.get("all")
        exempt = is_loopback(address.hostname or "") or proxy_bypass(host_of(base_url))
        where = f"--proxy env: {address.scheme.upper()}_PROXY or ALL_PROXY"
        return None if not url or exempt else _parse_proxy(url, where, secret=True)
    if choice.startswith("@"):
        url = _variable("--proxy", choice[1:])
        return _parse_proxy(url, f"--proxy {choice}", secret=True)
    return _parse_proxy(choice, "--proxy", secret=False)


def _parse_proxy(url: str, where: str, *, secret: bool) -> Proxy:
    """Return the proxy of a URL, which no message repeats.

    Args:
        url: the URL.
        where: where it was given.
        secret: true if it may hold credentials.
    """
    fault = f"{where} must be the address of an HTTP proxy, such as http://proxy.example.org:3128"
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        _ = parts.port  # reading it validates it
    except ValueError:
        raise UsageError(fault) from None
    rest = parts.path.strip("/") or parts.query or parts.fragment
    if parts.scheme not in {"http", "https"} or not parts.hostname or rest:
        raise UsageError(fault)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if "@" in parts.netloc and not secret:
        raise UsageError(
            f"{where} holds credentials, and everyone can read a command line: put the URL into a "
            "variable of the environment, and give --proxy @VARIABLE"
        )
    if ":" in user or not f"{user}{password}".isprintable():
        raise UsageError(f"{where}: its user or password has a character that is not allowed")
    bare = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    if not user and not password:
        return Proxy(bare)
    credentials = b64encode(f"{user}:{password}".encode()).decode()
    remember_key(password)
    remember_key(credentials)
    return Proxy(bare, {"authorization": f"Basic {credentials}"})


def _variable(option: str, name: str) -> str:
    """Return the value of a variable that can be sent in a header."""
    value = os.environ.get(name, "")
    if not value:
        raise UsageError(f"{option}: the environment has no variable {name!r:.80}, or it is empty")
    if not value.isascii() or not value.isprintable() or len(value) > _LONGEST:
        raise UsageError(
            f"{option}: the variable {name} holds a line break or a non-ASCII letter, or more than "
            f"{_LONGEST} characters"
        )
    return value


MASK = "[key]"
_SHORTEST_KEY = 8
"""Length of a real key at least; a shorter one is a placeholder for servers without keys."""
_KEYS: set[str] = set()
"""API keys of all clients."""
_VALUES: set[str] = set()
"""Values of the user's headers. Short ones are often words, such as the name of a team, which must
stay in an answer: they are masked in messages and logs alone."""
_SHORTEST_VALUE, _SHORTEST_TOKEN = 4, 20
"""Lengths from which a header's value is masked, and from which it cannot be a word."""


def remember_key(key: str) -> None:
    """Mask a key from now on."""
    if len(key) >= _SHORTEST_KEY:
        _KEYS.add(key)


def remember_value(value: str) -> None:
    """Mask the value of a header from now on."""
    if len(value) >= _SHORTEST_TOKEN:
        remember_key(value)
    elif len(value) >= _SHORTEST_VALUE:
        _VALUES.add(value)


def masked(text: str) -> str:
    """Return a message without the keys in it."""
    for key in (*_KEYS, *_VALUES):
        text = text.replace(key, MASK)
    return text


def masked_json(text: str) -> str:
    """Return a JSON text without the keys in it, also those that are written with escapes."""
    hidden = masked(text)
    if "\\" not in hidden:
        return hidden
    plain = _ESCAPE.sub(_unescaped, hidden)
    return hidden if masked(plain) == plain else masked(plain)


_ESCAPE = re.compile(r"\\(?:u00([2-7][0-9a-fA-F])|.)", re.DOTALL)


def _unescaped(escape: re.Match[str]) -> str:
    """Return the character of an escape that JSON does not need; others stay."""
    character = chr(int(escape[1], 16)) if escape[1] else escape[0][1]
    return escape[0] if character in _NEEDED or not (escape[1] or character == "/") else character


_NEEDED = frozenset('"\\\x7f')


def plain_code(text: str) -> str:
    """Return a provider's code if it looks like one, else "": it might quote the request.

    Hyphens are excluded so that no API key passes for a code.
    """
    return text if _CODE.fullmatch(text) else ""


_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.\[\]]{0,63}", re.ASCII)


class MaskedBytes:
    """Masks keys in bytes that arrive in pieces, also across two of them."""

    def __init__(self) -> None:
        self._kept = b""
        self._overlap = max((len(key) for key in _KEYS), default=1) - 1

    def add(self, piece: bytes) -> bytes:
        """Return the bytes that are certain; the end of a piece may begin a key."""
        whole = self._kept + piece
        for key in _KEYS:
            whole = whole.replace(key.encode(), MASK.encode())
        certain = max(0, len(whole) - self._overlap)
        self._kept = whole[certain:]
        return whole[:certain]

    def end(self) -> bytes:
        """Return the rest."""
        return self._kept


_BODIES = {"content", "json_data"}


class _Clean(logging.Filter):
    """Keeps documents and keys out of the logs: libraries log bodies, headers and errors."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, Mapping) and _BODIES & record.args.keys():
            return False
        message = record.getMessage()
        if (text := masked(message)) != message:
            record.msg, record.args = text, None
        error = record.exc_info[1] if record.exc_info else None
        if error and any(masked(line) != line for line in format_exception(error)):
            record.exc_info = None
        return True


for _name in (
    *("openai._base_client", "openai._response", "openai._legacy_response"),
    *("httpx2", "aiohttp.client", "aiohttp.internal"),
):
    logging.getLogger(_name).addFilter(_Clean())
