"""Requests whose tokens are not known, which is not the same as none."""

from __future__ import annotations

from typing import Any

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
