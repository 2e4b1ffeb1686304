from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

import labeler
from labeler.errors import UsageError
from labeler.judges.limits import reset_after, retry_after
from labeler.judges.openai.address import plain_code
from labeler.judges.openai.error_rules import (
    RULES,
    ErrorKind,
    ObservedError,
    RetryPolicy,
    explain,
    find_rule,
)
from support.command import Command


def test_every_symptom_has_a_rule() -> None:
    """Whatever the status, and whatever the kind, the table says what to do."""
    for status in range(300, 1000):
        assert find_rule(ObservedError("status", status=status)) in RULES
    for kind in get_args(ErrorKind):
        assert find_rule(ObservedError(kind)).kind == kind


LONG = ("context_length", "RECORD")
FREE_TIER = "Rate limit reached. Add a payment method at .../account/billing"
"""It names the billing page and is no quota."""


@pytest.mark.parametrize(
    ("status", "facts", "reason", "policy"),
    [
        (429, {"code": "rate_limit_exceeded", "message": FREE_TIER}, "rate_limit", "RATE"),
        (400, {"code": "invalid_prompt"}, "content_filter", "RECORD"),
        (400, {"param": "response_format.schema"}, "parameter", "FATAL"),
        (400, {"param": "messages[1].content"}, "bad_request", "RECORD"),
        (400, {"code": "model_not_found", "param": "model"}, "not_found", "FATAL"),
        # A code is the provider's own; its words may be a document's, sent back.
        (403, {"code": "insufficient_quota"}, "quota", "FATAL"),
        (403, {"message": "insufficient_quota"}, "permission", "RECORD"),
        (404, {"code": "model_not_found"}, "not_found", "FATAL"),
        # Providers' own words for the same.
        (429, {"code": "exceeded_current_quota_error"}, "quota", "FATAL"),
        (400, {"code": "Arrearage"}, "quota", "FATAL"),
        (500, {"message": "prompt of 9 is longer than the maximum model length of 8"}, *LONG),
        (400, {"message": "the maximum prompt length is 8, but the request has 9 tokens"}, *LONG),
        (400, {"message": "9 needed, but the maximum supported sequence length is 8"}, *LONG),
        (422, {"message": "`inputs` tokens + `max_new_tokens` must be <= 8. Given: 9"}, *LONG),
        (422, {"message": "`inputs` must have less than 8 tokens"}, *LONG),
        (400, {"message": "too many tokens: prompt and answer cannot exceed 8"}, *LONG),
        (400, {"code": "data_inspection_failed"}, "content_filter", "RECORD"),
        (400, {"message": "<400> Algo.DataInspectionFailed: Input"}, "content_filter", "RECORD"),
        (403, {"message": "Content violates usage guidelines."}, "content_filter", "RECORD"),
    ],
)
def test_alike_failures_are_told_apart(
    status: int, facts: dict[str, Any], reason: str, policy: str
) -> None:
    """By code, by message, by parameter, in this order of rules."""
    rule = find_rule(ObservedError("status", status, **facts))
    assert (rule.reason, rule.policy) == (reason, RetryPolicy[policy])


def test_an_explanation_names_parameter_and_option() -> None:
    """The provider's parameter is not always what the option is called here."""
    observed = ObservedError("status", 400, code="unsupported_value", param="max_completion_tokens")
    assert explain(observed, timeout=1) == (
        "the model does not accept max_output_tokens or cap_field (status 400, code "
        "unsupported_value, parameter max_completion_tokens); drop or change max_output_tokens or "
        "cap_field"
    )


CAP = "max_completion_tokens"


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ('Unknown name "top_k": Cannot find field.', "a field of the request (status 400, param"),
        (f"{{'type': 'extra_forbidden', 'loc': ['body', '{CAP}']}}", f"{CAP} (status 400, param"),
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


DAY = "Sun, 22 Nov 2026"
NOW = {"date": f"{DAY} 00:00:00 GMT"}


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "5 seconds"}, None),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": f"{DAY} 00:00:30 GMT"}, 30.0),
        ({"retry-after": f"{DAY} 00:00:30 -0000"}, 30.0),
        ({"retry-after": "Sat, 21 Nov 2026 23:00:00 GMT"}, 0.0),
        ({"retry-after": f"{DAY} 01:00:07 GMT", "date": f"{DAY} 01:00:00 GMT"}, 7.0),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT", "date": "now"}, 86400.0),
        ({"retry-after": "1m7s"}, 67.0),
        ({"retry-after": "2026-11-22T00:00:30Z"}, 30.0),
        ({"retry-after": "1795305630"}, 30.0),
        ({"x-ms-retry-after-ms": "250"}, 0.25),
        ({"retry-after": "1e308"}, 86400.0),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 86400.0),
        ({"retry-after": "Fri, 31 Dec 99999999999 23:59:59 GMT"}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    """Milliseconds, seconds, or a date of the server's clock; nonsense asks for nothing."""
    assert retry_after({**NOW, **headers}) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"ratelimit": '"default";r=0;t=30'}, 30.0),
        ({"ratelimit": '"a";r=4;t=30, "b";r=9;t=50'}, None),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "30"}, 30.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "20"}, 20.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1795305630"}, 30.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "2026-11-22T00:00:30Z"}, 30.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon"}, None),
        ({"x-ratelimit-remaining": "5", "x-ratelimit-reset": "30"}, None),
    ],
)
def test_a_limit_that_is_used_up_says_when_it_is_whole_again(
    headers: dict[str, str], seconds: float | None
) -> None:
    """By drafts of the IETF, and with the names that came before; one with a rest asks nothing."""
    assert reset_after({**NOW, **headers}) == seconds


ROW = {"question": "How long is the quay?", "documents": ["It is 90 m long."], "response": "90 m."}


def labeled(*rows: Any) -> labeler.Labels:
    """Labels of rows."""
    return labeler.label(list(rows), judge="embedded", store=labeler.MemoryStore())


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """A label file of one row."""
    labeler.api.write_labels(labeled(ROW), tmp_path / "labels.jsonl")
    return tmp_path / "labels.jsonl"


def test_what_is_no_outcomes_is_refused(labels: Path) -> None:
    """Rather than being counted as none; neither characters of a path nor fields of a record."""
    (record,) = labeler.api.read_labels(labels)
    given: list[Any] = [5, None, b"labels.jsonl", {"id": "a"}, record]
    for one in given:
        with pytest.raises(UsageError, match=rf"not {type(one).__name__}; put one record in a"):
            labeler.metrics(one)
        with pytest.raises(UsageError, match="outcomes are a label file"):
            labeler.summary(one)
    with pytest.raises(UsageError, match=r"labeler\.api\.read_labels\('labels\.jsonl'\)"):
        labeler.audit.audit_labels("labels.jsonl")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"rows are files, a data frame, .* not int"):
        labeler.label(5, judge="embedded", store=labeler.MemoryStore())


@pytest.mark.parametrize("given", [ROW, labeler.Example(id="1", **ROW)])  # type: ignore[arg-type]
def test_one_row_is_labeled_without_a_list(given: Any) -> None:
    """A mapping is not taken for as many rows as it has columns."""
    (outcome,) = labeler.label(given, judge="embedded", store=labeler.MemoryStore())
    assert outcome.kind == "label"


@pytest.mark.parametrize(
    "name",
    ["labels.csv", "labels.CSV.gz", "labels.json", "labels.parquet.gz", "s3://b/labels.jsonl"],
)
def test_labels_are_not_written_under_another_formats_name(
    name: str, labels: Path, tmp_path: Path
) -> None:
    """Lines of JSON in a file that is called CSV would be read by nobody."""
    target = name if "://" in name else tmp_path / name
    with pytest.raises(UsageError, match=r"is an address|as JSON Lines or \.parquet, not \.\w"):
        labeler.api.write_labels(labeler.api.read_labels(labels), target)
    assert [path.name for path in tmp_path.iterdir()] == ["labels.jsonl"]


def test_an_id_that_a_frame_made_a_float_of_says_so() -> None:
    """A column of numbers in which one is missing has floats."""
    (outcome,) = labeled(ROW | {"id": 1.0})
    assert isinstance(outcome, labeler.LabelFailure)
    assert "'id' is a number; it must be a text or a whole number (data frames" in outcome.message


@pytest.mark.parametrize("name", ["empty.jsonl", "blank.jsonl", "empty.csv", "folder", ""])
@pytest.mark.parametrize(
    "command",
    [
        *("metrics", "audit", "worst", "report", "compare labels.jsonl"),
        *("check --min adherence=0", "review --port 0"),
    ],
)
def test_labels_that_are_not_there_are_wrong_use(
    labels: Path, labeler_command: Command, command: str, name: str
) -> None:
    """In the same words for every command, and never another folder's labels."""
    for empty, text in (("empty.jsonl", ""), ("blank.jsonl", "\n\n"), ("empty.csv", "")):
        labels.with_name(empty).write_text(text)
    labels.with_name("folder").mkdir()
    says = {"": "got ''", "folder": "folder without a label store"}.get(
        name, f"no labels in {name}"
    )
    code, _, err = labeler_command(*command.split(), name)
    assert (code, says in err) == (2, True)
