"""The server of a fault run: a share of all calls fails, by a fixed seed.

    PYTHONPATH=tests:benchmarks python -m peers.server --share 0.1 --seed 1 --latency 0.2

It prints its base URL, serves until its standard input ends, and then prints what happened as one
line of JSON. What happens to a call depends on the seed, on what it asks and on how often that was
asked before, not on the order in which calls arrive.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from peers.answering import Flaw, answer
from wire.provider import Behavior, Call, Provider, Wire, changes, completion, faulty

OK = "ok"
GOOD = "chatcmpl-good"
"""Id of each answer that holds a label as it should be."""
REASONS: Mapping[str, str] = {
    **dict.fromkeys(("429", "429-wait-ms"), "rate_limit"),
    **dict.fromkeys(("500", "503", "reset", "close", "short"), "transport"),
    "hang": "timeout",
    "truncated": "truncated",
    "refusal": "refusal",
    "filtered": "content_filter",
    "malformed": "malformed",
    "no-choices": "transport",
    **dict.fromkeys(("unknown-key", "missing-sentence"), "contract"),
}
"""What goes wrong, each as likely, and the reason that a record's failure must carry where this was
the last thing done to it. A 429 that asks to wait for hours is none of them: it pauses a whole run,
so that one answer would decide every figure."""
FAULTS = tuple(REASONS)


class AnyAsker(Provider):
    """Serves requests that name no strict schema, as some frameworks send them."""

    def _check_completion(self, call: Call) -> None:
        """Refuse nothing."""


class Faults:
    """Picks what happens to each call, and remembers it.

    Args:
        share: of the calls that go wrong, 0 to 1.
        seed: another seed spoils other calls.
        kinds: some of :data:`FAULTS`.
    """

    def __init__(self, share: float, seed: int, kinds: Sequence[str] = FAULTS) -> None:
        self.calls = 0
        self.kinds: Counter[str] = Counter()
        """How often each fault was given."""
        self.given: defaultdict[str, list[str]] = defaultdict(list)
        """What was done to the label requests of each record, in order, by its question."""
        self._pick = faulty(share, seed, kinds)

    def __call__(self, call: Call) -> str | Behavior:
        """Pick a behavior."""
        kind = self._pick(call) or OK
        self.calls += 1
        if kind != OK:
            self.kinds[kind] += 1
        if "QUESTION" not in call.data:
            return GENERAL.get(kind, kind)
        self.given[str(call.data["QUESTION"][0]["question"])].append(kind)
        return _good if kind == OK else kind


_good = changes(lambda value: value.update(id=GOOD))


def replies(flaw: Flaw | None = None) -> Behavior:
    """The model answers what was asked for, as often as was asked for."""

    async def behave(call: Call, wire: Wire) -> None:
        await wire.complete(call, reply(call, flaw))

    return behave


def reply(call: Call, flaw: Flaw | None = None) -> dict[str, Any]:
    """A completion object with the answers."""
    made = completion("")
    texts = [answer(call.body, number, flaw=flaw) for number in range(call.body.get("n") or 1)]
    made["choices"] = [
        {**made["choices"][0], "index": place, "message": said(text, call.body.get("tools"))}
        for place, text in enumerate(texts)
    ]
    return made


def said(text: str, tools: list[dict[str, Any]] | None) -> dict[str, Any]:
    """A message that says it, by calling a tool where there is one."""
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if tools:
        function = {"name": tools[0]["function"]["name"], "arguments": text}
        message["content"] = None
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    return message


async def short(call: Call, wire: Wire) -> None:
    """Promise a body, send half of it, close."""
    await wire.half(200, json.dumps(reply(call)).encode())


GENERAL: dict[str, Behavior] = {
    OK: replies(),
    "short": short,
    "unknown-key": replies("foreign-value"),
    "missing-sentence": replies("missing-item"),
}
"""Stand in for the behaviors that write a label where something else is asked for."""


def main() -> None:
    """Serve until standard input ends, then report."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--share", type=float, default=0.1, help="of the calls that go wrong")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=FAULTS, default=FAULTS)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds before each answer")
    options = parser.parse_args()
    faults = Faults(options.share, options.seed, options.kinds)
    with AnyAsker(faults, latency=options.latency, record=False) as provider:
        print(provider.url, flush=True)
        sys.stdin.read()
    print(json.dumps({"calls": faults.calls, "kinds": faults.kinds, "given": faults.given}))


if __name__ == "__main__":
    main()
