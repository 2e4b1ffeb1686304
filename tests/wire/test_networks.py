"""Servers behind proxies, private authorities and gateways; keys that expire; bounded bodies."""

from __future__ import annotations

import asyncio
import gc
import gzip
import itertools
import json
import logging
import socket
import sys
import tracemalloc
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

import labeler
from labeler.errors import FatalJudgeError, JudgeError, UsageError
from labeler.judges.openai import sender, server
from labeler.judges.openai.error_rules import AttemptFailed
from labeler.judges.openai.judge import OpenAIJudge
from labeler.judges.openai.request import Request, request_body
from labeler.judges.openai.sender import LentResponse, OversizedBody, Sender
from labeler.judges.openai.server import server_of
from labeler.judges.options import ServerOptions
from labeler.judges.task import MODES
from labeler.labels.record import LabelFailure
from labeler.plugins.batch.client import OpenAIBatches
from support import samples
from support.command import Command
from support.watching import Watch
from wire.behaviors import Behavior, answers
from wire.behaviors import body as sends
from wire.calls import Call, Json
from wire.connections import Connection, Wire
from wire.provider import Provider, error
from wire.refusals import error_body
from wire.relays import Authority, Proxy, Relay, authority
from wire.runs import KEY, brief, comes_true, reasons, row_file, rows, run

HOST = "judge.test"
SECRET = "gateway-SENTINEL-0123456789"  # noqa: S105 - of nothing


@pytest.fixture
def named_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that end in .test mean this machine."""
    resolve = socket.getaddrinfo

    def look_up(host: Any, *how: Any, **more: Any) -> Any:
        return resolve("127.0.0.1" if str(host).endswith(".test") else host, *how, **more)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority of the user's own, made for this test run."""
    return authority(tmp_path_factory.mktemp("authority"), HOST)


def label(url: str, count: int = 2, watch: Watch | None = None, **settings: Any) -> list[str]:
    """Label rows; the kinds of the outcomes."""
    judge = OpenAIJudge(
        "m", **{"api_key": KEY, "base_url": url, "sleep": brief, "max_attempts": 1, **settings}
    )
    found = labeler.label(
        rows(count), judge=judge, store=labeler.MemoryStore(), on_event=watch, concurrency=4
    )
    return [outcome.kind for outcome in found]


# Addresses and certificates


@pytest.mark.usefixtures("named_hosts")
def test_http_to_a_container_must_be_allowed_by_its_name() -> None:
    """The refusal names the option; another name than the allowed one stays refused."""
    with Provider() as provider:
        url = f"http://vllm.test:{provider.port}/v1"
        with pytest.raises(UsageError, match=r"allow_http=..vllm\.test"):
            label(url)
        with pytest.raises(UsageError, match="in the clear"):
            label(url, allow_http=["other.test"])
        assert label(url, allow_http=["VLLM.test"]) == ["label"] * 2


@pytest.mark.usefixtures("named_hosts")
def test_a_private_authority_is_trusted_where_it_is_named(trusted: Authority) -> None:
    """Next to the usual ones; without it, the message names the option."""
    with Provider() as provider, Relay(provider.port, trusted.context) as server:
        url = f"https://{HOST}:{server.port}/v1"
        with pytest.raises(FatalJudgeError, match=r"not trusted: .*issuer.*ca_file=FILE"):
            label(url)
        assert label(url, ca_file=str(trusted.ca_file)) == ["label"] * 2


# Proxies


@pytest.mark.usefixtures("named_hosts")
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_gets_its_credentials_from_a_variable(
    scheme: str, trusted: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All requests go through it; without credentials the message says how to give them."""
    with (
        Proxy("user", "p@ss word SENTINEL") as proxy,
        Provider() as provider,
        Relay(provider.port, trusted.context) as server,
    ):
        port = {"http": provider.port, "https": server.port}[scheme]
        url = f"{scheme}://{HOST}:{port}/v1"
        network: dict[str, Any] = {"allow_http": [HOST], "ca_file": str(trusted.ca_file)}
        with pytest.raises(FatalJudgeError, match=r"proxy asks for a user.*proxy='@VARIABLE'"):
            label(url, proxy=f"http://127.0.0.1:{proxy.port}", **network)
        assert (proxy.asked, provider.calls) == ([], [])
        address = f"http://user:p%40ss%20word%20SENTINEL@127.0.0.1:{proxy.port}"
        monkeypatch.setenv("COMPANY_PROXY", address)
        assert label(url, proxy="@COMPANY_PROXY", **network) == ["label"] * 2
    assert set(proxy.asked) == {f"{HOST}:{port}"}
    assert "proxy-authorization" not in provider.calls[0].headers or scheme == "http"


def test_a_proxy_that_does_not_connect_is_asked_again() -> None:
    """It may be up again soon; no request leaves without it."""
    with Provider() as provider:
        proxy = f"http://127.0.0.1:{provider.port}"  # it knows no CONNECT
        judge = {"base_url": f"https://{HOST}/v1", "proxy": proxy, "max_attempts": 2}
        (failed,) = run(provider, rows(1), judge=judge, max_outage=0)
    assert isinstance(failed, LabelFailure)
    assert "after 2 requests: the proxy does not connect to the server" in failed.message
    assert {call.method for call in provider.requests} == {"CONNECT"}


@pytest.mark.usefixtures("named_hosts")
def test_the_environments_proxy_is_used_only_when_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With its exceptions; this machine needs no proxy."""
    with Proxy() as proxy, Provider() as provider:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("no_proxy", "direct.test")
        for host in ("127.0.0.1", "direct.test", HOST):
            url = f"http://{host}:{provider.port}/v1"
            allowed: dict[str, Any] = {"allow_http": [HOST, "direct.test"]}
            assert label(url, **allowed) == ["label"] * 2
            assert proxy.asked == []
            assert label(url, proxy="env", **allowed) == ["label"] * 2
    assert set(proxy.asked) == {f"{HOST}:{provider.port}"}


# Options


def test_without_a_key_a_header_takes_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ``api-key`` goes alone, and ``Authorization`` may be another scheme's."""
    monkeypatch.setenv("OTHER", f"Basic {SECRET}")
    with Provider(["401"] * 9) as provider:
        for name in ("api-key", "authorization"):
            with pytest.raises(FatalJudgeError, match="key was not accepted"):
                label(provider.url, api_key="none", header=[f"{name}=@OTHER"], preflight=False)
    first, *_, last = (call.headers for call in provider.requests)
    assert (first["api-key"], first.get("authorization")) == (f"Basic {SECRET}", None)
    assert last["authorization"] == f"Basic {SECRET}"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"header": ["x=SENTINEL"]}, "must be NAME=@VARIABLE"),
        ({"header": ["Transfer-Encoding=@OK"]}, "belongs to the connection"),
        ({"header": ["x=@OK", "X=@OK"]}, "given twice"),
        ({"header": ["x=@NOT_SET"]}, "no variable 'NOT_SET'"),
        ({"header": ["x=@BROKEN"]}, "line break"),
        ({"query": ["a"]}, "NAME=VALUE"),
        ({"query": ["a=1", "a=2"]}, "given twice"),
        ({"api_key_command": "print-key"}, "both given"),
        ({"api_key": ""}, "API key is empty"),
        *(({"api_key": f"{SECRET}{end}"}, "API key") for end in ("\n", " ", "\u2013")),
        ({"api_key": None, "api_key_command": "'"}, "cannot be parsed"),
        ({"extra_body": {"temperature": 1}}, "sets temperature"),
        ({"extra_body": {"messages": [], "response_format": {}}}, "messages, response_format"),
        ({"extra_body": {"x": float("nan")}}, "not JSON"),
        ({"extra_body": {1: 2}}, "valid string"),
        ({"extra_body": "nowhere.json"}, "cannot be read"),
        *(({"temperature": value}, "temperature") for value in (3, float("nan"))),
        ({"max_attempts": 0}, "max_attempts"),
        ({"reasks": 2}, "reasks"),
        ({"reask": "reask/0"}, "reask"),
        ({"temprature": 0}, "settings are .*temperature"),
        # Proxies
        ({"proxy": "http://user:SENTINEL@proxy.test:1"}, "put the URL into a variable"),
        ({"proxy": "socks5://SENTINEL.test:1"}, "address of an HTTP proxy"),
        ({"proxy": "http://proxy.test:SENTINEL"}, "address of an HTTP proxy"),
        ({"proxy": "@NOT_SET"}, "no variable 'NOT_SET'"),
        # Addresses
        *(
            ({"base_url": f"http://{host}/v1"}, "in the clear")
            for host in ("example.org", "10.0.0.1", "127.0.0.1.example.org")
        ),
        *(
            ({"base_url": url, "allow_http": ["vllm.test"]}, "no user or password")
            for url in (
                "https://user:SENTINEL@h.test/v1",
                "https://SENTINEL@h.test/v1",
                "http://user:SENTINEL@vllm.test/v1",
            )
        ),
        ({"base_url": "https://example.org/v1?key=SENTINEL"}, "end with its path"),
        *(({"base_url": url}, "https://") for url in ("ftp://example.org", "example.org/v1", "")),
        ({"base_url": "https://[::1"}, "not a URL"),
        ({"ca_file": __file__}, r"ca_file.*test_networks.py.?: holds no certificate"),
        ({"ca_file": "missing.pem"}, r"ca_file.*missing.pem: No such file"),
        ({"base_url": "https://example.org:port/v1"}, "not a URL"),
    ],
)
def test_a_malformed_option_is_refused(
    settings: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is sent, and no value is repeated."""
    monkeypatch.setenv("OK", "fine")
    monkeypatch.setenv("BROKEN", "SENTINEL\nx: y")
    with pytest.raises(UsageError, match=why) as caught:
        OpenAIJudge("m", **{"api_key": KEY, **settings})
    assert "SENTINEL" not in str(caught.value)


@pytest.mark.parametrize("url", ["https://h.test/v1", "http://localhost:1/v1", "http://[::1]:1"])
def test_a_safe_address_is_accepted(url: str) -> None:
    """Encrypted, or on this machine."""
    assert OpenAIJudge("m", api_key=KEY, base_url=url).spec.base_url == url


def test_extra_parameters_are_sent_and_part_of_the_key(tmp_path: Path) -> None:
    """From a file or a mapping; the cap has the name that the server knows."""
    (tmp_path / "extra.json").write_text('{"top_k": 20}')
    store, capped = labeler.MemoryStore(), {"cap_field": "max_tokens", "max_output_tokens": 900}
    with Provider() as provider:
        for extra in (None, {"top_k": 20}, tmp_path / "extra.json"):
            run(provider, rows(1), judge={"extra_body": extra, **capped}, store=store)
    bare, extended = (call.body for call in provider.calls)
    assert extended == {**bare, "top_k": 20}
    assert (bare["max_tokens"], "max_completion_tokens" in bare) == (900, False)


# Keys


async def cut_refusal(_: Call, wire: Wire) -> None:
    """Only the text says that the key is the fault, and the connection ends before the body."""
    assert isinstance(wire, Connection)
    body = json.dumps(error_body(None, "API key expired")).encode()
    await wire.send(wire.head(403, len(body) + 9) + body)
    wire.close()


REFUSALS = {"401": error(401, "invalid_api_key"), "403, cut short": cut_refusal}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_a_key_that_expires_is_fetched_again_once_for_all_rows(
    key_command: str, refusal: Behavior
) -> None:
    """Rows that were refused are asked again with the new key; nothing fails."""
    used = Counter[str]()

    def script(call: Call) -> Behavior | None:
        key = call.headers["authorization"]
        if used[key] == 8:
            return refusal
        used[key] += 1
        return None

    with Provider(script) as provider:
        assert label(provider.url, 20, api_key=None, api_key_command=key_command) == ["label"] * 20
    assert used == {"Bearer key-1": 8, "Bearer key-2": 8, "Bearer key-3": 4}


@pytest.fixture
def key_command(tmp_path: Path) -> str:
    """A command that prints another key each time: ``key-1``, ``key-2`` and so on."""
    count = tmp_path / "count"
    return f'sh -c \'echo >> "{count}"; echo key-$(($(wc -l < "{count}"))); echo\''


def test_a_key_that_never_worked_ends_the_run() -> None:
    """It is fetched once: another one would be no better."""
    keys = itertools.count(1)

    async def key() -> str:
        return f"sk-{next(keys)}"

    with (
        Provider(["401"] * 99) as provider,
        pytest.raises(FatalJudgeError, match="key was not accepted"),
    ):
        label(provider.url, 20, api_key=key, preflight=False)
    assert next(keys) == 2


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("no-such-program-here", "cannot be started: No such file or directory"),
        (f"{sys.executable} -c \"import sys; sys.exit('log in first')\"", 'code 1: "log in first"'),
        (f"{sys.executable} -c pass", "the API key is empty"),
        (f"{sys.executable} -c \"print('x' * 100_000)\"", "printed more than"),
        ("yes", "printed more than"),
        ("sh -c 'yes >&2'", "printed more than"),
        ("sleep 20", "did not end within 1 s"),
        ("sh -c 'sleep 3 & sleep 20'", "did not end within 1 s"),
    ],
)
def test_a_command_without_a_key_ends_the_run(
    command: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its failure is shown, and nothing is sent, even if the program or its output never ends."""
    monkeypatch.setattr(server, "_SECONDS", 1.0)
    with (
        Provider() as provider,
        pytest.raises(FatalJudgeError, match="after 0 requests: there is no API key") as caught,
    ):
        label(provider.url, api_key=None, api_key_command=command)
    assert why in str(caught.value)
    assert provider.requests == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, StopIteration, ValueError, None])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_key_function_without_a_key_ends_the_run(
    error: type[BaseException] | None, *, is_async: bool
) -> None:
    """Also with what would end a thread or an event loop, or with nothing."""

    def fails() -> Any:
        if error:
            raise error

    async def fails_later() -> Any:
        return fails()

    said = error.__name__ if error else "is empty or no text"
    said = "raised (StopIteration|RuntimeError)" if error is StopIteration else said
    with Provider() as provider, pytest.raises(FatalJudgeError, match=said):
        label(provider.url, api_key=fails_later if is_async else fails)


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ("openai", "OPENAI_API_KEY is not set, so no key was sent: set it"),
        ("mistral", "MISTRAL_API_KEY is not set"),
        ("ollama", "no key was sent: give --api-key-command"),
    ],
)
def test_a_server_that_wants_a_key_where_none_is_set_names_the_variable(
    judge: str, said: str, labeler_command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With a key that is wrong, the variable is not the fault."""
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    given = row_file(tmp_path, rows(2))
    with Provider(lambda _: error(401, "no_key"), modes=MODES) as provider:
        command = ["label", given, "--judge", f"{judge}:m", "--base-url", provider.url]
        code, _, err = labeler_command(*command)
        assert (code, said in err) == (2, True), err
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        assert "is not set" not in labeler_command(*command[:3], "openai:m", *command[4:])[2]


# Prompt caching


def test_a_server_that_refuses_caching_is_asked_without() -> None:
    """One notice for the run; no row fails, and explicit marks go as well."""
    refusal, watch = error(422, None, "Extra inputs are not permitted: prompt_cache_key"), Watch()
    with Provider(lambda call: refusal if "prompt_cache_key" in call.body else None) as provider:
        assert label(provider.url, 12, watch, prompt_cache="explicit") == ["label"] * 12
    assert sum("prompt caching" in notice for notice in watch.notices) == 1
    plain = [call.body for call in provider.calls if "prompt_cache_key" not in call.body]
    assert len(provider.calls) - len(plain) <= 4
    assert "prompt_cache" not in repr(plain)


@pytest.mark.parametrize(
    ("model", "host", "explicit"),
    [
        ("gpt-5.6-mini", "api.openai.com", True),
        ("gpt-10.0", "api.openai.com", True),
        ("gpt-5.5", "api.openai.com", False),
        ("gpt-4o", "api.openai.com", False),
        ("gpt-5.6", "gateway.test", False),
    ],
)
def test_the_shared_part_is_marked_where_the_model_needs_it(
    model: str, host: str, *, explicit: bool
) -> None:
    """At OpenAI's own address, from gpt-5.6 on; the text stays as it is."""
    task = samples.request()
    judge = OpenAIJudge(model, api_key=KEY, base_url=f"https://{host}/v1")
    body = request_body(Request(judge.spec, task))
    first = body["messages"][0]["content"]
    assert ("prompt_cache_options" in body) == explicit
    text = first[0]["text"] if explicit else first
    assert text == task.messages[0]["content"]


# Every sender


@pytest.mark.usefixtures("named_hosts")
def test_commands_share_the_options_of_a_server(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    labeler_command: Command,
    key_command: str,
) -> None:
    """Online, as a batch and for embeddings: header, parameter, account, key and address.

    With each request, the look-up too; the header's value is in no log.
    """
    monkeypatch.setenv("GATEWAY", SECRET)
    row_file(tmp_path, rows(2))
    caplog.set_level(logging.DEBUG)
    with Provider() as provider:
        url = f"http://vllm.test:{provider.port}/v1"
        server = ["--base-url", url, "--allow-http", "vllm.test", "--header", "X-Gateway=@GATEWAY"]
        server += ["--query", "api-version=1", "--organization", "o", "--project", "p"]
        server += ["--api-key-command", key_command]
        for command in (
            ["label", "rows.jsonl", "-o", "labels.jsonl", "--model", "m"],
            ["batch", "submit", "rows.jsonl", "--model", "m", "--store", "batches"],
            ["batch", "status", "--store", "batches"],
            ["batch", "collect", "--store", "batches", "--wait"],
            ["similarity", "rows.jsonl", "-o", "s.jsonl", "--model", "m", "--embedder", "openai:e"],
        ):
            assert labeler_command(*command, *server)[0] in {0, 75}, command
    assert caplog.records
    assert SECRET not in caplog.text
    names = ("x-gateway", "openai-organization", "openai-project")
    assert {tuple(c.headers[name] for name in names) for c in provider.requests} == {
        (SECRET, "o", "p")
    }
    assert {call.query["api-version"] for call in provider.requests} == {"1"}
    assert {call.headers["authorization"][:11] for call in provider.requests} == {"Bearer key-"}
    assert {call.path for call in provider.requests} >= {"/v1/embeddings", "/v1/batches"}


def body_of(**fields: Any) -> Json:
    """A request for a label, with further fields."""
    judge = OpenAIJudge("m", api_key=KEY, output_mode="strict")
    return {**request_body(Request(judge.spec, samples.request())), **fields}


LIMIT = 20_000


async def sent(provider: Provider, body: bytes, times: int = 1, seconds: float = 60.0) -> bytes:
    """The answers to a request that is sent some times at once."""
    url, asked = f"{provider.url}/chat/completions", ServerOptions(base_url=provider.url)
    async with aclosing(Sender(server_of(asked, KEY), seconds)) as carrier:
        found = await asyncio.gather(*(carrier.send("POST", url, body) for _ in range(times)))
    return b"".join(one.whole for one in found)


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a test reaches soon."""
    monkeypatch.setattr(sender, "LARGEST_BODY", LIMIT)
    monkeypatch.setattr(sender, "LARGEST_FILE", 3 * LIMIT)


class Compressed(LentResponse):
    """A response that was made without a connection."""

    headers = CIMultiDictProxy(CIMultiDict({"content-encoding": "gzip"}))
    _closed = True


def read(pieces: Callable[[int], AsyncIterator[bytes]]) -> bytes:
    """The body of a response of such pieces."""
    response = object.__new__(Compressed)
    response.content = SimpleNamespace(iter_chunked=pieces)  # type: ignore[assignment]
    return asyncio.run(response.read())


@pytest.mark.usefixtures("_small")
def test_a_response_is_read_up_to_its_limit_and_no_further() -> None:
    """A compressed one as well: the rest of the stream is neither read nor decoded."""
    taken = 0

    async def pieces(_: int) -> AsyncIterator[bytes]:
        nonlocal taken
        body = gzip.compress(b" " * (1 << 26))
        for start in range(0, len(body), 1 << 10):
            taken += 1 << 10
            yield body[start : start + (1 << 10)]

    with pytest.raises(OversizedBody):
        read(pieces)
    assert taken <= 2 << 10


def test_bytes_after_an_encoding_are_not_kept() -> None:
    """However many there are: a hostile server may send them without end."""

    async def pieces(size: int) -> AsyncIterator[bytes]:
        yield gzip.compress(b'{"a": 1}')
        for _ in range(256):
            yield b"x" * size

    tracemalloc.start()
    assert read(pieces) == b'{"a": 1}'
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1 << 20


COMPRESSED = {
    "gzip": gzip.compress(b'{"a": 1}'),
    "Deflate": zlib.compress(b'{"a": 1}'),
    "identity": b'{"a": 1}',
}


@pytest.mark.parametrize("encoding", COMPRESSED)
def test_a_large_request_arrives_whole_and_a_compressed_answer_is_read(encoding: str) -> None:
    """Its length is known beforehand, and the text of the answer is that of a plain one."""
    body = body_of(user="x" * 2 * sender._LARGE)
    with Provider([sends(COMPRESSED[encoding], content_encoding=encoding)]) as provider:
        assert asyncio.run(sent(provider, json.dumps(body).encode())) == b'{"a": 1}'
    assert provider.calls[0].body == body
    assert "transfer-encoding" not in provider.calls[0].headers


@pytest.mark.usefixtures("_small")
def test_a_time_out_before_a_request_is_sent_closes_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else it is left to the garbage collector, which warns of it."""
    monkeypatch.setattr(sender, "_TURNS", 10**9)

    with Provider() as provider, pytest.raises(AttemptFailed) as failed:
        asyncio.run(sent(provider, b"{}", seconds=0.05))
    assert failed.value.observed.kind == "timeout"
    del failed  # its frames hold what was not closed
    gc.collect()


@pytest.mark.usefixtures("_small")
def test_a_file_of_answers_has_a_limit_of_its_own(tmp_path: Path) -> None:
    """It may be larger than a body, goes to disk in pieces, and appears when it is complete."""
    target = tmp_path / "answers.jsonl"

    async def download(size: int) -> None:
        body = sends(b"{" + b" " * size)
        with Provider(at={"GET /v1/files/{id}/content": lambda _: body}) as provider:
            client = OpenAIBatches(api_key=KEY, base_url=provider.url, max_attempts=1)
            async with aclosing(client):
                await client.download("file-1", target)

    asyncio.run(download(2 * LIMIT))
    assert target.stat().st_size == 2 * LIMIT + 1
    target.unlink()
    with pytest.raises(JudgeError, match="over"):
        asyncio.run(download(4 * LIMIT))
    assert not target.exists()


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
    with Provider(latency=2.0) as provider:
        asyncio.run(sent(provider, json.dumps(body_of()).encode(), 256))
        assert provider.most_in_flight == 256
        assert comes_true(lambda: not provider._connections)
