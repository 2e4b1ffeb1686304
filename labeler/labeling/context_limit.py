"""The longest prompt of a judge: a longer record fails before any request."""

from __future__ import annotations

from typing import Any, NamedTuple

from labeler.errors import BadRow, UsageError
from labeler.judges.judge import Judge
from labeler.judges.pricing import Price, price_of
from labeler.judges.task import Task
from labeler.judges.tokens import Approximation, request_tokens, request_tokens_at_most

TOO_LONG = "context_length"
"""Reason of a failure; a server that reports the same gives it too."""
_COUNTER = Approximation()


class ContextLimit(NamedTuple):
    """Most tokens of a prompt.

    Attributes:
        tokens: the number.
        source: its origin, for people.
    """

    tokens: int
    source: str

    def require(self, task: Task[Any]) -> None:
        """Reject a task whose prompt is longer.

        Raises:
            BadRow: the message names both figures.
        """
        schema = task.sent_schema
        texts = [{"content": message["content"]} for message in task.messages]
        if request_tokens_at_most(_COUNTER, texts, schema) <= self.tokens:
            return  # without counting
        tokens = request_tokens(_COUNTER, texts, schema)
        if tokens > self.tokens:
            raise BadRow(
                f"{task.example.id!r}: its prompt has about {tokens:,} tokens, and {self.source} "
                f"allows {self.tokens:,}; the judge was not asked: give it fewer documents, or "
                "choose a model with more context",
                reason=TOO_LONG,
            )


def prompt_tokens(task: Task[Any]) -> int:
    """Return the approximate tokens of a task's prompt."""
    texts = [{"content": message["content"]} for message in task.messages]
    return request_tokens(_COUNTER, texts, task.sent_schema)


def context_limit(
    judge: Judge, given: int | None, price: Price | None = None
) -> ContextLimit | None:
    """Return the limit of a judge's prompts; ``None`` if unknown or unlimited.

    Args:
        judge: judge to ask.
        given: most tokens of a prompt, if the user chose it. By default, the tokens that the model
            takes at most by the price table, less the cap on its answers.
        price: price of the model, if the judge does not know it.

    Raises:
        UsageError: ``given`` is below 1.
    """
    if given is not None:
        if given < 1:
            raise UsageError(f"max_input_tokens must be 1 or more, got {given}")
        return ContextLimit(given, "--max-input-tokens")
    context = _context_of(judge, price or getattr(judge, "price", None))
    if context is None:
        return None
    left = context - (getattr(judge.spec, "max_output_tokens", None) or 0)
    return ContextLimit(left if left > 0 else context, f"model {judge.spec.model!r}")


def _context_of(judge: Judge, price: Price | None) -> int | None:
    """Return the tokens that a hosted model takes at most, if the price table has them."""
    if price is not None and price.context_window is not None:
        return price.context_window
    address = getattr(judge.spec, "base_url", None)
    if address is None or (price is None and hasattr(judge, "price")):  # the judge has looked it up
        return None
    found = price_of(judge.spec.model, address)
    return found.context_window if found else None
