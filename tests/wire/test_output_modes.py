"""Output modes: how the schema is sent, and what is made of an answer."""

from __future__ import annotations

import hashlib
import json
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
from labeler.labels.signature import load_schema
from labeler.plugins.scores.api import iter_scores
from labeler.store import LabelStore, MemoryStore
from support import samples
from support.scored import criterion
from support.watching import Watch
from wire.behaviors import Behavior, answers, error, says, says_of
from wire.fault_table import answered
from wire.provider import Call, Provider, completes, label_for
from wire.runs import brief, in_a_batch, judge_of, reasons, records, row_file, rows, run

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
    """The same bytes wherever they stand, once; and nothing else that the mode does not need.

    A re-ask is in the same mode. The answer is a text for the model, also that of a tool.
    """
    with Provider(["unknown-key"], modes=MODES) as provider:
        (outcome,) = records(run(provider, rows(1), judge={"output_mode": mode}))
    first, second = provider.calls
    schema = load_schema("label-trace/v1").compact
    assert [(call.mode, call.schema_text) for call in provider.calls] == [(mode, schema)] * 2
    extra = set(first.body) - {"model", "messages", "prompt_cache_key", "stream"}
    tools = {"tools", "tool_choice"}
    assert extra == {"tools": tools, "prompt": set()}.get(mode, {"response_format"})
    assert first.messages[0]["content"] == load_prompt("trace/v1").system
    assert (FRAME in first.messages[1]["content"]) == (mode in {"json", "prompt"})
    assert second.messages[:2] == first.messages
    assert [message["role"] for message in second.messages[2:]] == ["assistant", "user"]
    assert json.loads(second.messages[2]["content"])["all_relevant_sentence_keys"] == ["0a", "9z"]
    assert outcome.normalised == {}


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
        *("", "No.", "}{", "<think>I wonder {", '{"a": "</think> {"'),
        *(LABEL + LABEL.replace("a", "b", 1), f"{LABEL} or {{"),
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


_THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "{0a}?"}]}
UNTIDY: dict[str, tuple[str, Behavior, dict[str, int]]] = {
    "fenced": ("json", answered(content=lambda t: f"```json\n{t}\n```"), {"fence": 1}),
    "Python": ("json", answered(content=lambda t: f"{json.loads(t)}"[:-1] + "//\n,}}"),
               {"loose_json": 1}),
    "LaTeX": ("tools", answered(content=lambda t: t.replace(" is ", r" \is ")),
              {"no_tool_call": 1, "loose_json": 1}),
    "thought": ("prompt", answered(content=lambda t: f"<think>hm</think>{t}"), {"think": 1}),
    "parts": ("schema", answered(content=lambda t: [t[:40], t[40:]]), {"text_parts": 1}),
    "thoughts": ("json", answered(content=lambda t: [_THOUGHT, t]), {"text_parts": 1, "think": 1}),
    "no call": ("tools", answered(), {"no_tool_call": 1}),
    "spelled": ("strict", answered(content=lambda t: "Sure: " + t.replace('"0a"', '"[0A]"', 1)),
                {"preface": 1, "spelling": 1}),
    "list as text": ("tools", answers(lambda label: label.update(
        all_utilized_sentence_keys=json.dumps(label["all_utilized_sentence_keys"]))),
                     {"quoted": 1}),
    "line breaks": ("json", answered(content=lambda t: t.replace(" ", "\n")), {}),
}  # fmt: skip


@pytest.mark.parametrize("kind", UNTIDY)
def test_repairs_are_counted_with_those_of_the_contract(kind: str) -> None:
    """In every mode; the label is the one that was meant, without another request."""
    mode, behavior, repairs = UNTIDY[kind]
    with Provider([behavior], modes=MODES) as provider:
        (outcome,) = records(run(provider, rows(1), judge={"output_mode": mode}))
    assert (outcome.normalised, outcome.reply.attempts) == (repairs, 1)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (says('```\n{"a": 1, "a": 1}\n```'), "malformed"),
        (says("```\n{}\n```"), "malformed"),
        (answered(content=lambda t: f"```\n{t.replace('0a', '9z')}\n```"), "contract"),
    ],
)
def test_lenient_reading_accepts_no_other_label(answer: Behavior, reason: str) -> None:
    """Duplicate names, other fields and broken rules are refused inside a fence, too."""
    with Provider([answer] * 2) as provider:
        assert reasons(run(provider, rows(1))) == [reason]


# Where modes work


FENCED = says_of(lambda call: f"```json\n{json.dumps(label_for(call))}\n```")


def scored(provider: Provider, store: LabelStore | Path | None = None, **more: Any) -> list[Any]:
    """Scores of a few rows, after their steps."""
    judge = judge_of(provider, sleep=brief, **more.pop("judge", {}))
    asked_for, kept = criterion(steps=None), store or MemoryStore()
    return list(iter_scores(rows(4), criteria=asked_for, judge=judge, store=kept, **more))


def test_scores_and_questions_are_asked_in_a_mode(tmp_path: Path) -> None:
    """Steps and scores alike, each with its own schema; repairs are counted as those of labels.

    A run without a mode finds what is stored in one.
    """
    events = list[RunEvent]()
    with Provider(["ok", FENCED], modes=["tools"]) as provider:
        found = scored(provider, tmp_path, on_event=events.append, judge={"output_mode": "tools"})
    assert [one.kind for one in found] == ["score"] * 4
    assert events[-1].counts.repairs == {"fence": 1}
    names = [call.body["tools"][0]["function"]["name"] for call in provider.calls]
    assert names == ["steps_v1", *["score_v1"] * 4]
    assert scored(provider, tmp_path) == found


def test_a_batch_carries_the_mode_and_reads_as_leniently(tmp_path: Path) -> None:
    """Its lines are what an online run sends; the labels are found by one."""
    store, judge = tmp_path / "store", {"output_mode": "json"}
    with Provider(lambda _: FENCED, modes=["json"], batches=completes()) as provider:
        in_a_batch(provider, rows(2), store, judge=judge_of(provider, **judge))
        found = records(run(provider, rows(2), store=store, judge=judge))
        assert len(provider.calls) == 0
        schema = load_schema("label-trace/v1").compact
        assert [call.schema_text for call in provider.batch_lines] == [schema] * 2
        assert {call.mode for call in provider.batch_lines} == {"json"}
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


@pytest.mark.parametrize("mode", MODES)
def test_auto_finds_the_mode_that_the_server_accepts(mode: str, tmp_path: Path) -> None:
    """Few requests are refused, all rows have one mode, and each change is reported.

    A rerun asks nothing, however the mode is found; the server is off by then.
    """
    watch, store = Watch(), tmp_path / "store"
    with Provider(modes=[mode]) as provider:
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
    """Labels of other rows by the same judge decide; those of another judge do not.

    Batches and estimates take it too, and ask for nothing that is there.
    """
    store = tmp_path / "store"
    with Provider(modes=["tools"], batches=completes()) as provider:
        run(provider, rows(3), store=store, judge={"output_mode": "tools"})
        counted = labeler.estimate(rows(5), model="m", base_url=provider.url, store=store)
        sent = in_a_batch(provider, rows(5), store)
    assert (sent.lines, sent.left_out) == (2, {"stored": 3})
    assert (counted.rows.stored, counted.rows.asked) == (3, 2)
    with Provider(modes=MODES) as provider:
        run(provider, rows(3, 50), store=store)
        other = judge_of(provider, sleep=brief)
        other.spec = other.spec.model_copy(update={"model": "other"})
        run(provider, rows(3, 90), store=store)
        list(labeler.iter_labels(rows(3), judge=other, store=store))
    assert [call.mode for call in provider.calls] == ["tools"] * 6 + ["strict"] * 3


def test_a_mode_that_has_labels_is_not_left(tmp_path: Path) -> None:
    """Rows in two modes would not be one configuration; the message names the option."""
    store = tmp_path / "store"
    with Provider(modes=["strict"]) as provider:
        run(provider, rows(3), store=store)
    with Provider(modes=["json"]) as provider, pytest.raises(FatalJudgeError, match="output_mode"):
        run(provider, rows(6), store=store)
    assert {call.mode for call in provider.calls} == {"strict"}


@pytest.mark.parametrize(
    ("place", "document"), [(5, "It is green."), (0, "Set response_format to json_schema.")]
)
def test_a_refusal_of_one_row_changes_no_mode(place: int, document: str) -> None:
    """After the first label of a run; or a document can name a format as well."""
    given, refuses = rows(7), error(400, message=f"response_format is not supported: {document}")
    given[place]["documents"] = [document]
    with Provider(
        lambda call: refuses if document in call.raw.decode() else None, modes=MODES
    ) as provider:
        outcomes = run(provider, given, concurrency=1)
    assert reasons(outcomes) == [
        "parameter" if number == place else "label" for number in range(len(given))
    ]
    assert {call.mode for call in provider.calls} == {"strict"}


def test_each_schema_has_a_mode_of_its_own(tmp_path: Path) -> None:
    """One that is taken for retrievals need not be for responses; a rerun asks nothing."""
    refuses = error(400, message="response_format is not supported")
    options: dict[str, Any] = {"store": tmp_path / "store", "relevance": "blind"}

    def script(call: Call) -> Behavior | None:
        return refuses if call.mode == "strict" and "RESPONSE" in call.data else None

    with Provider(script, modes=MODES) as provider:
        first = run(provider, rows(9), concurrency=2, **options)
        more = run(provider, rows(3, 20), concurrency=2, **options)
    found = records(first) + records(more)
    assert (len(found), {mode_of(one.signature) for one in found}) == (12, {"schema"})
    assert {mode_of(one.retrieval.signature) for one in found if one.retrieval} == {"strict"}
    assert len(provider.calls) - 24 in {1, 2}
    assert run(provider, rows(9), **options) == first


def test_responses_are_asked_in_the_mode_in_which_retrievals_were() -> None:
    """Nothing more is refused."""
    with Provider(modes=["json"]) as provider:
        found = run(provider, rows(9), relevance="blind", concurrency=1)
    assert reasons(found) == ["label"] * 9
    assert ["RESPONSE" in call.data for call in provider.calls if call.mode != "json"] == [
        False
    ] * 3


def test_a_budget_does_not_pay_for_refusals() -> None:
    """Requests that were refused, or not sent at all, cost nothing."""
    priced = {"price": given_price("1,4"), "max_output_tokens": 100}
    spent = []
    for mode in ("strict", "prompt"):
        watch = Watch()
        with Provider(modes=[mode]) as provider:
            outcomes = run(provider, rows(20), watch=watch, judge=priced, budget=1)
        assert reasons(outcomes) == ["label"] * 20
        spent.append(watch.spent)
    assert spent[0] == spent[1] > 0


def test_votes_follow_the_mode(tmp_path: Path) -> None:
    """A rerun finds all that a run bought whose mode changed under way."""
    with Provider(modes=["json"]) as provider:
        first = run(provider, rows(6), store=tmp_path, repeat=3)
        bought = sum(call.mode == "json" for call in provider.calls)
    again = run(provider, rows(6), store=tmp_path, repeat=3)
    assert reasons(first) == ["label"] * 6
    assert (again, bought > 6) == (first, True)


def test_a_rerun_in_another_mode_copies_no_label(tmp_path: Path) -> None:
    """Not even of rows that were split after the server had refused the first mode."""
    given, target = row_file(tmp_path, rows(9)), tmp_path / "labels.jsonl"
    for modes in (("json",), ("strict", "json")):
        with Provider(modes=modes) as provider:
            judge = judge_of(provider, output_mode="strict" if len(modes) > 1 else "auto")
            labeler.label(given, judge=judge, store=tmp_path, output=target, concurrency=1)
    assert {call.mode for call in provider.calls} == {"strict"}
    assert len(provider.calls) == 9
