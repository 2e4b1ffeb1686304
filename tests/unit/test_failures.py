from __future__ import annotations

import datetime as dt
from typing import get_args

import pytest

from labeler.judges.openai.error_rules import (
    RULES,
    ErrorKind,
    ObservedError,
    RetryPolicy,
    explain,
    find_rule,
    plain_code,
)
from labeler.judges.openai.headers import retry_after


def test_every_symptom_has_a_rule() -> None:
    """Whatever the status, and whatever the kind, the table says what to do."""
    for status in range(300, 1000):
        assert find_rule(ObservedError("status", status=status)) in RULES
    for kind in get_args(ErrorKind):
        assert find_rule(ObservedError(kind)).kind == kind


@pytest.mark.parametrize(
    ("observed", "reason", "policy"),
    [
        (
            # The wording of a free tier's rate limit; it names the billing page and is no quota.
            ObservedError(
                "status",
                429,
                code="rate_limit_exceeded",
                message="Rate limit reached. Add a payment method at .../account/billing",
            ),
            "rate_limit",
            RetryPolicy.RATE,
        ),
        (ObservedError("status", 400, code="invalid_prompt"), "content_filter", RetryPolicy.RECORD),
        (
            ObservedError("status", 400, param="response_format.schema"),
            "parameter",
            RetryPolicy.FATAL,
        ),
        (
            ObservedError("status", 400, param="messages[1].content"),
            "bad_request",
            RetryPolicy.RECORD,
        ),
        (
            ObservedError("status", 400, code="model_not_found", param="model"),
            "not_found",
            RetryPolicy.FATAL,
        ),
        # A code is the provider's own; its words may be a document's, sent back.
        (ObservedError("status", 403, code="insufficient_quota"), "quota", RetryPolicy.FATAL),
        (
            ObservedError("status", 403, message="insufficient_quota"),
            "permission",
            RetryPolicy.RECORD,
        ),
        (ObservedError("status", 404, code="model_not_found"), "not_found", RetryPolicy.FATAL),
    ],
)
def test_alike_failures_are_told_apart(
    observed: ObservedError, reason: str, policy: RetryPolicy
) -> None:
    """By code, by message, by parameter, in this order of rules."""
    rule = find_rule(observed)
    assert (rule.reason, rule.policy) == (reason, policy)


def test_an_explanation_names_parameter_and_option() -> None:
    """The provider's parameter is not always what the option is called here."""
    observed = ObservedError("status", 400, code="unsupported_value", param="max_completion_tokens")
    assert explain(observed, timeout=1) == (
        "the model does not accept max_output_tokens or cap_field (status 400, code "
        "unsupported_value, parameter max_completion_tokens); drop or change max_output_tokens or "
        "cap_field"
    )


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            'Unknown name "top_k": Cannot find field.',
            "a field of the request (status 400, parameter top_k); drop the option",
        ),
        (
            "{'type': 'extra_forbidden', 'loc': ['body', 'max_completion_tokens']}",
            "max_completion_tokens (status 400, parameter max_completion_tokens); give --cap-field",
        ),
    ],
)
def test_an_unknown_field_is_named_with_what_sends_it(message: str, said: str) -> None:
    """Servers without a field for the parameter have it in their text."""
    observed = ObservedError("status", 400, message=message)
    assert explain(observed, timeout=1).startswith(f"the server does not know {said}")
    assert find_rule(observed).policy is RetryPolicy.RECORD  # a document may be quoted


@pytest.mark.parametrize("text", ["sk-abc123", "two message", "a" * 65, "{", "", "\u0430", "1x"])
def test_what_does_not_look_like_a_code_is_not_shown(text: str) -> None:
    """A code field may hold a key or a piece of the request."""
    assert plain_code(text) == ""


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Sun, 22 Nov 2026 00:00:30 GMT"}, 30.0),
        ({"retry-after": "Sun, 22 Nov 2026 00:00:30 -0000"}, 30.0),
        ({"retry-after": "Sat, 21 Nov 2026 23:00:00 GMT"}, 0.0),
        (
            {
                "retry-after": "Sun, 22 Nov 2026 01:00:07 GMT",
                "date": "Sun, 22 Nov 2026 01:00:00 GMT",
            },
            7.0,
        ),
        ({"retry-after": "Sun, 22 Nov 2026 00:00:30 GMT", "date": "now"}, 30.0),
        ({"retry-after": "1e308"}, 86400.0),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 86400.0),
        ({"retry-after": "Fri, 31 Dec 99999999999 23:59:59 GMT"}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    """Milliseconds, seconds, or a date of the server's clock; nonsense asks for nothing."""
    assert retry_after(headers, dt.datetime(2026, 11, 22, tzinfo=dt.UTC)) == seconds
