"""A loopback relay that keeps what a client asks of a server and what the server answers.

What a model writes is not known beforehand: outcomes are held against what passed through here.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

Json = dict[str, Any]
COMPLETIONS = "/v1/chat/completions"


@dataclass(frozen=True)
class Call:
    """One request and its answer."""

    method: str
    path: str
    body: Json
    status: int
    answer: Json
    seconds: float

    @property
    def finish(self) -> str:
        """Why the model stopped."""
        return str(self.answer["choices"][0]["finish_reason"])

    @property
    def content(self) -> str:
        """What the model wrote."""
        return str(self.answer["choices"][0]["message"]["content"])


class Relay:
    """Passes requests on to a server, one connection each, while its context is entered.

    Args:
        url: base URL of the server, on this machine.
    """

    def __init__(self, url: str) -> None:
        self._upstream = urlsplit(url).netloc
        self.calls: list[Call] = []
        """Every request that was answered, in the order of the answers."""
        relay = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                relay._pass_on(self)

            def do_POST(self) -> None:
                relay._pass_on(self)

            def log_message(self, *_: object) -> None:
                """Say nothing: the calls are kept."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="relay")

    @property
    def url(self) -> str:
        """The base URL to give to a client."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def completions(self, about: str = "") -> list[Call]:
        """The completions that were asked for, of one row if its question is given."""
        asked = (call for call in self.calls if call.path == COMPLETIONS)
        return [call for call in asked if about in call.body["messages"][1]["content"]]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _pass_on(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("content-length", "0")))
        begun = time.monotonic()
        connection = HTTPConnection(self._upstream)
        try:
            headers = {"content-type": "application/json"}
            connection.request(handler.command, handler.path, body, headers)
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        seconds = time.monotonic() - begun
        sent, received = json.loads(body or b"{}"), json.loads(answer)
        self.calls.append(
            Call(handler.command, handler.path, sent, response.status, received, seconds)
        )
        handler.send_response(response.status)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(answer)))
        handler.end_headers()
        handler.wfile.write(answer)
