"""An OpenAI-compatible server of our own, on loopback, that answers well or misbehaves on a script.

It serves chat completions, files and batches, models and embeddings. It is strict where the real
provider is strict: a response format that the provider would refuse is refused here. Every request
is recorded as it came. Use it in tests as a context manager::

    with Provider(["500", "429", "ok"]) as provider:
        ...  # provider.url, provider.calls
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

from wire.accounts import Accounts, Tokens
from wire.batch_endpoint import Batches, Course, Files, completes, expires, fails, never
from wire.behaviors import (
    BEHAVIOURS,
    Behavior,
    answers,
    body,
    changes,
    completion,
    error,
    late,
    named,
    page,
    says,
)
from wire.calls import COMPLETIONS, EMBEDDINGS, Call, Json, label_for
from wire.connections import Connection, Wire
from wire.embeddings_endpoint import embeddings
from wire.faults import FAULTS, faulty
from wire.rates import Gate, Rates
from wire.refusals import Refused
from wire.strict_schema import format_problems

__all__ = [
    "BEHAVIOURS", "COMPLETIONS", "EMBEDDINGS", "FAULTS", "Behavior", "Call", "Json", "Provider",
    "Rates", "Script", "Wire", "answers", "body", "changes", "completes", "completion", "done_but",
    "error", "expires", "fails", "faulty", "label_for", "late", "never", "page", "says",
]  # fmt: skip


@dataclass(frozen=True)
class DoneBut:
    """The request is carried out, and the peer is told something else."""

    told: Behavior


def done_but(told: str | Behavior) -> DoneBut:
    """The ambiguous failure: the request is carried out, but the peer sees this behavior."""
    return DoneBut(named(told))


Step = str | Behavior | DoneBut
Script = Iterable[Step] | Callable[[Call], Step | None]
_NO_RATES = Rates()
Handler = Callable[[Call], Json | bytes] | Callable[[Call], Awaitable[Json]]


class Provider:
    """The server, running on a thread of its own while its context is entered.

    Args:
        script: behaviors for the first completions, by name or as such, after which it answers as
            usual; or a function that picks one for each call. Lines of batches take from it too.
        port: 0 for any free one.
        at: such scripts for other routes, by name: ``{"POST /v1/files": ["500"]}``,
            ``{"POST /v1/batches": [done_but("500")]}``.
        batches: how batches go on: one course for all, or one for each, see :class:`Course`.
        rates: how much it takes in a time.
        modes: how a schema may be sent: strict, schema, tools, json or prompt.
        latency: seconds before each completion or embedding, or a function of the call.
        count_tokens: state the usage that the text has, instead of the same for every answer.
        record: whether :attr:`calls` and :attr:`requests` are kept; they are counted all the same.
        more: routes of other APIs.
    """

    def __init__(
        self,
        script: Script = (),
        *,
        port: int = 0,
        at: Mapping[str, Script] | None = None,
        batches: Course | Iterable[Course] = (),
        rates: Rates = _NO_RATES,
        modes: Collection[str] = ("strict",),
        latency: float | Callable[[Call], float] = 0.0,
        count_tokens: bool = False,
        record: bool = True,
        more: Mapping[str, Behavior] = MappingProxyType({}),
    ) -> None:
        self.port = port
        self.calls: list[Call] = []
        """Every request that asks for a completion, or for nothing that is known, as it arrived."""
        self.requests: list[Call] = []
        """Every request, those for files, batches, models and embeddings too, as it arrived."""
        self.routes: Counter[str] = Counter()
        """How many requests came, by route: ``POST /v1/chat/completions``."""
        self.in_flight = 0
        """Calls that are being answered now, of the kind in :attr:`calls`."""
        self.most_in_flight = 0
        """How many of them there were at once, at most."""
        self._record, self._modes = record, modes
        self._latency = latency if callable(latency) else lambda _: latency
        self._accounts = Accounts(count_tokens=count_tokens)
        self._gate = Gate(rates)
        self.files = Files()
        """Uploaded files and those of batches."""
        self.batches = Batches(self.files, self._answer_line, self._sheet, batches)
        self._scripts = {f"POST {COMPLETIONS}": _picker(script)}
        self._scripts.update({route: _picker(steps) for route, steps in (at or {}).items()})
        self._routes = {**self._all_routes(), **more}
        self._number = itertools.count(1).__next__
        self._listening = threading.Event()
        self._connections: set[Connection] = set()
        self._thread = threading.Thread(target=self._run, name="provider", daemon=True)

    # What a test reads

    @property
    def url(self) -> str:
        """The base URL to give to a client."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def batch_lines(self) -> list[Call]:
        """Requests that were executed in batches; :attr:`calls` holds none of them."""
        return self.batches.lines

    @property
    def tokens(self) -> Tokens:
        """Tokens of prompts and answers that were charged."""
        return self._accounts.tokens

    @property
    def paid(self) -> Counter[str]:
        """How often each record was charged for, online and in batches, by its fence marker.

        An answer is charged where it states its usage and is sent to its end, good or bad.
        """
        return +self._accounts.paid.copy()  # at once: the server's thread adds to it

    @property
    def limited(self) -> int:
        """Calls that were refused because they came above the rates."""
        return self._gate.limited

    def stats(self) -> Json:
        """All counters, as ``GET /stats`` gives them."""
        paid = self.paid
        return {
            "calls": self.routes[f"POST {COMPLETIONS}"],
            "routes": dict(self.routes),
            "in_flight": self.in_flight,
            "limited": self.limited,
            "paid": {"records": len(paid), "duplicates": paid.total() - len(paid)},
            "tokens": {"prompt": self.tokens.prompt, "completion": self.tokens.completion},
        }

    # Running

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread.start()
        self._listening.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _run(self) -> None:
        self._loop.run_until_complete(self._listen())
        self._listening.set()
        self._loop.run_forever()

    async def _listen(self) -> None:
        self._server = await self._loop.create_server(
            self._connect, "127.0.0.1", self.port, backlog=1024
        )
        self.port = self._server.sockets[0].getsockname()[1]

    def _connect(self) -> Connection:
        connection = Connection(self._accounts, self._answer, self._number)
        self._connections.add(connection)
        connection.lost.add_done_callback(lambda _: self._connections.discard(connection))
        return connection

    async def _stop(self) -> None:
        for one in self._server.sockets:  # a closed server would lose those that it has accepted
            self._loop.remove_reader(one.fileno())
        for _ in range(_ACCEPTING):
            await asyncio.sleep(0)
        self._server.close()
        await asyncio.gather(*(connection.end() for connection in self._connections))

    # Answering

    async def _answer(self, call: Call, wire: Wire) -> None:
        if call.route == "GET /stats":
            await wire.json(200, self.stats())
            return
        wire.extra_headers = {}
        self.routes[call.route] += 1
        if self._record:
            self.requests.append(call)
        if call.path != COMPLETIONS and call.route in self._routes:
            await self._carry_out(call, wire)
            return
        if self._record:
            self.calls.append(call)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await self._carry_out(call, wire)
        finally:
            self.in_flight -= 1

    async def _carry_out(self, call: Call, wire: Wire) -> None:
        answer = self._routes.get(call.route)
        if answer is None:
            await error(404, "unknown_url", f"{call.method} {call.path}")(call, wire)
        elif not call.headers.get("authorization", "").startswith("Bearer "):
            await error(401, "missing_api_key")(call, wire)
        elif call.path in _METERED:
            await self._metered(answer, call, wire)
        else:
            await self._scripted(answer, call, wire)

    async def _metered(self, answer: Behavior, call: Call, wire: Wire) -> None:
        """Hold a call against the rates, and let time pass before it is answered."""
        refusal = self._gate.admit(call)
        wire.extra_headers = self._gate.headers()
        if refusal is not None:
            await wire.json(429, *refusal)
            return
        if seconds := self._latency(call):
            await wire.pause(seconds)
        await self._scripted(answer, call, wire)

    async def _scripted(self, answer: Behavior, call: Call, wire: Wire) -> None:
        """Do what the script of its route says, or answer."""
        if call.path == COMPLETIONS:
            try:
                self._check_completion(call)
            except Refused as refused:
                await wire.json(refused.status, refused.body)
                return
        step = self._scripts[call.route](call) if call.route in self._scripts else None
        if isinstance(step, DoneBut):
            await answer(call, self._sheet(is_charged=False))
            await step.told(call, wire)
        else:
            await (answer if step is None else named(step))(call, wire)

    def _check_completion(self, call: Call) -> None:
        if not call.body.get("model") or not call.messages:
            raise Refused(400, "missing_required_parameter", "stub error", "messages")
        if call.mode != "strict" and call.mode in self._modes:
            return
        if "strict" not in self._modes:
            param = "tools" if call.mode == "tools" else "response_format"
            raise Refused(400, None, f"'{param}' is not supported", param)
        if problems := format_problems(call.body.get("response_format", {})):
            message = "; ".join(problems)
            raise Refused(400, "invalid_json_schema", message, "response_format")

    async def _answer_line(self, call: Call, sheet: Wire) -> None:
        """Answer a line of a batch, as a completion is answered online."""
        await self._scripted(BEHAVIOURS["ok"], call, sheet)

    def _sheet(self, *, is_charged: bool = True) -> Wire:
        return Wire(self._accounts, is_charged=is_charged)

    def _all_routes(self) -> dict[str, Behavior]:
        files, batches = self.files, self.batches
        return {
            f"POST {COMPLETIONS}": BEHAVIOURS["ok"],
            f"POST {EMBEDDINGS}": _handled(embeddings),
            "GET /v1/models/{id}": _handled(lambda call: {"id": call.item, "object": "model"}),
            "POST /v1/files": _handled(files.create),
            "GET /v1/files/{id}/content": _handled(files.content),
            "POST /v1/batches": _handled(batches.create),
            "GET /v1/batches": _handled(batches.listing),
            "GET /v1/batches/{id}": _handled(batches.retrieve),
            "POST /v1/batches/{id}/cancel": _handled(batches.cancel),
        }


_ACCEPTING = 3
"""Turns of the event loop from a connection that was accepted to one that can be ended."""

_METERED = {COMPLETIONS, EMBEDDINGS}
"""Routes that are held against the rates, and that take their time."""


def _handled(handle: Handler) -> Behavior:
    """An endpoint: what it returns is sent, and what it refuses is refused in one form."""

    async def behave(call: Call, wire: Wire) -> None:
        try:
            value = handle(call)
            done = await value if inspect.isawaitable(value) else value
        except Refused as refused:
            await wire.json(refused.status, refused.body)
            return
        if isinstance(done, bytes):
            await wire.respond(200, done, {"content-type": "application/octet-stream"})
        else:
            await wire.complete(call, done)

    return behave


def _picker(script: Script) -> Callable[[Call], Step | None]:
    """A script as a function of the call."""
    if callable(script):
        return script
    rest = iter(script)
    return lambda _: next(rest, None)
