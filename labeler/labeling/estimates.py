"""Estimates and their display: requests, tokens, dollars and time, and what they rest on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from labeler.judges.pricing import PRICE_FORM
from labeler.judges.tokens import CAP_BASE, CAP_TIMES, CLAIMS_PER_SENTENCE
from labeler.labeling.progress import duration
from labeler.sentences.display import Display, Displayed, are, plural

SHORTEST_CACHED = 1024
"""Tokens of the shortest prefix that OpenAI and Gemini cache."""
_CAP_OF_BUDGET = f"{CAP_BASE:,} + {CAP_TIMES} times the expected"


@dataclass(frozen=True)
class Cost:
    """US dollars for all judgments to buy."""

    expected: Decimal = Decimal(0)
    """Cost if the provider caches nothing."""
    at_most: Decimal = Decimal(0)
    """Upper bound for one answer each, under a cap that was given or comes with a budget
    (:func:`~labeler.judges.tokens.answer_cap`). A re-ask is one more answer."""


@dataclass(frozen=True)
class RowCounts:
    """Rows and judgments by what a run would do with them."""

    read: int
    unusable: Mapping[str, int]
    """Rows that cannot be labeled, by reason."""
    shared: int
    """Rows with the same key as another row."""
    stored: int
    """Stored judgments: they cost nothing."""
    failed: int
    """Stored failures: they are repeated on request only."""
    pending: int
    """Judgments that open batches may still answer: they are not bought again."""
    asked: int
    """Judgments to buy. All further figures refer to them."""


@dataclass(frozen=True)
class PromptTokens:
    """Tokens of the prompts, the schema included."""

    total: int
    largest: int
    same: int
    """Tokens of the common start of each profile's prompts, schema and instructions; the smaller
    number if there are two profiles."""
    counted_by: str


@dataclass(frozen=True)
class AnswerTokens:
    """Tokens of the answers."""

    expected: int
    labels: int
    """Stored labels behind the estimate; 0 if it uses
    :func:`~labeler.judges.tokens.answer_tokens`,
    without reasoning and re-asks."""
    cap: int | None
    """Most tokens of one answer, if given."""


@dataclass(frozen=True, repr=False)
class Estimate(Displayed):
    """Requests, cost and time of a run."""

    model: str
    profiles: Mapping[str, int]
    """Requests by profile; ``retrieval`` for relevance that is judged without responses."""
    rows: RowCounts
    document_sentences: int
    response_sentences: int
    prompt: PromptTokens
    answers: AnswerTokens
    price: str | None
    """Source of the prices; ``None`` if the model has none, and then no cost."""
    online: Cost | None
    batch: Cost | None
    """``None`` as well for judges that have no batches."""
    concurrency: int
    latency: float | None
    """Seconds for one answer; ``None`` if unknown."""
    seconds: float | None
    """Seconds in all, unless the provider's limits slow the run."""
    max_input_tokens: int | None
    """Most tokens of a prompt; longer rows cannot be labeled. ``None`` if unknown."""

    def _display(self) -> Display:
        return show_estimate(self)

    def as_json(self) -> dict[str, Any]:
        """Return a JSON value; dollars are exact texts."""
        value: dict[str, Any] = json.loads(json.dumps(asdict(self), default=str))
        return value


def show_estimate(found: Estimate) -> Display:
    """Return the display of an estimate: requests, cost and their basis."""
    asked = [(name, f"{number:,}", remark) for name, number, remark in _lines(found) if number]
    lines = [*_aligned([("", "number", ""), *asked])]
    if found.online:
        lines += ["", *_aligned([*_costs(found, found.online, found.batch)])]
    return Display(_conclusion(found), notes=[*lines, "", *_notes(found)])


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows as lines: the names, then numbers aligned at the right, then remarks."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *numbers, remark in rows:
        cells = (one.rjust(width) for one, width in zip(numbers, widths[1:], strict=False))
        yield "  ".join([name.ljust(widths[0]), *cells, remark]).rstrip()


def _conclusion(found: Estimate) -> str:
    """Return the number of requests, their cost and time in one sentence."""
    rows, online = found.rows, found.online
    if not rows.asked:
        sent = rows.pending
        pending = f", and {sent:,} {are(sent)} in open batches" if sent else ""
        stored = f"{rows.stored:,} of {plural(rows.read, 'row')} {are(rows.stored)} stored"
        return f"Nothing to ask: {stored}{pending}."
    cost = "price unknown"
    if online:
        at_most = f"at most ${_dollars(online.at_most)} for one answer each"
        cost = f"about ${_dollars(online.expected)}, {at_most}"
    if found.batch:
        cost += f", in a batch ${_dollars(found.batch.expected)}"
    time = f", {duration(found.seconds)}" if found.seconds is not None else ""
    return f"{rows.asked:,} request{'s' * (rows.asked != 1)} to {found.model}: {cost}{time}."


def _lines(found: Estimate) -> Iterator[tuple[str, int, str]]:
    """Yield names, numbers and remarks about rows, requests and tokens."""
    rows, prompt, answers = found.rows, found.prompt, found.answers
    yield "rows", rows.read, ""
    unusable = ", ".join(f"{reason} {number}" for reason, number in rows.unusable.items())
    yield "  cannot be labeled", sum(rows.unusable.values()), unusable
    yield "  alike", rows.shared, "ask what an earlier row asks"
    yield "  stored", rows.stored, "cost nothing"
    yield "  failed before", rows.failed, "left out; --retry-failed asks again"
    yield "  in a batch", rows.pending, "still to come: collect them"
    yield "requests", rows.asked, f"to {found.model}"
    for name, number in found.profiles.items():
        yield "  retrieval labels" if name == "retrieval" else f"  profile {name}", number, ""
    if rows.asked:
        yield "document sentences", found.document_sentences, ""
        yield "response sentences", found.response_sentences, ""
        mean = round(prompt.total / rows.asked)
        yield "prompt tokens", prompt.total, f"{mean:,} each, {prompt.largest:,} the largest"
        # No tokens are expected where answers are probabilities.
        yield "answer tokens", answers.expected, f"{round(answers.expected / rows.asked):,} each"


def _costs(found: Estimate, online: Cost, batch: Cost | None) -> Iterator[Sequence[str]]:
    both = [online, *([batch] if batch else [])]
    yield "US dollars", *("online", "in a batch")[: len(both)], ""
    cap = f"{found.answers.cap:,}" if found.answers.cap else _CAP_OF_BUDGET
    remarks = {
        "expected": "if the provider caches nothing",
        "at_most": f"one answer each, {cap} tokens long; asking again costs more",
    }
    if not found.answers.expected:  # answers are probabilities
        remarks = {"expected": "", "at_most": "if each text has as many tokens as it can have"}
    for name, remark in remarks.items():
        yield name.replace("_", " "), *(_dollars(getattr(one, name)) for one in both), remark


def _dollars(amount: Decimal) -> str:
    return f"{amount:,.2f}" if amount >= 1 else f"{amount:.4f}"


def _notes(found: Estimate) -> Iterator[str]:
    """Yield the basis of the numbers."""
    if not found.rows.asked:
        return
    counted = f"tokens: prompts counted by {found.prompt.counted_by}; answers"
    if found.answers.expected:
        yield f"{counted} {_lengths(found)}"
        cap, mean = found.answers.cap, found.answers.expected / found.rows.asked
        if cap and mean > cap:
            yield f"answers may be cut off: {mean:,.0f} tokens are expected, {cap:,} allowed"
        yield _cache_note(found)
    else:
        yield f"{counted} are probabilities"
    yield _price_note(found)
    if found.latency is None or found.seconds is None:
        yield "time: unknown; --latency SECONDS says how long one answer takes"
    else:
        yield (
            f"time: {duration(found.seconds)} with {found.concurrency} requests at once of "
            f"{found.latency:.3g} s each, if no rate limit slows them"
        )


def _lengths(found: Estimate) -> str:
    """Return what the lengths of answers are estimated by."""
    if found.answers.labels:
        return f"as in {found.answers.labels} stored labels"
    known = "as in published labels of GPT-4, without reasoning tokens"
    if set(found.profiles) - {"trace", "retrieval"}:
        return f"{known}, and {CLAIMS_PER_SENTENCE} claims a sentence assumed"
    return known


def _cache_note(found: Estimate) -> str:
    """Return what a cache of prompts can hold."""
    start = f"caching: the first {found.prompt.same:,} tokens of each prompt are the same"
    if found.prompt.same < SHORTEST_CACHED:
        return f"{start}, too few: providers cache {SHORTEST_CACHED:,} or more"
    return f"{start}; a provider that caches them charges less for them"


def _price_note(found: Estimate) -> str:
    if found.price is None:
        return f"cost: unknown, no table has a price for {found.model}; give --price {PRICE_FORM}"
    return f"price: {found.price}"
