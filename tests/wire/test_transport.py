"""The transport: bounded bodies, and nothing from the environment."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import zlib
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from labeler.errors import JudgeError
from labeler.judges.openai import sender
from labeler.judges.openai.error_rules import AttemptFailed
from labeler.judges.openai.sender import LentResponse, OversizedBody, Sender
from labeler.judges.openai.server import server_of
from labeler.judges.options import ServerOptions
from labeler.plugins.batch.client import OpenAIBatches
from wire.behaviors import answers
from wire.calls import Call
from wire.clients import comes_true, request_of
from wire.connections import Wire
from wire.provider import Behavior, Provider
from wire.runs import KEY, reasons, rows, run

LIMIT = 20_000


def sender_of(provider: Provider) -> Sender:
    """A sender to the provider."""
    return Sender(server_of(ServerOptions(base_url=provider.url), KEY), 60.0)


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a test reaches soon."""
    monkeypatch.setattr(sender, "LARGEST_BODY", LIMIT)
    monkeypatch.setattr(sender, "LARGEST_FILE", 3 * LIMIT)


def sends(body: bytes, **headers: str) -> Behavior:
    """A complete response with these headers."""

    async def behave(_: Call, wire: Wire) -> None:
        await wire.respond(200, body, {n.replace("_", "-"): v for n, v in headers.items()})

    return behave


@cache
def bomb(size: int) -> bytes:
    """Gzip of this many spaces."""
    return gzip.compress(b" " * size)


class Compressed(LentResponse):
    """A response that was made without a connection."""

    headers = CIMultiDictProxy(CIMultiDict({"content-encoding": "gzip"}))
    _closed = True


@pytest.mark.usefixtures("_small")
def test_a_response_is_read_up_to_its_limit_and_no_further() -> None:
    """A compressed one as well: the rest of the stream is neither read nor decoded."""
    taken = 0

    async def pieces(_: int) -> AsyncIterator[bytes]:
        nonlocal taken
        body = bomb(1 << 26)
        for start in range(0, len(body), 1 << 10):
            taken += 1 << 10
            yield body[start : start + (1 << 10)]

    async def get() -> None:
        response = object.__new__(Compressed)
        response.content = SimpleNamespace(iter_chunked=pieces)  # type: ignore[assignment]
        with pytest.raises(OversizedBody):
            await response.read()

    asyncio.run(get())
    assert taken <= 2 << 10


COMPRESSED = {
    "gzip": gzip.compress(b'{"a": 1}'),
    "Deflate": zlib.compress(b'{"a": 1}'),
    "identity": b'{"a": 1}',
}


@pytest.mark.parametrize("encoding", COMPRESSED)
def test_a_large_request_arrives_whole_and_a_compressed_answer_is_read(encoding: str) -> None:
    """Its length is known beforehand, and the text of the answer is that of a plain one."""
    body = request_of(user="x" * 2 * sender._LARGE)

    async def ask(provider: Provider) -> bytes:
        carrier = sender_of(provider)
        try:
            return (
                await carrier.send(
                    "POST", f"{provider.url}/chat/completions", json.dumps(body).encode()
                )
            ).whole
        finally:
            await carrier.aclose()

    with Provider([sends(COMPRESSED[encoding], content_encoding=encoding)]) as provider:
        assert asyncio.run(ask(provider)) == b'{"a": 1}'
    assert provider.calls[0].body == body
    assert "transfer-encoding" not in provider.calls[0].headers


@pytest.mark.usefixtures("_small")
def test_a_time_out_before_a_request_is_sent_closes_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else it is left to the garbage collector, which warns of it."""
    monkeypatch.setattr(sender, "_TURNS", 10**9)

    async def ask(provider: Provider) -> str:
        carrier = Sender(server_of(ServerOptions(base_url=provider.url), KEY), 0.05)
        try:
            with pytest.raises(AttemptFailed) as failed:
                await carrier.send("GET", f"{provider.url}/models/m")
            return failed.value.observed.kind
        finally:
            await carrier.aclose()

    with Provider() as provider:
        assert asyncio.run(ask(provider)) == "timeout"
        gc.collect()


def test_look_ups_are_bounded_too() -> None:
    """An oversized one proves nothing."""
    page = sends(bomb(2 * LIMIT), content_encoding="gzip")
    with Provider(at={"GET /v1/models/{id}": lambda _: page}) as provider:
        assert reasons(run(provider, rows(2))) == ["label", "label"]


@pytest.mark.usefixtures("_small")
def test_a_file_of_answers_has_a_limit_of_its_own(tmp_path: Path) -> None:
    """It may be larger than a body, it goes to disk in pieces, and it is no file until complete."""

    async def download(provider: Provider) -> None:
        client = OpenAIBatches(api_key=KEY, base_url=provider.url, max_attempts=1)
        try:
            await client.download("file-1", tmp_path / "answers.jsonl")
        finally:
            await client.aclose()

    route = "GET /v1/files/{id}/content"
    with Provider(at={route: lambda _: sends(b"{" + b" " * 2 * LIMIT)}) as provider:
        asyncio.run(download(provider))
    assert (tmp_path / "answers.jsonl").stat().st_size == 2 * LIMIT + 1
    (tmp_path / "answers.jsonl").unlink()
    with (
        Provider(at={route: lambda _: sends(b"{" + b" " * 4 * LIMIT)}) as provider,
        pytest.raises(JudgeError, match="over"),
    ):
        asyncio.run(download(provider))
    assert not (tmp_path / "answers.jsonl").exists()


def test_no_cookie_is_sent_back() -> None:
    """A server cannot mark a client."""

    async def marks(call: Call, wire: Wire) -> None:
        wire.extra_headers = {"set-cookie": "mark=1; Path=/"}
        await answers()(call, wire)

    with Provider(lambda _: marks) as provider:
        assert reasons(run(provider, rows(3))) == ["label"] * 3
        assert [call for call in provider.requests if "cookie" in call.headers] == []


def test_hundreds_of_connections_are_open_at_once_and_closed_in_the_end() -> None:
    """The transport has no limit of its own below that of the run."""

    async def ask(provider: Provider) -> None:
        carrier, body = sender_of(provider), json.dumps(request_of()).encode()
        await asyncio.gather(
            *(carrier.send("POST", f"{provider.url}/chat/completions", body) for _ in range(256))
        )
        await carrier.aclose()

    with Provider(latency=2.0) as provider:
        asyncio.run(ask(provider))
        assert provider.most_in_flight == 256
        assert comes_true(lambda: not provider._connections)
