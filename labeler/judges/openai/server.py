"""A server as options describe it: all is checked and read, and nothing sent."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from httpx2 import create_ssl_context
from pydantic import SecretStr, TypeAdapter, ValidationError

from labeler.errors import UsageError, describe_faults
from labeler.judges.openai.access import KeyCommand, KeySource
from labeler.judges.openai.address import (
    NO_KEY,
    OFFICIAL_URL,
    Proxy,
    host_of,
    read_headers,
    read_proxy,
    read_query,
    safe_url,
    usable_key,
)
from labeler.judges.openai.error_rules import ObservedError, find_rule
from labeler.judges.openai.masking import remember_key, remember_value
from labeler.judges.options import ServerOptions
from labeler.judges.providers import PROVIDERS

_PROXY_ACCESS = 407


@dataclass(frozen=True)
class Server:
    """Address, credentials, and the network before a server."""

    base_url: str
    host: str
    key: SecretStr | KeySource
    headers: Mapping[str, str] = field(repr=False)
    query: Mapping[str, str]
    proxy: Proxy | None
    context: ssl.SSLContext
    account: Mapping[str, str] = field(default_factory=dict)
    """Headers that name the organization and the project that pay."""
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
    if proxy is not None:
        remember_key(proxy.password)
        remember_key(proxy.credentials)
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
        account={
            f"openai-{name}": value
            for name in ("organization", "project")
            if (value := getattr(options, name)) is not None
        },
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


@cache
def certificates(plain: bool, ca_file: str | None = None) -> ssl.SSLContext:
    """Return the trusted certificates, read once because that is the slowest part of a client.

    Args:
        plain: true if nothing is encrypted; then no certificate is trusted.
        ca_file: PEM file of further authorities.

    Raises:
        UsageError: the file cannot be read, or holds no certificate.
    """
    context = (
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else create_ssl_context(trust_env=False)
    )
    if ca_file is not None:
        try:
            context.load_verify_locations(ca_file)
        except OSError as error:  # ssl.SSLError among them
            fault = "holds no certificate" if isinstance(error, ssl.SSLError) else error.strerror
            raise UsageError(
                f"--ca-file {ca_file}: {fault}; give a PEM file with the certificate of the "
                "authority, which begins with -----BEGIN CERTIFICATE-----"
            ) from None
    return context
