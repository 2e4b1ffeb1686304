"""Clients for tests of the provider: the real library, and plain HTTP without it."""

from __future__ import annotations

import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPResponse
from typing import Any

from openai import DefaultHttpxClient, OpenAI

from labeler.judges.openai.request import response_format
from labeler.sentences.example import KeyedExample
from support import samples
from wire.calls import Json
from wire.provider import COMPLETIONS, Provider


@contextmanager
def client_of(provider: Provider, seconds: float = 10.0) -> Iterator[OpenAI]:
    """The library's client: no retries, nothing from the environment."""
    http = DefaultHttpxClient(trust_env=False, follow_redirects=False, timeout=seconds)
    with OpenAI(api_key="k", base_url=provider.url, max_retries=0, http_client=http) as client:
        yield client


def request_of(example: KeyedExample | None = None, **parameters: Any) -> Json:
    """The body that asks for a label of a record."""
    request = samples.request(example)
    return {
        "model": "model-1",
        "messages": [dict(message) for message in request.messages],
        "response_format": response_format(request.schema),
        **parameters,
    }


def record(name: str) -> KeyedExample:
    """A small record that is unlike those of other names."""
    return samples.keyed_example(id=name, question=f"What is {name}?")


class Reply:
    """What plain HTTP brings: status, headers by lower-case names, and the body."""

    def __init__(self, response: HTTPResponse | urllib.error.HTTPError) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        self.raw = response.read()

    @property
    def body(self) -> Any:
        """The parsed body."""
        return json.loads(self.raw)

    @property
    def code(self) -> str | None:
        """The code of an error."""
        code: str | None = self.body["error"]["code"]
        return code


def ask(
    at: Provider | str,
    value: Json | bytes | None = None,
    path: str = COMPLETIONS,
    key: str = "k",
) -> Reply:
    """Send one request to a provider or a base URL: POST with a body, GET without."""
    data = json.dumps(value).encode() if isinstance(value, dict) else value
    headers = {"authorization": f"Bearer {key}"} if key else {}
    url = (at if isinstance(at, str) else at.url).removesuffix("/v1") + path
    asked = urllib.request.Request(url, data, headers)  # noqa: S310 - loopback
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(asked, timeout=10) as response:
            return Reply(response)
    except urllib.error.HTTPError as error:
        with error:
            return Reply(error)


def send(provider: Provider, value: Json) -> socket.socket:
    """Send a completion request and leave its answer to be read, or not."""
    body = json.dumps(value).encode()
    head = (
        f"POST {COMPLETIONS} HTTP/1.1\r\nauthorization: Bearer k\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    connection = socket.create_connection(("127.0.0.1", provider.port), timeout=10)
    connection.sendall(head.encode() + body)
    return connection


def comes_true(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Whether something that another thread does happens before long."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    return condition()
