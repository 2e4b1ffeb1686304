"""Output modes: how the schema is sent, and what is made of an answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler.errors import FatalJudgeError
from labeler.judges.openai.reading import find_object
from labeler.judges.openai.request import OpenAISpec, spec_of
from labeler.judges.pricing import given_price
from labeler.judges.prompting import load_prompt
from labeler.judges.task import FRAME, FRAME_VERSION, MODES, Task, mode_of
from labeler.labeling.progress import RunEvent
from labeler.labels.record import LabelRecord
from labeler.labels.signature import load_schema
from labeler.plugins.scores.api import iter_scores
from labeler.store import MemoryStore
from support import samples
from support.scored import criterion
from support.watching import Watch
from wire.behaviors import Behavior, answers, error, says, says_of
from wire.provider import Call, Provider, changes, completes, label_for
from wire.runs import brief, in_a_batch, judge_of, reasons, records, rows, run

OTHERS = MODES[1:]


def asked(mode: str, **settings: Any) -> tuple[OpenAISpec, Task]:
    """A task in a mode, and the settings that it was made with."""
    spec = spec_of("model-1", {"output_mode": mode, **settings})
    return spec, samples.request(spec=spec)


# What is sent


def test_every_mode_is_a_question_of_its_own() -> None:
    """The key has the mode, and the version of the words around a schema that the model reads."""
    assert len({asked(mode)[1].key for mode in MODES}) == len(MODES)
    sampling = {mode: asked(mode)[0].sampling() for mode in MODES}
    assert [sampling[mode].get("output_mode") for mode in MODES] == [None, *OTHERS]
    framed = [mode for mode in MODES if "schema_frame" in sampling[mode]]
    assert framed == ["json", "prompt"]
    assert sampling["json"]["schema_frame"] == FRAME_VERSION == "schema-frame/1"
    # Where this fails on purpose, count FRAME_VERSION up.
    assert hashlib.sha256(FRAME.encode()).hexdigest()[:16] == "28460a785c37e0ed"


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_sends_the_published_schema(mode: str) -> None:
    """The same bytes wherever they stand, once; and nothing else that the mode does not need."""
    with Provider(modes=MODES) as provider:
        (outcome,) = run(provider, rows(1), judge={"output_mode": mode})
    (call,) = provider.calls
    assert isinstance(outcome, LabelRecord)
    assert (call.mode, call.schema_text) == (mode, load_schema("label-trace/v1").compact)
    extra = set(call.body) - {"model", "messages", "prompt_cache_key", "stream"}
    tools = {"tools", "tool_choice"}
    assert extra == {"tools": tools, "prompt": set()}.get(mode, {"response_format"})
    assert call.messages[0]["content"] == load_prompt("trace/v1").system
    assert (FRAME in call.messages[1]["content"]) == (mode in {"json", "prompt"})
    assert outcome.normalised == {}


@pytest.mark.parametrize("mode", OTHERS)
def test_a_reask_is_asked_in_the_same_mode(mode: str) -> None:
    """The answer is a text for the model, also that of a tool; the schema stays where it was."""
    with Provider(["unknown-key"], modes=MODES) as provider:
        outcomes = run(provider, rows(1), judge={"output_mode": mode})
    first, second = provider.calls
    assert (reasons(outcomes), second.mode) == (["label"], mode)
    assert second.schema_text == load_schema("label-trace/v1").compact
    assert second.messages[:2] == first.messages
    assert [message["role"] for message in second.messages[2:]] == ["assistant", "user"]
    assert json.loads(second.messages[2]["content"])["all_relevant_sentence_keys"] == ["0a", "9z"]


# What is read


LABEL = '{"a": "b } ``` c"}'
WRITTEN = {
    LABEL: (),
    f"\ufeff{LABEL}": ("bom",),
    f"{LABEL}{LABEL}": ("twice",),
    f"{LABEL}\n\n{LABEL}\n": ("twice",),
    f"```json\n{LABEL}\n```": ("fence",),
    f"```\n{LABEL}": ("fence",),
    f"Here it is:\n{LABEL}": ("preface",),
    f"Here it is:\n```json\n{LABEL}\n```\nI hope it helps.": ("fence", "preface", "postscript"),
    f"<think>Is {{0a}} it? }}</think>\n{LABEL}": ("think",),
    f"It is {{0a}}.\n</think>\n\n```json\n{LABEL}\n```": ("think", "fence"),
    f"<reasoning>Is {{0a}} it?</reasoning>{LABEL}": ("think",),
    f"[THINK]Is {{0a}} it?[/THINK]{LABEL}": ("think",),
}


@pytest.mark.parametrize("written", WRITTEN)
def test_the_object_is_found_in_what_models_write(written: str) -> None:
    """All that was cut off is named."""
    assert find_object(written) == (LABEL, WRITTEN[written])


@pytest.mark.parametrize(
    "written",
    [
        *(
            "",
            "No.",
            "}{",
            LABEL + LABEL.replace("a", "b", 1),
            "<think>I wonder {",
            f"{LABEL} or {{",
        ),
        '{"a": "</think> {"',
    ],
)
def test_what_holds_no_object_stays_as_it_is(written: str) -> None:
    """The reader of the schema rejects it, and the judge is asked again."""
    assert find_object(written) == (written, ())


@pytest.mark.parametrize("piece", ["{", "}", "```", "<think>", "</think>", '"\\', "\ufeff", " "])
def test_garbage_is_read_in_linear_time(piece: str) -> None:
    """4 MB of any of it come back whole: every search passes over the text once."""
    garbage = "x" + piece * (2**22 // len(piece))
    assert find_object(garbage) == (garbage, ())


def whose_message(change: Callable[[dict[str, Any]], object]) -> Behavior:
    """An answer with a changed message."""
    return changes(lambda value: change(value["choices"][0]["message"]))


def in_parts(message: dict[str, Any]) -> None:
    """Make the content a list."""
    text = message["content"]
    message["content"] = [{"type": "text", "text": one} for one in (text[:40], text[40:])]


def in_thoughts(message: dict[str, Any]) -> None:
    """Make the content a list that begins with a thought."""
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "{0a}?"}]}
    message["content"] = [thought, {"type": "text", "text": message["content"]}]


def as_text(message: dict[str, Any]) -> None:
    """Answer in the text although a tool was to be called."""
    message["content"] = message.pop("tool_calls")[0]["function"]["arguments"]


UNTIDY: dict[str, tuple[str, Behavior, dict[str, int]]] = {
    "fenced": ("json", says_of(lambda call: f"```json\n{json.dumps(label_for(call))}\n```"),
               {"fence": 1}),
    "thought": ("prompt", says_of(lambda call: f"<think>hm</think>{json.dumps(label_for(call))}"),
                {"think": 1}),
    "parts": ("schema", whose_message(in_parts), {"text_parts": 1}),
    "thoughts": ("json", whose_message(in_thoughts), {"text_parts": 1, "think": 1}),
    "no call": ("tools", whose_message(as_text), {"no_tool_call": 1}),
    "spelled": ("strict", says_of(
        lambda call: "Sure: " + json.dumps(label_for(call)).replace('"0a"', '"[0A]"', 1)),
        {"preface": 1, "spelling": 1}),
}  # fmt: skip


@pytest.mark.parametrize("kind", UNTIDY)
def test_repairs_are_counted_with_those_of_the_contract(kind: str) -> None:
    """In every mode; the label is the one that was meant, without another request."""
    mode, behavior, repairs = UNTIDY[kind]
    with Provider([behavior], modes=MODES) as provider:
        (outcome,) = run(provider, rows(1), judge={"output_mode": mode})
    assert isinstance(outcome, LabelRecord)
    assert (outcome.normalised, outcome.reply.attempts) == (repairs, 1)


def test_lenient_reading_accepts_no_other_label() -> None:
    """Duplicate names, other fields and broken rules are refused inside a fence, too."""
    spoiled = {"twice": '{"a": 1, "a": 1}', "open": "{}"}
    for text in spoiled.values():
        with Provider([says(f"```\n{text}\n```")] * 2) as provider:
            assert reasons(run(provider, rows(1))) == ["malformed"]
    fenced = answers(lambda label: label["all_relevant_sentence_keys"].append("9z"))
    with Provider([fenced] * 2) as provider:
        assert reasons(run(provider, rows(1))) == ["contract"]


# Where modes work


def test_scores_and_questions_are_asked_in_a_mode() -> None:
    """Steps and scores alike, each with its own schema; repairs are counted as those of labels."""
    events = list[RunEvent]()
    fenced = says_of(lambda call: f"```\n{json.dumps(label_for(call))}\n```")
    with Provider(["ok", fenced], modes=["tools"]) as provider:
        judge = judge_of(provider, sleep=brief, output_mode="tools")
        (found,) = iter_scores(
            rows(1),
            criteria=criterion(steps=None),
            judge=judge,
            store=MemoryStore(),
            on_event=events.append,
        )
    assert found.kind == "score"
    assert found.normalised == {"fence": 1}
    assert events[-1].counts.repairs == {"fence": 1}
    assert [call.body["tools"][0]["function"]["name"] for call in provider.calls] == [
        "steps_v1",
        "score_v1",
    ]


def test_a_batch_carries_the_mode_and_reads_as_leniently(tmp_path: Path) -> None:
    """Its lines are what an online run sends; the labels are found by one."""

    def fenced(call: Call) -> Behavior | None:
        text = json.dumps(label_for(call))
        return says(f"```json\n{text}\n```") if call.mode == "json" else None

    store, judge = tmp_path / "store", {"output_mode": "json"}
    with Provider(fenced, modes=["json"], batches=completes()) as provider:
        in_a_batch(provider, rows(2), store, judge=judge_of(provider, **judge))
        found = records(run(provider, rows(2), store=store, judge=judge))
        assert len(provider.calls) == 0
        assert [call.schema_text for call in provider.batch_lines] == [
            load_schema("label-trace/v1").compact
        ] * 2
    assert [record.normalised for record in found] == [{"fence": 1}] * 2


def test_an_estimate_counts_the_schema_in_every_mode() -> None:
    """It costs the same tokens, and the words around it; after the data no cache holds it."""
    strict, tools, prompt = (
        labeler.estimate(rows(2), model="m", output_mode=mode, store=MemoryStore()).prompt
        for mode in ("strict", "tools", "prompt")
    )
    assert tools == strict
    assert 0 < prompt.total - strict.total < 2 * 300
    assert prompt.same < strict.same


# The mode that a judge chooses


def accepting(*modes: str) -> Provider:
    """A server that accepts some output modes."""
    return Provider(modes=modes)


@pytest.mark.parametrize("mode", MODES)
def test_auto_finds_the_mode_that_the_server_accepts(mode: str, tmp_path: Path) -> None:
    """Few requests are refused, all rows have one mode, and each change is reported.

    A rerun asks nothing, however the mode is found; the server is off by then.
    """
    watch, store = Watch(), tmp_path / "store"
    with accepting(mode) as provider:
        outcomes = run(provider, rows(20), watch=watch, store=store)
    refused = [call.mode for call in provider.calls if call.mode != mode]
    before = MODES[: MODES.index(mode)]
    assert reasons(outcomes) == ["label"] * 20
    assert {r.signature.sampling.get("output_mode", "strict") for r in records(outcomes)} == {mode}
    assert len(provider.calls) == 20 + len(refused)
    assert (set(refused), len(refused) <= 8 + len(before)) == (set(before), True)
    assert [text.partition(":")[0] for text in watch.notices] == [
        f"the server does not accept output mode {one}" for one in before
    ]
    for found in ("auto", mode):
        assert run(provider, rows(20), store=store, judge={"output_mode": found}) == outcomes


def test_other_rows_are_asked_in_the_mode_of_the_store(tmp_path: Path) -> None:
    """Labels of other rows by the same judge decide; those of another judge do not."""
    store = tmp_path / "store"
    with accepting("tools") as provider:
        run(provider, rows(3), store=store, judge={"output_mode": "tools"})
    with accepting(*MODES) as provider:
        run(provider, rows(3, 50), store=store)
        other = judge_of(provider, sleep=brief)
        other.spec = other.spec.model_copy(update={"model": "other"})
        run(provider, rows(3, 90), store=store)
        list(labeler.iter_labels(rows(3), judge=other, store=store))
    assert [call.mode for call in provider.calls] == ["tools"] * 6 + ["strict"] * 3


def test_a_mode_that_has_labels_is_not_left(tmp_path: Path) -> None:
    """Rows in two modes would not be one configuration; the message names the option."""
    store = tmp_path / "store"
    with accepting("strict") as provider:
        run(provider, rows(3), store=store)
    with accepting("json") as provider, pytest.raises(FatalJudgeError, match="output_mode"):
        run(provider, rows(6), store=store)
    assert {call.mode for call in provider.calls} == {"strict"}


def test_a_server_that_changes_its_mind_keeps_its_mode() -> None:
    """After the first label of a run a refusal ends it, or the row."""
    refuses = error(400, message="response_format is not supported")
    with Provider(lambda call: refuses if "item 5?" in call.raw.decode() else None) as provider:
        outcomes = run(provider, rows(12), concurrency=1)
    assert reasons(outcomes) == [*["label"] * 5, "parameter", *["label"] * 6]
    assert {call.mode for call in provider.calls} == {"strict"}


def strict_for_small(call: Call) -> Behavior | None:
    """Refuses a strict schema about a response."""
    refused = call.mode == "strict" and "RESPONSE" in call.data
    return error(400, message="response_format is not supported") if refused else None


def test_each_schema_has_a_mode_of_its_own(tmp_path: Path) -> None:
    """One that is taken for retrievals need not be for responses; a rerun asks nothing."""
    options: dict[str, Any] = {"store": tmp_path / "store", "relevance": "blind"}
    with Provider(strict_for_small, modes=MODES) as provider:
        first = run(provider, rows(9), concurrency=2, **options)
        more = run(provider, rows(3, 20), concurrency=2, **options)
    found = records(first) + records(more)
    assert (len(found), {mode_of(one.signature) for one in found}) == (12, {"schema"})
    assert {mode_of(one.retrieval.signature) for one in found if one.retrieval} == {"strict"}
    assert len(provider.calls) - 24 in {1, 2}
    assert run(provider, rows(9), **options) == first


def test_responses_are_asked_in_the_mode_in_which_retrievals_were() -> None:
    """Nothing more is refused."""
    with accepting("json") as provider:
        found = run(provider, rows(9), relevance="blind", concurrency=1)
    assert reasons(found) == ["label"] * 9
    assert ["RESPONSE" in call.data for call in provider.calls if call.mode != "json"] == [
        False
    ] * 3


def test_a_refusal_that_quotes_the_row_changes_nothing() -> None:
    """A document can name a format as well."""
    odd = {**rows(1)[0], "documents": ["Set response_format to json_schema."]}

    def script(call: Call) -> Behavior | None:
        quoted = "Set response_format to json_schema." in call.raw.decode()
        return error(400, message="bad: Set response_format to json_schema.") if quoted else None

    with Provider(script, modes=MODES) as provider:
        outcomes = run(provider, [odd, *rows(4, 1)], concurrency=1)
    assert reasons(outcomes) == ["parameter", *["label"] * 4]
    assert {call.mode for call in provider.calls} == {"strict"}


def test_a_budget_does_not_pay_for_refusals() -> None:
    """Requests that were refused, or not sent at all, cost nothing."""
    priced = {"price": given_price("1,4"), "max_output_tokens": 100}
    spent = []
    for mode in ("strict", "prompt"):
        watch = Watch()
        with accepting(mode) as provider:
            outcomes = run(provider, rows(20), watch=watch, judge=priced, budget=1)
        assert reasons(outcomes) == ["label"] * 20
        spent.append(watch.spent)
    assert spent[0] == spent[1] > 0


def test_votes_follow_the_mode(tmp_path: Path) -> None:
    """A rerun finds all that a run bought whose mode changed under way."""
    with accepting("json") as provider:
        first = run(provider, rows(6), store=tmp_path, repeat=3)
        bought = sum(call.mode == "json" for call in provider.calls)
    again = run(provider, rows(6), store=tmp_path, repeat=3)
    assert reasons(first) == ["label"] * 6
    assert (again, bought > 6) == (first, True)


def test_scores_take_the_mode_of_stored_scores(tmp_path: Path) -> None:
    """Steps and scores of a run in a mode are found by another without one."""
    store = tmp_path / "store"

    def score(provider: Provider) -> list[Any]:
        by, asked_for = judge_of(provider, sleep=brief), criterion(steps=None)
        return list(iter_scores(rows(4), criteria=asked_for, judge=by, store=store))

    with accepting("tools") as provider:
        first = score(provider)
    assert [one.kind for one in first] == ["score"] * 4
    assert score(provider) == first


def test_batches_and_estimates_take_the_mode_of_the_store(tmp_path: Path) -> None:
    """Neither asks again for what is there."""
    store = tmp_path / "store"
    with Provider(modes=["tools"], batches=completes()) as provider:
        run(provider, rows(3), store=store, judge={"output_mode": "tools"})
        counted = labeler.estimate(rows(5), model="m", base_url=provider.url, store=store)
        sent = in_a_batch(provider, rows(5), store)
    assert (sent.lines, sent.left_out) == (2, {"stored": 3})
    assert (counted.rows.stored, counted.rows.asked) == (3, 2)


def test_a_rerun_in_another_mode_copies_no_label(tmp_path: Path) -> None:
    """Not even of rows that were split after the server had refused the first mode."""
    given, target = tmp_path / "rows.jsonl", tmp_path / "labels.jsonl"
    given.write_text("".join(json.dumps(row) + "\n" for row in rows(9)), encoding="utf-8")
    for modes in (("json",), ("strict", "json")):
        with Provider(modes=modes) as provider:
            judge = judge_of(provider, output_mode="strict" if len(modes) > 1 else "auto")
            labeler.label(given, judge=judge, store=tmp_path, output=target, concurrency=1)
    assert {call.mode for call in provider.calls} == {"strict"}
    assert len(provider.calls) == 9
