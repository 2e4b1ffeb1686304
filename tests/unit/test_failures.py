from __future__ import annotations

import datetime as dt
from typing import get_args

import pytest

from labeler.judges.openai.failures import (
    RULES,
    Course,
    Sign,
    Symptom,
    diagnose,
    explain,
    plain_code,
    retry_after,
)
from labeler.judges.openai.health import Experience


def test_every_symptom_has_a_rule() -> None:
    """Whatever the status, and whatever the sign, the table says what to do."""
    for status in range(300, 1000):
        assert diagnose(Symptom("status", status=status)) in RULES
    for sign in get_args(Sign):
        assert diagnose(Symptom(sign)).sign == sign


def test_every_rule_can_be_reached() -> None:
    """No rule stands behind one that takes all its symptoms."""
    marks = "insufficient_quota context_length content_filter model_not_found unsupported_value"
    said = ["", *marks.split(), "request too large"]
    reached = {
        id(diagnose(Symptom("status", status, code=code, words=words, param=param)))
        for status in range(300, 600)
        for text in said
        for code, words in ((text, ""), ("", text))
        for param in ("", "model", "temperature", "max_completion_tokens")
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
            "rate_limit",
            Course.RATE,
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
        # A code is the provider's own; its words may be a document's, sent back.
        (Symptom("status", 403, code="insufficient_quota"), "quota", Course.FATAL),
        (Symptom("status", 403, words="insufficient_quota"), "quota", Course.SUSPECT),
        (Symptom("status", 403, code="see insufficient_quota"), "quota", Course.SUSPECT),
        (Symptom("status", 403), "permission", Course.SUSPECT),
        (Symptom("status", 404, code="model_not_found"), "not_found", Course.FATAL),
        (Symptom("status", 404, param="model"), "not_found", Course.FATAL),
        (Symptom("status", 404), "not_found", Course.SUSPECT),
        (Symptom("status", 405), "not_found", Course.SUSPECT),
        (Symptom("status", 400, words="The model m does not exist"), "not_found", Course.SUSPECT),
        (Symptom("status", 400, param="temperature"), "parameter", Course.FATAL),
        (Symptom("status", 400, param="max_completion_tokens"), "parameter", Course.SUSPECT),
        (Symptom("status", 422, code="unknown_parameter"), "parameter", Course.SUSPECT),
        (Symptom("status", 302), "redirect", Course.SUSPECT),
        (Symptom("status", 401), "authentication", Course.FATAL),
        (Symptom("status", 529), "transport", Course.RETRY),
    ],
)
def test_alike_failures_are_told_apart(symptom: Symptom, reason: str, course: Course) -> None:
    """By code, by words, by parameter, in this order of rules."""
    rule = diagnose(symptom)
    assert (rule.reason, rule.course) == (reason, course)


FORBIDDEN = Symptom("status", 403, code="model_forbidden")


def test_a_judge_that_never_worked_takes_a_suspect_failure_as_it_is() -> None:
    """However often: nothing says that it is the record's fault."""
    experience = Experience()
    assert {experience.weigh(FORBIDDEN) for _ in range(20)} == {(FORBIDDEN, "")}


def test_a_judge_that_has_worked_blames_the_record_nine_times() -> None:
    """The tenth suspect failure in a row, and each one after it, counts for all records."""
    experience = Experience()
    for _ in range(2):  # a success starts the count anew
        experience.succeed()
        seen = [experience.weigh(FORBIDDEN) for _ in range(11)]
        assert [diagnose(symptom).reason for symptom, _ in seen] == (
            ["rejected"] * 9 + ["permission"] * 2
        )
    assert [history for _, history in seen[8:10]] == [
        "",
        "10 records in a row failed so, and none was labelled between",
    ]


@pytest.mark.parametrize("sign", ["refusal", "timeout", "contract", "interrupted"])
def test_what_is_not_suspect_is_left_alone_and_not_counted(sign: Sign) -> None:
    """Experience changes nothing about it, and it is no success either."""
    symptom = Symptom(sign)
    experience = Experience()
    experience.succeed()
    for _ in range(9):
        experience.weigh(FORBIDDEN)
        assert experience.weigh(symptom) == (symptom, "")
    assert diagnose(experience.weigh(FORBIDDEN)[0]).course is Course.SUSPECT


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
        ({"retry-after": "1e300"}, 30 * 86400.0),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 30 * 86400.0),
        ({"retry-after": "Fri, 31 Dec 99999999999 23:59:59 GMT"}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    """Milliseconds, seconds, or a date; nonsense asks for nothing."""
    assert retry_after(headers, dt.datetime(2026, 11, 22, tzinfo=dt.UTC)) == seconds


def test_a_server_that_never_answers_stops_the_run() -> None:
    """The third record in vain is fatal; after one answer none is."""
    dead = Symptom("connection")
    experience = Experience()
    seen = [experience.weigh(dead)[0] for _ in range(3)]
    assert [diagnose(symptom).course for symptom in seen] == [
        Course.RETRY,
        Course.RETRY,
        Course.FATAL,
    ]
    experience = Experience()
    experience.succeed()
    assert {experience.weigh(dead) for _ in range(20)} == {(dead, "")}
