"""Judges behind providers with an API of their own."""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler.errors import FatalJudgeError, UsageError
from labeler.judges.judge import JUDGES
from labeler.judges.limits import quota_of
from labeler.judges.openai.completion import Completion
from labeler.judges.openai.error_rules import ObservedError
from labeler.judges.options import PROVIDERS
from labeler.judges.task import FRAME
from labeler.labels.record import LabelRecord, Outcome, Usage
from labeler.labels.signature import load_schema
from labeler.plugins.native_judges import limits_of
from labeler.store import MemoryStore
from support.command import Command
from support.watching import Watch
from wire.behaviors import MODEL, body, error
from wire.native import FORMS, KEY, NativeProvider
from wire.provider import Call, Provider, faulty
from wire.runs import brief, reasons, row_file, rows
from wire.test_money import BOUNDED, BUDGET, books, charged_then

every_provider = pytest.mark.parametrize("name", FORMS)
PAGE = (Path(__file__).parents[2] / "docs" / "judges.md").read_text(encoding="utf-8")
LOOKED_UP = {"anthropic": 1, "gemini": 1, "bedrock": 0}
"""Requests before the first record."""


@pytest.fixture(autouse=True)
def _region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")


def judge_of(server: Provider, name: str, **given: Any) -> Any:
    """A judge of a provider at a server."""
    return JUDGES[name]("m", **{"api_key": KEY, "base_url": server.url, "sleep": brief, **given})


def label(server: Provider, name: str, count: int, **options: Any) -> list[Outcome]:
    """Label rows; ``judge`` holds settings of the judge."""
    judge = judge_of(server, name, **options.pop("judge", {}))
    return [*labeler.label(rows(count), judge=judge, **{"store": MemoryStore(), **options})]


OTHERS = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9"),
    **dict.fromkeys(("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"), "http://127.0.0.1:9"),
    **dict.fromkeys(("ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY"), "other"),
    "ANTHROPIC_CUSTOM_HEADERS": "x-secret: other",
    "GOOGLE_VERTEX_BASE_URL": "http://127.0.0.1:9",
    "GOOGLE_GENAI_USE_VERTEXAI": "true",
    "GOOGLE_GENAI_API_VERSION": "v0",
    "SSL_CERT_FILE": "/nowhere",
}
"""Variables that the providers' own libraries obey: addresses, headers, proxies, services."""


@every_provider
def test_rows_are_labeled_whatever_the_environment_says(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request each after the look-up; provider, mode, model and tokens are recorded."""
    for variable, value in OTHERS.items():
        monkeypatch.setenv(variable, value)
    with NativeProvider(FORMS[name]) as server:
        outcomes = label(server, name, 20)
    assert reasons(outcomes) == ["label"] * 20
    assert (len(server.calls), len(server.requests)) == (20, 20 + LOOKED_UP[name])
    assert "other" not in str([dict(call.headers) for call in server.native])
    first = outcomes[0]
    assert isinstance(first, LabelRecord)
    assert (first.signature.judge, first.signature.model) == (name, "m")
    assert first.signature.sampling["output_mode"] == "tools"
    served = None if name == "bedrock" else MODEL  # its answers name none
    assert (first.reply.served_model, first.normalised) == (served, {})
    counts = {"prompt_tokens": 10_000, "completion_tokens": 10, "cached_tokens": 40}
    assert first.reply.usage == Usage(**counts)


@every_provider
@pytest.mark.parametrize("mode", ["tools", "prompt"])
def test_the_published_schema_is_sent_byte_for_byte(name: str, mode: str) -> None:
    """As a tool's, or where the model reads it; a complete store then needs no server."""
    store, schema = MemoryStore(), load_schema("label-trace/v1").compact
    asked: dict[str, Any] = {"judge": {"output_mode": mode}, "store": store}
    with NativeProvider(FORMS[name]) as server:
        label(server, name, 1, **asked)
    (call,) = server.native
    sent = schema if mode == "tools" else json.dumps(FRAME + schema, ensure_ascii=False)[1:-1]
    assert sent in call.raw.decode()
    assert reasons(label(server, name, 1, **asked)) == ["label"]


KINDS = [
    *("429", "500", "503", "reset", "close", "short", "html", "bad-json", "deep-json"),
    *("truncated", "refusal", "malformed", "unknown-key", "missing-sentence", "twice-name"),
    *("no-choices", "no-message", "json-list", "json-error", "drift", "no-usage", "empty"),
]


@cache
def behind_openai() -> tuple[list[str], Counter[str]]:
    """How rows end that meet these faults, and what was paid for each."""
    with Provider(faulty(0.4, 3, KINDS), modes=["tools"]) as server:
        given = {"output_mode": "tools", "max_output_tokens": 900}
        return reasons(label(server, "openai", 100, judge=given)), server.paid


@every_provider
def test_faults_end_as_they_do_behind_openai(name: str) -> None:
    """Retries, re-asks and doubled caps are the same code; a refusal may have another name."""
    plain, paid = behind_openai()
    with NativeProvider(FORMS[name], faulty(0.4, 3, KINDS)) as server:
        ends = reasons(label(server, name, 100, judge={"max_output_tokens": 900}))
    names = ("content_filter", "refusal")
    renamed = dict([names if name == "anthropic" else names[::-1]])
    assert [renamed.get(end, end) for end in plain] == ends
    assert paid == server.paid
    assert len(set(plain)) > 1


@every_provider
def test_a_budget_is_kept_by_the_providers_books(name: str) -> None:
    """What no longer fits is not asked, although each third answer is charged and lost."""
    script = charged_then("reset")
    with NativeProvider(FORMS[name], script, count_tokens=True) as server:
        outcomes = label(server, name, 100, judge=BOUNDED, budget=BUDGET)
    assert 0 < books(server) <= BUDGET
    assert {"budget", "label"} <= {*reasons(outcomes)}


@every_provider
def test_the_recipe_of_the_page_labels(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, labeler_command: Command
) -> None:
    """With the key in the variable that it names, and the server of the test."""
    monkeypatch.setenv(PROVIDERS[name].key_variables[0], KEY)
    row_file(tmp_path, rows(2))
    recipe = re.search(rf"\nlabeler (label .*--judge {name}:.*)\n", PAGE)
    assert recipe, name
    with NativeProvider(FORMS[name]) as server:
        asked = recipe[1].replace("MODEL", "m").split()
        code, _, err = labeler_command(*asked, "--base-url", server.url)
    assert (code, len(server.paid)) == (0, 2), err


# What goes wrong


@every_provider
def test_a_wrong_key_ends_the_run_after_few_requests(name: str) -> None:
    """The look-up shows it, else the eight records that go first."""
    with (
        NativeProvider(FORMS[name]) as server,
        pytest.raises(FatalJudgeError, match="after 1 request: the API key was not accepted"),
    ):
        label(server, name, 100, judge={"api_key": "sk-another-0123456789"})
    assert server.calls == []
    assert len(server.requests) <= (LOOKED_UP[name] or 8)


@every_provider
def test_a_key_that_expires_is_fetched_again(name: str) -> None:
    """Once, after the status and the words of the provider."""
    keys = iter([KEY, KEY + "-2"])

    def taken(call: Call) -> str:
        return KEY + "-2" if call.number > 10 else KEY

    with NativeProvider(FORMS[name], key=taken) as server:
        outcomes = label(server, name, 20, judge={"api_key": lambda: next(keys)})
    assert reasons(outcomes) == ["label"] * 20


@every_provider
def test_a_refused_tool_changes_the_mode_before_the_first_label(name: str) -> None:
    """With one notice; labels have the mode in their key."""
    watch = Watch()
    with NativeProvider(FORMS[name], tools=False) as server:
        outcomes = label(server, name, 20, on_event=watch)
    modes = {o.signature.sampling["output_mode"] for o in outcomes if isinstance(o, LabelRecord)}
    assert (len(outcomes), modes) == (20, {"prompt"})
    assert [text for text in watch.notices if "does not accept output mode tools" in text]


@every_provider
def test_logs_hold_neither_key_nor_documents(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """With everybody's logging on, and a server that repeats the key."""
    caplog.set_level(logging.DEBUG)
    echo = error(400, message=f"you sent {KEY}", headers={"x-echo": KEY})
    with NativeProvider(FORMS[name], [echo]) as server:
        label(server, name, 3)
    assert len(server.calls) == 3
    assert KEY not in caplog.text
    assert "Chairs are made of wood" not in caplog.text


# What is known before the run


@every_provider
@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"output_mode": "strict"}, "output_mode is one of auto, tools, prompt"),
        ({"cap_field": "max_tokens"}, "takes no cap_field"),
        ({"organization": "o"}, "takes no organization"),
        ({"reasoning_effort": "low"}, "takes no reasoning_effort"),
        ({"extra_body": {"system": "x", "contents": []}}, "sets contents, system"),
        ({"extra_body": {"inferenceConfig": {}, "n": 2}}, "sets inferenceConfig, n,"),
        ({"extra_body": {"generationConfig": {"candidateCount": 2}}}, "sets candidateCount,"),
        ({"extra_body": {"generation_config": {}}}, "sets generation_config,"),
        ({"extra_body": {"generationConfig": None}}, "generationConfig must be a JSON object"),
        ({"extra_body": {"generationConfig": [1]}}, "generationConfig must be a JSON object"),
    ],
)
def test_what_a_provider_cannot_do_is_wrong_use(
    name: str, setting: dict[str, Any], words: str
) -> None:
    """Before anything is sent."""
    with pytest.raises(UsageError, match=words):
        JUDGES[name]("m", api_key=KEY, **setting)


@every_provider
def test_probabilities_and_batches_are_wrong_use(name: str, tmp_path: Path) -> None:
    """As the page says."""
    judge, batches = JUDGES[name]("m", api_key=KEY), labeler.OpenAIBatches(api_key=KEY)
    with pytest.raises(UsageError, match="takes no logprobs"):
        labeler.score(rows(1), judge=judge, criteria="rubric_faithfulness", logprobs=True)
    with pytest.raises(UsageError, match="cannot be asked in batches"):
        labeler.submit_batch(rows(1), judge=judge, batches=batches, store=tmp_path)


@every_provider
def test_an_odd_answer_of_the_look_up_is_no_fault(name: str) -> None:
    """The records are asked for all the same; an address may end with the API's version."""
    version = {"anthropic": "/v1", "gemini": "/v1beta/", "bedrock": "/"}[name]
    for answer in (b"5", b"[]", b"null", b'"x"', b"{}", b'{"name": 5}'):
        with NativeProvider(FORMS[name], at={"GET /v1/models/{id}": [body(answer)]}) as server:
            found = label(server, name, 2, judge={"base_url": server.url + version})
        assert reasons(found) == ["label"] * 2


# Headers and answers of one provider


CALLS: dict[str, dict[str, Any]] = {
    "anthropic": {"content": [{"type": "tool_use", "input": {"a": 1}}]},
    "bedrock": {"output": {"message": {"content": [{"toolUse": {"input": {"a": 1}}}]}}},
    "gemini": {"candidates": [{"content": {"parts": [{"functionCall": {"args": {"a": 1}}}]}}]},
}
"""Answers that call the tool."""


def read_of(name: str, answer: dict[str, Any], end: int | None = None) -> Completion:
    """The reading of an answer, up to a byte."""
    kind: Any = JUDGES[name]
    read: Completion = kind.form.read(json.dumps(answer).encode()[:end], None)
    return read


@every_provider
def test_an_answer_that_breaks_off_is_damaged(name: str) -> None:
    """It was most likely paid for, so it is asked for once more only.

    An error of status 200 is one, named or not; it may pass.
    """
    assert read_of(name, CALLS[name], -3).error == ObservedError("garbled")
    for stated in ({"error": {"message": "Busy"}}, {"message": "Busy"}):
        assert read_of(name, stated).error == ObservedError("status", status=500, message="Busy")


@pytest.mark.parametrize(
    ("finish", "kind"), [("STOP", None), ("MALFORMED_FUNCTION_CALL", "slipped")]
)
def test_an_answer_of_gemini_without_parts_is_a_broken_one(finish: str, kind: str | None) -> None:
    """It is paid for, so it is not a failure of the server, which would be asked again often."""
    answer = {"candidates": [{"content": {"role": "model"}, "finishReason": finish}]}
    read = read_of("gemini", answer)
    assert (read.content, read.error and read.error.kind) == ("", kind)


def test_a_model_of_bedrock_may_be_an_arn() -> None:
    """It is one part of the path; the run names the host that gets the documents."""
    arn, watch = "arn:aws:bedrock:eu-central-1:1:inference-profile/eu.m-v1:0", Watch()
    with NativeProvider(FORMS["bedrock"]) as server:
        judge = labeler.BedrockJudge(arn, api_key=KEY, base_url=server.url)
        outcomes = [*labeler.label(rows(1), judge=judge, store=MemoryStore(), on_event=watch)]
    assert reasons(outcomes) == ["label"]
    assert server.calls[0].body["model"] == arn
    assert watch.notices == [f"model {arn!r} is asked at 127.0.0.1:{server.port}"]


@pytest.mark.parametrize(
    "words",
    [
        "You invoked an unsupported model or your request did not allow prompt caching.",
        "Malformed input request: #/system/1: extraneous key [cachePoint] is not permitted",
    ],
)
def test_a_model_of_bedrock_that_caches_nothing_is_asked_without_marks(words: str) -> None:
    """From the first refusal on, with one notice."""
    watch = Watch()
    with NativeProvider(FORMS["bedrock"], [error(403, message=words)]) as server:
        outcomes = label(server, "bedrock", 3, on_event=watch, concurrency=1)
    assert reasons(outcomes) == ["label"] * 3
    marked = ["cachePoint" in call.raw.decode() for call in server.native]
    assert marked == [True, False, False, False]
    assert len([text for text in watch.notices if "prompt caching" in text]) == 1


def test_limits_of_anthropic_are_read() -> None:
    """Its moment of a reset becomes seconds."""
    moment = datetime.now(UTC) + timedelta(seconds=30)
    headers = {
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "49",
        "anthropic-ratelimit-requests-reset": moment.isoformat().replace("+00:00", "Z"),
        "anthropic-ratelimit-tokens-reset": "soon",
    }
    found = quota_of(limits_of(headers), "requests")
    assert found is not None
    assert (found.limit, found.remaining) == (50, 49)
    assert 25 < found.reset <= 30
    assert quota_of(limits_of(headers), "tokens") is None
