from __future__ import annotations

import datetime as dt
from typing import get_args

import pytest

from labeler.judges.failures import (
    RULES,
    Course,
    Sign,
    Symptom,
    diagnose,
    explain,
    plain_code,
    retry_after,
)


def test_every_symptom_has_a_rule() -> None:
    """Whatever the status, and whatever the sign, the table says what to do."""
    for status in range(300, 1000):
        assert diagnose(Symptom("status", status=status)) in RULES
    for sign in get_args(Sign):
        assert diagnose(Symptom(sign)).sign == sign


def test_every_rule_can_be_reached() -> None:
    """No rule stands behind one that takes all its symptoms."""
    marks = "insufficient_quota context_length content_filter model_not_found unsupported_value"
    words = ["", *marks.split(), "request too large"]
    reached = {
        id(diagnose(Symptom("status", status=status, words=text, param=param)))
        for status in range(300, 600)
        for text in words
        for param in ("", "temperature")
    }
    reached |= {id(diagnose(Symptom(sign))) for sign in get_args(Sign)}
    assert [rule for rule in RULES if id(rule) not in reached] == []


@pytest.mark.parametrize(
    ("symptom", "reason", "course"),
    [
        (Symptom("status", 429, code="insufficient_quota"), "quota", Course.FATAL),
        (
            Symptom("status", 429, words="You exceeded your current quota, please check"),
            "quota",
            Course.FATAL,
        ),
        (
            # The wording of a free tier's rate limit; it names the billing page and is no quota.
            Symptom(
                "status",
                429,
                code="rate_limit_exceeded",
                words="Rate limit reached. Add a payment method at .../account/billing",
            ),
            "transport",
            Course.RETRY,
        ),
        (
            Symptom("status", 429, words="Request too large for m: Limit 30000, Requested 40000"),
            "context_length",
            Course.RECORD,
        ),
        (
            Symptom("status", 400, words="This model's maximum context length is 4096 tokens"),
            "context_length",
            Course.RECORD,
        ),
        (Symptom("status", 400, code="invalid_prompt"), "content_filter", Course.RECORD),
        (Symptom("status", 403, code="content_filter"), "content_filter", Course.RECORD),
        (Symptom("status", 400, param="response_format.schema"), "parameter", Course.FATAL),
        (Symptom("status", 400, param="messages[1].content"), "bad_request", Course.RECORD),
        (Symptom("status", 400, code="model_not_found", param="model"), "not_found", Course.FATAL),
        (Symptom("status", 418), "bad_request", Course.RECORD),
        (Symptom("status", 529), "transport", Course.RETRY),
    ],
)
def test_alike_failures_are_told_apart(symptom: Symptom, reason: str, course: Course) -> None:
    """By code, by words, by parameter, in this order of rules."""
    rule = diagnose(symptom)
    assert (rule.reason, rule.course) == (reason, course)


def test_an_explanation_names_parameter_and_option() -> None:
    """The provider's parameter is not always what the option is called here."""
    symptom = Symptom("status", 400, code="unsupported_value", param="max_completion_tokens")
    assert explain(symptom, timeout=1) == (
        "the model does not accept max_output_tokens (status 400, code unsupported_value, "
        "parameter max_completion_tokens); drop or change max_output_tokens"
    )


@pytest.mark.parametrize("text", ["sk-abc123", "two words", "a" * 65, "{", "", "\u0430", "1x"])
def test_what_does_not_look_like_a_code_is_not_shown(text: str) -> None:
    """A code field may hold a key or a piece of the request."""
    assert plain_code(text) == ""


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Sun, 22 Nov 2026 00:00:30 GMT"}, 30.0),
        ({"retry-after": "Sun, 22 Nov 2026 00:00:30 -0000"}, 30.0),
        ({"retry-after": "Sat, 21 Nov 2026 23:00:00 GMT"}, 0.0),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    """Milliseconds, seconds, or a date; nonsense asks for nothing."""
    assert retry_after(headers, dt.datetime(2026, 11, 22, tzinfo=dt.UTC)) == seconds
