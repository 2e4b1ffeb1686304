"""The server of the comparison: it answers every request and counts what it receives.

    PYTHONPATH=tests:benchmarks python -m peers.counting --records ROWS --latency 0.2

It prints its base URL, serves until its standard input ends, and then prints a :class:`Spent` as
one line of JSON. Nothing is counted before that, so that counting takes no time from a run.

Every list of an answer has :data:`ITEMS` items and every free text is a sentence of six words, for
all tools alike; only a label has as many claims as there are sentences, because its contract is
checked against the keys that were sent.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from labeler.judges.tokens import MESSAGE_FRAME, REPLY_FRAME, TokenCounter, counter_for
from peers.answering import answer, schema_of, texts_of
from peers.records import sentences
from peers.results import Spent
from peers.server import AnyAsker, said
from wire.calls import written
from wire.provider import COMPLETIONS, EMBEDDINGS, Behavior, Call, Wire, completion, label_for

Json = dict[str, Any]

RESPONSES = "/v1/responses"
ITEMS = 4
"""As many as the made-up responses have sentences."""
MODEL = "gpt-4o-mini"
"""Whose tokens are counted; every tool knows the name, and the server does not care."""
_SENTENCE = "the pump stands before a valve"
_FREE = {"explanation", "claim", "relevance_explanation", "overall_supported_explanation"}
_TEXTS = {
    "'Entailment', 'Neutral', 'Contradiction'": ["Entailment", "Neutral"] * (ITEMS // 2),
    '("subject", "predicate", "object")': [
        f'("the pump", "stands before", "valve {number}")' for number in range(ITEMS)
    ],
}
"""Lines that are asked for in words, by a sign of what is asked; anything else gets a digit."""
_CACHED_FROM = 1_024
"""Tokens of the shortest prefix that a provider's prompt cache keeps."""
_STEP = 512
"""Characters; about the 128 tokens in which such caches go."""


async def reply(call: Call, wire: Wire) -> None:
    """Answer what was asked for, as often as was asked for."""
    made = completion("") | {"model": str(call.body.get("model"))}
    first = made["choices"][0]
    made["choices"] = [
        {**first, "index": place, "message": said(text, call.body.get("tools"))}
        for place, text in enumerate(answers(call))
    ]
    await wire.complete(call, made)


class AnyEndpoint(AnyAsker):
    """Answers at the responses endpoint too, which some tools use for structured answers."""

    def __init__(self, latency: float) -> None:
        super().__init__(lambda _: reply, latency=latency)
        self._routes[f"POST {RESPONSES}"] = responds(latency)


def responds(latency: float) -> Behavior:
    """The same answer in the form of the responses endpoint."""

    async def behave(call: Call, wire: Wire) -> None:
        await wire.pause(latency)
        part = {"type": "output_text", "text": answers(as_chat(call))[0], "annotations": []}
        message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
        made = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed"}
        made |= {"model": call.body.get("model"), "output": [{**message, "content": [part]}]}
        made |= {"parallel_tool_calls": False, "tool_choice": "auto", "tools": []}
        await wire.json(200, made)

    return behave


def as_chat(call: Call) -> Call:
    """A request to the responses endpoint as one for a completion; any other as it is."""
    if call.path != RESPONSES:
        return call
    asked = call.body.get("input", [])
    chat = {
        "model": call.body.get("model"),
        "messages": [{"role": "user", "content": asked}] if isinstance(asked, str) else asked,
        "response_format": {"json_schema": call.body.get("text", {}).get("format", {})},
    }
    return replace(call, path=COMPLETIONS, raw=json.dumps(chat).encode())


def answers(call: Call) -> list[str]:
    """The texts of the answers to a request."""
    if "DOCUMENTS" in call.data:
        return [json.dumps(_worded(written(call, label_for(call))))]
    for sign, lines in _TEXTS.items():
        if schema_of(call.body) is None and sign in message_text(call):
            return ["\n".join(lines)]
    return [answer(call.body, number, items=ITEMS) for number in range(call.body.get("n") or 1)]


def _worded(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """The same answer with one sentence wherever it has free text."""
    if isinstance(value, list):
        return [_worded(item) for item in value]
    if isinstance(value, dict):
        return {k: _SENTENCE if k in _FREE else _worded(part) for k, part in value.items()}
    return value


# -- counting -------------------------------------------------------------------------------------


def spent(calls: Iterable[Call], rows: Sequence[Json], counter: TokenCounter) -> Spent:
    """What requests came to.

    Args:
        calls: every request that came.
        rows: what the tool was given.
        counter: how tokens are counted.
    """
    calls = list(calls)
    asked = [call for call in map(as_chat, calls) if call.path == COMPLETIONS]
    schemas = [counter.count_json(schema_text(call)) for call in asked]
    wholes = [prompt_tokens(call, counter) for call in asked]
    texts = [answers(call) for call in asked]
    return Spent(
        calls=len(asked),
        embeddings=sum(call.path == EMBEDDINGS for call in calls),
        prompt=sum(wholes),
        schema=sum(schemas),
        cached=cached_tokens(asked, counter),
        completion=sum(counter.count_json(text) for given in texts for text in given),
        contexts=times_sent(asked, rows),
        models=dict(Counter(str(call.body.get("model")) for call in asked)),
    )


def schema_text(call: Call) -> str:
    """The schemas that are sent next to the messages; nothing where they stand in the text."""
    schemas = [call.body.get("response_format", {}).get("json_schema", {}).get("schema")]
    schemas += [tool["function"]["parameters"] for tool in call.body.get("tools") or ()]
    packed = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
    return "".join(packed.encode(schema) for schema in schemas if schema)


def message_text(call: Call) -> str:
    """All that stands in its messages."""
    return "\n".join(text for message in call.messages for text in texts_of(message))


def prompt_tokens(call: Call, counter: TokenCounter) -> int:
    """The tokens of a request: messages, their frames, and schemas."""
    frames = MESSAGE_FRAME * len(call.messages) + REPLY_FRAME
    return counter.count(message_text(call)) + counter.count_json(schema_text(call)) + frames


def cached_tokens(calls: Iterable[Call], counter: TokenCounter) -> int:
    """Tokens that a provider's prompt cache could read: those of a prefix that came before.

    The schema counts as the beginning of the request. A prefix counts from 1,024 tokens on and is
    distinguished every 512 characters; nothing is forgotten.
    """
    seen: set[tuple[object, ...]] = set()
    total = 0
    for call in calls:
        schema, text = schema_text(call), message_text(call)
        ends = range(0, len(text) + 1, _STEP)
        prefixes = {end: (call.body.get("model"), schema, hash(text[:end])) for end in ends}
        known = [end for end in ends if prefixes[end] in seen]
        seen.update(prefixes.values())
        if known:
            tokens = counter.count_json(schema) + counter.count(text[: max(known)])
            total += tokens if tokens >= _CACHED_FROM else 0
    return total


def times_sent(calls: Iterable[Call], rows: Sequence[Json]) -> float:
    """How often the context of a record was sent on average, all its documents once being 1."""
    marks = [mark for of_record in marks_of(rows) for mark in of_record]
    whole = "\n".join(message_text(call) for call in calls)
    return sum(map(whole.count, marks)) / len(marks)


def marks_of(rows: Sequence[Json]) -> Iterator[list[str]]:
    """For each record, a sentence of each document that stands nowhere else."""
    texts = [text for row in rows for text in (*row["documents"], row["response"])]
    texts += [row["reference"] for row in rows if "reference" in row]
    often = Counter(sentence for text in texts for sentence in sentences(text))
    for row in rows:
        yield [
            next(sentence for sentence in sentences(document) if often[sentence] == 1)
            for document in row["documents"]
        ]


def main() -> None:
    """Serve until standard input ends, then count."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds before each answer")
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.records.read_text(encoding="utf-8").splitlines()]
    with AnyEndpoint(options.latency) as provider:
        print(provider.url, flush=True)
        sys.stdin.read()
        requests = provider.requests
    print(json.dumps(spent(requests, rows, counter_for(MODEL))._asdict()))


if __name__ == "__main__":
    main()
