"""Requests and tokens of outcomes; unknown tokens are not the same as none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from labeler.labels.record import Usage

UNKNOWN_TOKENS = "tokens unknown: the server reports none"
_ANSWERED = frozenset(
    {"contract", "malformed", "truncated", "refusal", "content_filter", "cut_prompt"}
)
"""Reasons of failures that an answer led to."""
_LOCAL = frozenset({"embedded", "replay", "function"})
"""Kinds of judges that ask no server."""


def unmetered_requests(outcome: Any) -> int:  # noqa: ANN401 - an outcome, or a part of one
    """Return the requests of an outcome that a server answered without reporting tokens."""
    if outcome.kind != "failure":
        reply = outcome.reply
        return reply.attempts if reply.host and reply.usage is None else 0
    judge = outcome.signature.judge if outcome.signature else ""
    answered = outcome.reason in _ANSWERED and judge not in _LOCAL
    return outcome.attempts if answered and outcome.usage is None else 0


@dataclass(frozen=True)
class RunCost:
    """What labels cost.

    Attributes:
        requests: number of requests sent.
        usage: tokens of all answers.
        dollars: US dollars that they cost; ``None`` if the price or the tokens are unknown.
        source: origin of the price.
        unmetered: requests whose tokens the server did not report.
    """

    requests: int
    usage: Usage
    dollars: float | None = None
    source: str = ""
    unmetered: int = 0

    def __str__(self) -> str:
        if not (self.usage.prompt_tokens or self.dollars or self.unmetered):
            return "no token was paid for"
        price = f"${self.dollars:.4f} by {self.source}; " if self.dollars is not None else ""
        unknown = f", {self.unmetered:,} of unknown usage" if self.unmetered else ""
        usage = self.usage
        tokens = (
            f"{usage.prompt_tokens:,} prompt tokens ({usage.cached_tokens:,} cached), "
            f"{usage.completion_tokens:,} completion tokens"
        )
        if not usage.prompt_tokens and self.unmetered:
            unknown, tokens = "", UNKNOWN_TOKENS
        return f"{price}{self.requests:,} requests{unknown}, {tokens}"


class LabelFacts:
    """Counts of outcomes, or of their parts: judges, failures by reason, requests and tokens."""

    def __init__(self, outcomes: Iterable[Any]) -> None:
        self.failed: Counter[str] = Counter()
        self.judges: dict[str, None] = {}
        requests, unmetered, usage = 0, 0, Usage()
        paid = set[str]()
        for outcome in outcomes:
            signature = outcome.signature
            if outcome.kind == "failure":
                self.failed[outcome.reason] += 1
                asked, spent = outcome.attempts, outcome.usage
            else:
                asked, spent = outcome.reply.attempts, outcome.reply.usage
                if signature is not None:
                    self.judges[f"{signature.judge}/{signature.model}"] = None
                if outcome.key in paid:  # rows of equal texts share one request
                    continue
                paid.add(outcome.key)
            requests += asked
            unmetered += unmetered_requests(outcome)
            if spent:
                usage += spent
        self.cost = RunCost(requests, usage, unmetered=unmetered)
