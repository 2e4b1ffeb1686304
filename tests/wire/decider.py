"""A loopback server of both APIs of models that decide, which answers by a function.

It holds each request against the forms that OpenAI and TypeSafe document, finds the key that a
question names in its instructions (names are not shown to models), and answers with what its
function says. Limits, faults and statuses are those that a test sets.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from labeler.labels.record import LabelRecord
from labeler.sentences.example import is_key
from wire.calls import Call, Json
from wire.connections import Wire
from wire.provider import Provider

KEY = "sk-SENTINEL-0123456789"


class Asked(NamedTuple):
    """One question as the server reads it."""

    text: str
    """The record: ``input`` or ``state``."""
    kind: str
    key: str
    options: tuple[str, ...]


Answer = Callable[[Asked], Any]
"""Returns the probability of yes, or the probabilities of the options."""

_KINDS = {
    "help to answer": "relevant",
    "response use": "utilized",
    "support all": "supported",
    "supports response sentence": "by",
    "response state what reference": "recalled",
    "documents state what reference": "found",
    "states most of": "where",
}
_NAMED = re.compile(r"\bsentence ((?:ref\.|[th]?\d+)?[a-z]+)(?= (?:help|states|most)|\?)")


class Rejected(Exception):
    """A request that the server does not take: status and body."""

    def __init__(self, status: int, body: object) -> None:
        super().__init__(status)
        self.status, self.body = status, body


class Decider:
    """The server, on a thread while its context is entered.

    Args:
        answer: what it answers to a question.
        questions: questions in a request at most; more are rejected with status 400.
        options: options of a choice at most, in the same way.
        spoil: changes each answer before it is sent; may return bytes, or a status and a body.
        port: 0 for any free one.
    """

    def __init__(
        self,
        answer: Answer,
        *,
        questions: int = 400,
        options: int = 255,
        spoil: Callable[[Json, int], Any] = lambda body, _: body,
        port: int = 0,
    ) -> None:
        self.answer, self.questions, self.options = answer, questions, options
        self.spoil = spoil
        self.requests: list[Json] = []
        """Bodies of the requests that it answered, and their path in ``path``."""
        self.rejected = 0
        apis = dict.fromkeys(("POST /v1/decisions", "POST /v1/systemone"), self._behave)
        self._provider = Provider(port=port, more=apis)

    @property
    def url(self) -> str:
        """The base URL to give to a client."""
        return self._provider.url

    def __enter__(self) -> Self:
        self._provider.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._provider.__exit__()

    async def _behave(self, call: Call, wire: Wire) -> None:
        await wire.respond(*await asyncio.to_thread(self.respond, call.path, call.body))

    def respond(self, path: str, body: Json) -> tuple[int, bytes]:
        """Return the status and the body of the response to a request."""
        try:
            answered = self._answered(path, body)
        except Rejected as rejected:
            self.rejected += 1
            return rejected.status, json.dumps(rejected.body).encode()
        self.requests.append({**body, "path": path})
        spoiled = self.spoil(answered, len(self.requests))
        if isinstance(spoiled, tuple):
            return spoiled[0], json.dumps(spoiled[1]).encode()
        return 200, spoiled if isinstance(spoiled, bytes) else json.dumps(spoiled).encode()

    def _answered(self, path: str, body: Json) -> Json:
        is_listed = path == "/v1/decisions"
        require(body.keys() == {"model", "questions", "input" if is_listed else "state"})
        read = _listed(body) if is_listed else _named(body)
        if len(read) > self.questions:
            self._over("questions", self.questions, is_listed)
        if max(len(asked.options) for asked, _ in read) > self.options:
            self._over("choices", self.options, is_listed)
        answers = [self._one(asked, name, is_listed) for asked, name in read]
        usage = {"input_tokens": len(json.dumps(body).split()), "output_tokens": 0}
        named = dict(zip([name for _, name in read], answers, strict=True))
        return {"model": body["model"], "answers": answers if is_listed else named, "usage": usage}

    def _over(self, what: str, most: int, is_listed: bool) -> None:
        if is_listed:
            raise Rejected(400, {"error": {"message": f"Invalid '{what}': at most {most} items."}})
        place = ["body", "questions"] + (["by a", "criteria"] if what == "choices" else [])
        words = f"Dictionary should have at most {most} items after validation"
        raise Rejected(422, {"detail": [{"loc": place, "msg": words, "type": "too_long"}]})

    def _one(self, asked: Asked, name: str, is_listed: bool) -> Json:
        found = self.answer(asked)
        if not asked.options:
            listed = {"type": "predicate", "name": name, "probability": found}
            return listed if is_listed else {"type": "noul", "noul": found}
        likely = {option: found.get(option, 0) for option in asked.options}
        best = max(likely, key=lambda option: likely[option])
        if not is_listed:
            return {"type": "choice", "choice": best, "probabilities": likely, "confidence": 0.5}
        each = [{"value": option, "probability": p} for option, p in likely.items()]
        own = {"type": "choice", "name": name, "choice": best, "confidence": 0.5}
        return {**own, "probabilities": each}


def require(holds: bool) -> None:
    """Reject a request that the API does not document."""
    if not holds:
        raise Rejected(400, {"error": {"message": "unknown field", "code": "invalid_request"}})


def _listed(body: Json) -> list[tuple[Asked, str]]:
    read = []
    for one in body["questions"]:
        options = tuple(choice["value"] for choice in one.get("choices", ()))
        require(one.keys() <= {"type", "name", "instructions", "choices"})
        require(one["type"] == ("choice" if options else "predicate"))
        require("choices" not in one or 2 <= len(set(options)) == len(options))
        read.append((_asked(body["input"], one["instructions"], options), one["name"]))
    require(len({name for _, name in read}) == len(read))
    return read


def _named(body: Json) -> list[tuple[Asked, str]]:
    read = []
    for name, one in body["questions"].items():
        options = tuple(one.get("criteria", ()))
        require(one.keys() <= {"type", "instructions", "criteria"})
        require(one["type"] == ("choice" if options else "noul"))
        described = one.get("criteria", {}).values()  # a proxy may leave descriptions out
        require(all(text is None or (isinstance(text, str) and text) for text in described))
        read.append((_asked(body["state"], one["instructions"], options), name))
    return read


def _asked(text: str, instructions: str, options: Sequence[str]) -> Asked:
    """Read a question by its words alone."""
    kind = next(name for words, name in _KINDS.items() if words in instructions)
    named = _NAMED.findall(instructions)
    require(bool(named) and is_key(named[-1]))
    return Asked(text, kind, named[-1], tuple(options))


_LINE = re.compile(r"^(\S+) (\".*\")$", re.MULTILINE)
_QUESTION = re.compile(r'^BEGIN QUESTION \S+\n(".*")$', re.MULTILINE)


def overlap(asked: Asked) -> Any:
    """Answer by shared words: a stand-in that measures nothing."""
    words = {key: _words(text) for key, text in _LINE.findall(asked.text)}
    own = words[asked.key]
    documents = {key: found for key, found in words.items() if key[0].isdigit()}
    if asked.options:
        shared = {o: len(own & documents.get(o, set())) + 0.1 for o in asked.options}
        return {option: count / sum(shared.values()) for option, count in shared.items()}
    if asked.kind == "supported":
        return len(own & set().union(*documents.values())) / max(1, len(own))
    other = _words("".join(_QUESTION.findall(asked.text)))
    if asked.kind == "utilized":
        other = set().union(*(found for key, found in words.items() if key.isalpha()))
    return min(1.0, 2 * len(own & other) / max(1, len(own)))


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 3}


def oracle(labels: Mapping[str, LabelRecord]) -> Answer:
    """Answer with probability 1 or 0 from labels by the text of a record in a request."""
    return lambda asked: truth(labels[asked.text], asked)


def truth(record: LabelRecord, asked: Asked) -> Any:
    """Return what a label says to a question."""
    label = record.label
    support = {one.response_sentence_key: one for one in label.sentence_support_information}
    if asked.kind == "relevant":
        return int(asked.key in label.all_relevant_sentence_keys)
    if asked.kind == "utilized":
        return int(asked.key in label.all_utilized_sentence_keys)
    entry = support[asked.key]
    if asked.kind == "supported":
        return int(entry.fully_supported)
    keys = [key for key in entry.supporting_sentence_keys if key[0].isdigit() or key[1:2].isdigit()]
    return shares(record, keys, asked.options)


def shares(record: LabelRecord, keys: Sequence[str], options: Sequence[str]) -> dict[str, float]:
    """Return equal shares of keys among options, which may be ranges of keys."""
    order = [sentence.key for sentence in record.example.evidence_sentences()]
    place = {key: number for number, key in enumerate(order)}
    found: dict[str, float] = {}
    for option in options:
        if option != "none":
            first, _, last = option.partition("-")
            span = range(place[first], place[last or first] + 1)
            found[option] = float(sum(place[key] in span for key in keys))
    total = sum(found.values())
    if not total:
        return {"none": 1.0} if "none" in options else dict.fromkeys(options, 1 / len(options))
    return {option: value / total for option, value in found.items()}
