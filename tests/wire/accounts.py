"""What the provider charges for: tokens by a stated rule, and whose record was paid how often."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from wire.calls import Call, Json

FIXED_USAGE: Json = {
    "prompt_tokens": 10_000,
    "completion_tokens": 10,
    "total_tokens": 10_010,
    "prompt_tokens_details": {"cached_tokens": 40},
}
"""What every answer states unless tokens are counted."""

_BYTES = 4


class Tokens(NamedTuple):
    """Tokens that were charged; those read from the cache are part of the prompt's."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0


def tokens_of(*texts: str) -> int:
    """How many tokens texts have together: one for four bytes of UTF-8, rounded up."""
    return -(-sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) // _BYTES)


def prompt_tokens(call: Call) -> int:
    """How many tokens a request has: all messages, and the schema."""
    schema = call.body.get("response_format", {}).get("json_schema", {}).get("schema")
    contents = [message.get("content") for message in call.messages]
    texts = (each if isinstance(each, str) else json.dumps(each) for each in contents)
    return tokens_of(*texts, json.dumps(schema) if schema else "")


def charge_of(answer: Any) -> Tokens | None:
    """The tokens that an answer states; ``None`` where it states none."""
    usage = answer.get("usage") if isinstance(answer, dict) else None
    if not isinstance(usage, dict) or not isinstance(usage.get("prompt_tokens"), int):
        return None
    details = usage.get("prompt_tokens_details") or {}
    return Tokens(
        usage["prompt_tokens"], usage.get("completion_tokens", 0), details.get("cached_tokens", 0)
    )


class Accounts:
    """Counts what was charged. An answer is charged by the usage that it states.

    Args:
        count_tokens: state tokens counted from the text, instead of :data:`FIXED_USAGE`.
    """

    def __init__(self, *, count_tokens: bool = False) -> None:
        self.tokens = Tokens()
        self.paid: Counter[str] = Counter()
        """How often each record's answer was charged, by the identity of its calls."""
        self._count_tokens = count_tokens

    def usage(self, call: Call, content: str | None) -> Json:
        """What an answer states that it used."""
        if not self._count_tokens:
            return FIXED_USAGE
        prompt, completion = prompt_tokens(call), tokens_of(content or "")
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": 0},
        }

    @contextlib.contextmanager
    def charging(self, call: Call, answer: Json) -> Iterator[None]:
        """Charge for an answer, unless sending it fails.

        The charge stands before the peer can know the answer, so that it never sees one that is not
        counted yet.
        """
        charge = charge_of(answer) or Tokens()
        paid = int(charge != Tokens())
        self._enter(call, charge, paid)
        try:
            yield
        except BaseException:
            self._enter(call, Tokens(*(-count for count in charge)), -paid)
            raise

    def _enter(self, call: Call, charge: Tokens, times: int) -> None:
        self.tokens = Tokens(*map(sum, zip(self.tokens, charge, strict=True)))
        if "messages" in call.body:
            self.paid[call.identity] += times
