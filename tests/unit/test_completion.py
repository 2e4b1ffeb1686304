"""Reading completions, where any part may be missing, and the words of a re-ask."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from labeler.calculators import select_metrics
from labeler.calculators.registry import HEADLINES, headline_metrics
from labeler.judges.openai.address import MaskedBytes, remember_key
from labeler.judges.openai.attempts import NOT_A_LABEL, REASK_VERSION, brief, complaint, key_ranges
from labeler.judges.openai.completion import counts_of, parse_completion, read_completion
from labeler.judges.openai.reading import json_of
from labeler.judges.task import Token
from labeler.labels.answers import ClaimsLabelingOutput, GPTLabelingOutput, ReferenceLabelingOutput
from labeler.labels.contract import LONGEST_TEXT, Violation
from labeler.labels.record import ReplyFacts
from support import samples
from wire.behaviors import answers, changes, completion
from wire.provider import Behavior, Provider
from wire.runs import KEY, reasons, rows, run

FIELDS = (
    "type", "text", "content", "value", "function", "arguments", "index", "message", "error",
    "token", "logprob", "bytes", "top_logprobs", "code", "metadata", "raw", "details", "tool_calls",
    "function_call", "retryDelay", "status", "param", "reasoning_content", "cached_tokens",
)  # fmt: skip

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(FIELDS) | st.text(), inner, max_size=4)
    ),
    max_leaves=8,
)


PLACES = (
    "choices", "choices.0", "choices.0.message", "choices.0.message.content",
    "choices.0.message.refusal", "choices.0.message.tool_calls", "choices.0.message.function_call",
    "choices.0.finish_reason", "choices.0.logprobs", "choices.0.logprobs.content",
    "choices.0.error", "error", "base_resp", "usage", "usage.prompt_tokens",
    "usage.prompt_tokens_details", "model", "system_fingerprint",
)  # fmt: skip


def changed(place: str, value: object) -> dict[str, Any]:
    """A completion with another value in one place."""
    made = completion("{}")
    made["choices"][0]["logprobs"] = {"content": []}
    at: Any = made
    *steps, last = (int(step) if step.isdigit() else step for step in place.split("."))
    for step in steps:
        at = at[step]
    at[last] = value
    return made


@example("model", "m\ud800")
@given(st.sampled_from(PLACES), VALUES)
def test_a_completion_of_any_shape_is_read(place: str, value: object) -> None:
    """No value in any place raises, tokens are counted, and what is kept can be stored."""
    read = read_completion(changed(place, value))
    assert isinstance(read.content, str)
    assert ReplyFacts(served_model=read.model, usage=read.usage).model_dump_json()
    if not place.startswith("usage"):
        assert read.usage is not None


@example([{"message": "x"}, {"delta": {"content": "a"}}])
@given(st.lists(st.dictionaries(st.sampled_from(["delta", "message"]), VALUES), max_size=4))
def test_a_stream_of_any_pieces_is_read(pieces: list[dict[str, object]]) -> None:
    """Whatever stands where a message, or a piece of one or of a call, belongs."""
    lines = (json.dumps({"choices": [{"index": 0, **piece}]}) for piece in pieces)
    body = "".join(f"data: {line}\n\n" for line in lines)
    assert isinstance(parse_completion(body.encode()).content, str)


def test_a_stream_of_many_pieces_takes_no_longer_than_its_text() -> None:
    """A hostile server cannot stop all other requests by it."""
    piece = {"choices": [{"index": 0, "delta": {"content": "x" * 300}}]}
    started = time.process_time()
    assert json_of(f"data: {json.dumps(piece)}\n\n".encode() * 20_000)
    assert time.process_time() - started < 4


def test_the_words_of_an_error_have_a_limit() -> None:
    """Many patterns are looked for in them."""
    body = json.dumps({"error": {"message": "model " * 100_000}}).encode()
    error = parse_completion(body).error
    assert error is not None
    assert len(error.message) <= 100_000


TEXTS = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
OBJECT = {"content": {"a": 1}}
PARSED_CALL = {"tool_calls": [{"function": {"arguments": {"a": 1}}}]}

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "[2]"}}


@pytest.mark.parametrize(
    ("message", "content"),
    [
        ({"content": TEXTS}, "ab"),
        ({"content": None, "tool_calls": [CALL]}, "[2]"),
        ({"content": "text", "tool_calls": [CALL]}, "[2]"),
        ({"content": [*TEXTS, {"type": "image_url"}]}, ""),
        ({"content": [{"type": "text", "text": {"value": "a"}}, "b", {"text": "c"}]}, "abc"),
        ({"content": {"type": "output_text", "text": "a"}}, "a"),
        (OBJECT, '{"a": 1}'),
        ({"content": None, "tool_calls": [CALL, CALL]}, "[2]"),
        ({"content": None, "tool_calls": [CALL, {"function": {"arguments": '{"a": 1}'}}]}, ""),
        (PARSED_CALL, '{"a": 1}'),
        ({"content": None, "tool_calls": [CALL, {"function": {"arguments": "[2\n]"}}]}, "[2\n]"),
        ({"content": None, "tool_calls": [{"name": "f", "arguments": "[2]"}]}, "[2]"),
        ({"content": [{"type": "text", "content": "a"}, {"content": "b"}]}, "ab"),
        ({"content": None, "function_call": {"arguments": "[2]"}}, "[2]"),
        ({"content": "", "reasoning_content": 'I think. {"a": 1}'}, '{"a": 1}'),
        ({"content": None, "reasoning": 'Perhaps {"a": 1}, or {"a": 2}?'}, ""),
        *(({"content": odd}, "") for odd in (7, 1.5, True)),
        ({"content": [[]]}, ""),
        ({"content": [{"type": "text"}]}, ""),
        ({"content": [7]}, ""),
        ({"content": "text", "tool_calls": [{"function": {"arguments": "{}"}}]}, "text"),
        ({}, ""),
    ],
)
def test_an_answer_is_found_where_servers_put_it(message: dict[str, Any], content: str) -> None:
    """Parts are joined, equal calls are one; several answers are none."""
    read = read_completion({"choices": [{"message": message}]})
    assert (read.content, read.error) == (content, None)


@pytest.mark.parametrize("message", [OBJECT, PARSED_CALL])
def test_a_parsed_answer_that_was_cut_off_is_truncated(message: dict[str, Any]) -> None:
    """Its server has closed the object, which looks complete."""
    error = read_completion({"choices": [{"message": message, "finish_reason": "length"}]}).error
    assert error is not None
    assert error.kind == "truncated"


_OPENAI, _ANTHROPIC = ("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens")
_GEMINI = ("promptTokenCount", "candidatesTokenCount")
_CACHED = {"cache_read_input_tokens": 2, "cache_creation_input_tokens": 4}


@pytest.mark.parametrize(
    ("names", "counted", "usage"),
    [
        (_OPENAI, {"prompt_tokens_details": {"cached_tokens": 2}}, (3, 4, 2, 0)),
        (_OPENAI, {"prompt_tokens_details": None, "cached_tokens": 2}, (3, 4, 2, 0)),  # Moonshot
        (_OPENAI, {"prompt_cache_hit_tokens": 3, "prompt_cache_miss_tokens": 0}, (3, 4, 3, 0)),
        (_OPENAI, {"prompt_tokens_details": {"cached_tokens": True}}, (3, 4, 0, 0)),
        (_OPENAI, {"prompt_tokens": True}, None),
        (_OPENAI, {"prompt_tokens": -5}, None),
        (_OPENAI, {"completion_tokens": None}, None),
        (_OPENAI, {"prompt_tokens": 3.0, "completion_tokens": 9.0}, (3, 9, 0, 0)),
        (_OPENAI, {"total_tokens": 60}, (3, 57, 0, 0)),  # xAI: thoughts in the total alone
        (_OPENAI, {"total_tokens": 60, "cache_read_input_tokens": 30}, (33, 27, 30, 0)),
        (_OPENAI, {"prompt_tokens_details": {"cached_tokens": 30}}, (33, 4, 30, 0)),
        (_OPENAI, {"prompt_tokens_details": {"cache_creation_tokens": 2}}, (3, 4, 0, 2)),  # LiteLLM
        (_OPENAI, {"total_tokens": 2}, (3, 4, 0, 0)),
        (_ANTHROPIC, {}, (3, 4, 0, 0)),
        (_ANTHROPIC, {"input_tokens_details": {"cached_tokens": 2}}, (3, 4, 2, 0)),
        (_ANTHROPIC, _CACHED, (9, 4, 2, 4)),
        (("inputTokens", "outputTokens"), {"cacheReadInputTokens": 2}, (5, 4, 2, 0)),
        (_GEMINI, {"thoughtsTokenCount": 5}, (3, 9, 0, 0)),
        (_GEMINI, {"cachedContentTokenCount": 2}, (3, 4, 2, 0)),
    ],
)
def test_tokens_are_counted_where_servers_count_them(
    names: tuple[str, str], counted: dict[str, Any], usage: tuple[int, ...] | None
) -> None:
    """Prompt, answer, cached, written to the cache; a count of another type is none."""
    found, _ = counts_of(dict(zip(names, (3, 4), strict=True)) | counted)
    assert (found and tuple(found.model_dump().values())) == usage


def place(score: str, other: str, logprob: float = -0.5) -> dict[str, Any]:
    """A token of two that were likely, as a server lists it."""
    listed = [{"token": score, "logprob": -0.51}, {"token": other, "logprob": -1.0}]
    return {"token": score, "logprob": logprob, "bytes": [], "top_logprobs": listed}


_FOUR = Token(b"4", -0.5, ((b"5", -1.0),))


@pytest.mark.parametrize(
    ("logprobs", "tokens"),
    [
        ({"content": [place("4", "5")]}, (_FOUR,)),
        ({"content": [place("4", "5"), {"token": "}"}]}, ()),
        ({"content": [place("4", "5", math.nan)]}, ()),
        ({"content": [place("4", "5", 0.9)]}, ()),
    ],
)
def test_tokens_are_read_if_all_are_there(
    logprobs: dict[str, Any], tokens: tuple[Token, ...]
) -> None:
    """The chosen token is no alternative to itself; a place without a logarithm spoils all."""
    assert read_completion(changed("choices.0.logprobs", logprobs)).tokens == tokens


@pytest.mark.parametrize(
    ("text", "is_loop"),
    [
        ("x" * 300, True),
        ('{"explanation": "' + "and so on, " * 50, True),
        ("\n" * 5000, True),
        ("and so on, " * 9, False),
        (" ".join(map(str, range(2000))), False),
        ("", False),
    ],
)
def test_an_answer_that_repeats_itself_is_a_loop(text: str, *, is_loop: bool) -> None:
    """Ten times the same at its end, over at least 200 characters."""
    read = read_completion(completion(text))
    assert read.is_loop is is_loop


def test_an_endless_explanation_is_no_label() -> None:
    """It is malformed; one of the greatest length is a label."""

    def explained(length: int) -> Behavior:
        return answers(lambda label: label.update(relevance_explanation="word " * (length // 5)))

    for length, reason in ((LONGEST_TEXT, "label"), (LONGEST_TEXT + 5, "malformed")):
        with Provider([explained(length)] * 2) as provider:
            assert reasons(run(provider, rows(1))) == [reason]


def test_a_key_that_an_answer_repeats_is_masked() -> None:
    """In explanations, and in what the server says of itself."""

    def repeat(label: dict[str, Any]) -> None:
        label["relevance_explanation"] = f"The key is {KEY}."

    named = changes(lambda value: value.update(model=KEY, system_fingerprint=KEY))
    with Provider([answers(repeat), named]) as provider:
        outcomes = run(provider, rows(2), concurrency=1)
    written = "".join(outcome.model_dump_json() for outcome in outcomes)
    assert KEY not in written
    assert "The key is [key]." in written
    assert '"served_model":"[key]"' in written


@given(st.lists(st.binary(max_size=40)), st.integers(1, 30))
def test_a_key_is_masked_across_pieces(parts: list[bytes], size: int) -> None:
    """Wherever a stream is cut."""
    remember_key(KEY)
    whole = KEY.encode().join(parts)
    mask = MaskedBytes()
    found = b"".join(mask.add(whole[n : n + size]) for n in range(0, len(whole), size))
    assert found + mask.end() == b"[key]".join(parts)


@pytest.mark.parametrize(
    ("keys", "ranges"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a-b"),
        (["0a", "0b", "0c", "1a", "1b", "3a"], "0a-0c, 1a-1b, 3a"),
        (["1a", "0b", "0a", "0a"], "0a-0b, 1a"),
        (["0y", "0z", "0aa", "0ac"], "0y-0aa, 0ac"),
        (["9a", "10a", "ref.a", "ref.b", "a"], "9a, 10a, a, ref.a-ref.b"),
    ],
)
def test_keys_are_written_as_ranges(keys: list[str], ranges: str) -> None:
    """A range never crosses documents, and reading order is kept."""
    assert key_ranges(keys) == ranges


def test_a_complaint_stays_short_and_repeats_no_sentence() -> None:
    """Neither thousands of wrong keys nor a text in place of a key makes a long message."""
    many = tuple(f"9{'a' * n}" for n in range(1, 1000))
    found = [Violation(kind="unknown_key", field=f"f{n}", keys=many) for n in range(100)]
    text = complaint(found, samples.keyed_example())
    assert "and 979 more" in text
    assert "and 80 more" in text
    assert len(text) < 20_000
    found = [Violation(kind="unknown_key", field="f", keys=("9z", "Paris is nice."))]
    assert brief(found) == "unknown_key in f: '9z', a text"


def test_the_words_of_a_reask_belong_to_their_version() -> None:
    """Golden texts: if one changes, count REASK_VERSION up, and here too.

    Another wording may bring another label. The version is in the key of every label, so labels
    that were made with the old words are not taken for labels made with the new ones.
    """
    found = [
        Violation(
            kind="unknown_key", field="all_relevant_sentence_keys", keys=("9z", "Not a key.")
        ),
        Violation(kind="missing_response_sentence", field="response_sentence_key", keys=("b",)),
    ]
    assert {REASK_VERSION: [complaint(found, samples.keyed_example()), NOT_A_LABEL]} == {
        "reask/1": [
            (
                "That label broke the rules: unknown_key in all_relevant_sentence_keys: '9z', "
                "a text; missing_response_sentence in response_sentence_key: 'b'. "
                "Document sentence keys are 0a-0b, 1a. Response sentence keys, each judged exactly "
                "once, are a-b. Only supporting_sentence_keys may also hold "
                "supported_without_sentence, general, well_known_fact, numerical_reasoning; a "
                "decision has it exactly when fully_supported is true. "
                "Write the whole label again, as JSON alone."
            ),
            (
                "That was not a JSON object of the required schema. "
                "Write the whole label again, as JSON alone."
            ),
        ]
    }


OF_CLAIMS = (
    "Each response sentence has at least one entry in response_claims or stands in "
    "response_sentences_without_claims, never both. Among response_claims, entailment needs "
    "supporting_sentence_keys, and contradiction needs contradicting_sentence_keys. A sentence is "
    "fully_supported exactly when all its claims are entailment. "
)
OF_THE_REFERENCE = (
    "Reference sentence keys are ref.a-ref.b: each has at least one entry in reference_claims or "
    "stands in reference_sentences_without_claims, never both. In reference_claims, "
    "supporting_sentence_keys holds document sentence keys alone. "
)


@pytest.mark.parametrize(
    ("output", "rules"),
    [
        (GPTLabelingOutput, ""),
        (ClaimsLabelingOutput, OF_CLAIMS),
        (ReferenceLabelingOutput, OF_CLAIMS + OF_THE_REFERENCE),
    ],
)
def test_a_reask_for_claims_names_the_rules_for_claims(
    output: type[GPTLabelingOutput], rules: str
) -> None:
    """Golden texts too: they stand before the last sentence, and nothing else changes."""
    example = samples.keyed_example(reference=["Paris.", "It is up north."])
    found = [Violation(kind="claims_and_none", field="f", keys=("ref.a",))]
    plain = complaint(found, samples.keyed_example())
    last = "Write the whole label again, as JSON alone."
    assert REASK_VERSION == "reask/1"
    assert complaint(found, example, output) == plain.removesuffix(last) + rules + last


def test_the_richest_profile_decides_what_is_shown_first() -> None:
    """At most six metrics of it; the metrics themselves where none of them is among those."""
    assert [m.id for m in headline_metrics(select_metrics())] == [*HEADLINES["reference"]]
    few = select_metrics("relevance, answer_relevancy, citation_f1")
    assert [m.id for m in headline_metrics(few)] == ["answer_relevancy", "relevance"]
    assert [m.id for m in headline_metrics(select_metrics("citation_f1"))] == ["citation_f1"]
    assert max(map(len, HEADLINES.values())) == 6


@pytest.mark.parametrize(
    ("end", "kind"), [("data: [DONE]", None), ("data:[DONE]", None), ("", "garbled")]
)
def test_a_stream_ends_with_its_mark(end: str, kind: str | None) -> None:
    """The space after the name of a line is optional; a stream without the mark broke off."""
    chunk = json.dumps({"choices": [{"delta": {"content": '{"a":'}}]})
    error = parse_completion(f"data:{chunk}\n\n{end}\n\n".encode()).error
    assert (error and error.kind) == kind
