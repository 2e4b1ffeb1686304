"""Validation of API addresses and keys, before anything is sent and without importing openai."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Collection
from urllib.parse import SplitResult, urlsplit

from labeler.errors import UsageError
from labeler.judges.providers import PROVIDERS

OFFICIAL_URL = PROVIDERS["openai"].base_url
NO_KEY = "none"
"""The key of a server that needs none."""


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
        raise UsageError("base_url must end with its path: it takes no ? and no #")
    allowed = {name.lower() for name in allow_http}
    if parts.scheme == "http" and not is_loopback(host) and host not in allowed:
        raise UsageError(
            f"base_url would send documents and the API key to {host!r} in the clear: use https, "
            f"or give --allow-http {host} (allow_http) if you trust the network up to there"
        )
    return url


def host_of(url: str) -> str:
    """Return host and port of an address, without credentials and path."""
    parts: SplitResult = urlsplit(url)
    return parts.netloc.rpartition("@")[2]


def environment_key(base_url: str | None, provider: str = "openai", instead: str = "") -> str:
    """Return the API key of a provider's variables; ``none`` for a named server without a key.

    Args:
        base_url: the named server; ``None`` for that of the provider.
        provider: name of the provider.
        instead: the alternative to name where there is no key.

    Raises:
        UsageError: there is no key, or the environment names another server.
    """
    elsewhere = PROVIDERS[provider].address_variable
    if elsewhere and base_url is None and os.environ.get(elsewhere):
        raise UsageError(
            f"{elsewhere} is set, and labeler sends documents to addresses on the command line "
            "only: give --base-url (base_url), or unset the variable"
        )
    variables = PROVIDERS[provider].key_variables
    key = next(filter(None, map(os.environ.get, variables)), None)
    if not key and variables and base_url is None:
        raise UsageError(
            f"a hosted model needs a key in {' or '.join(variables)} or from --api-key-command, or "
            f"--base-url for a server that needs none{instead}"
        )
    return key or NO_KEY


def usable_key(key: str) -> str:
    """Return an API key if it can be sent in a header.

    Raises:
        UsageError: the key is empty or has invalid characters; it is not repeated.
    """
    if not key:
        raise UsageError("the API key is empty: pass api_key, for example from OPENAI_API_KEY")
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
