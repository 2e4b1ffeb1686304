"""Responses that say nothing, and thoughts that are no part of a response."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import labeler
from labeler.api import open_rows
from labeler.calculators import select_metrics
from labeler.calculators.tally import tally
from labeler.judges.task import JudgeReply, Task
from labeler.labels.answers import GPTLabelingOutput
from labeler.labels.contract import SUPPORT, USE, check_label
from labeler.labels.non_answers import HEADINGS, OPENERS, is_without_content, overrule
from labeler.labels.record import LabelRecord, ReplyFacts
from labeler.sentences.citations import code_spans, is_indented_code
from labeler.sentences.conversation import without_thoughts
from labeler.sentences.example import Example
from support.command import Command
from support.fakes import CountingJudge
from support.samples import keyed_example

NOTHING = (
    *("", " ", "\n\t", ".", ":", "!!!", "…", "—", "、。", "()", "```", "---", "| |", "**", "·"),
    *("\u200b", "\u00a0", "\ufeff", "\x00", "\ufffd", "\u3164", "\u2800", "\u0301", "\u202e\u202c"),
    "\U000e0041\U000e0042",
    *("Thought process:", "thought process", "**Thought process:**", "Thought process: :"),
    *(
        "Solution",
        "Solution:",
        "SOLUTION.",
        "\uff33\uff2f\uff2c\uff35\uff34\uff29\uff2f\uff2e",
        "# Solution",
        "So\u200blution",
    ),
    *("解", "かいせつ", "解\uff1a", "「解答」", "Lösung:", "Respuesta:", "الحل", "풀이", "उत्तर:"),
    *("Let's solve this problem step by step.", "Let\u2019s  solve this problem\nstep by step"),
    *("Answer:", "Answer\uff1a", "**Answer**:", "Step 1:"),
)
"""Nothing but what has no content, or exactly an opener."""

SOMETHING = (
    *("42", "0", "-1", "1984", "½", "①", "π", "A", "a", "b)", "(C)", "No.", "Yes", "OK", "true"),
    *("はい", "か", "々", "是", "نعم", "हाँ", "네", "O₂", "C#", "=", "+", "<", "€", "$", "°"),
    *("✓", "👍", "❤\ufe0f", "\ue000", "Sure.", "Answer", "Step 1", "Reasoning"),
    *("Solution: 5", "The solution is water.", "Thought process: none", "Solution A", "解は3"),
    "Let's solve this problem step by step. First, find the gate.",
)
"""Answers, however short: letters, numbers, symbols and emoji say something."""


@pytest.mark.parametrize("text", NOTHING)
def test_what_says_nothing_is_known(text: str) -> None:
    """Punctuation, space, invisible characters, openers in whatever dress."""
    assert is_without_content(keyed_example(response=[text]))


@pytest.mark.parametrize("text", SOMETHING)
def test_a_short_answer_is_an_answer(text: str) -> None:
    """It is judged as ever."""
    assert not is_without_content(keyed_example(response=[text]))


def test_a_response_without_content_has_no_sentence_with_any() -> None:
    """Openers are written as they are compared: lower case, without punctuation at the ends."""
    assert is_without_content(keyed_example(response=["Thought process:", "...", "Solution"]))
    assert not is_without_content(keyed_example(response=["Solution:", "42"]))
    for opener in OPENERS:
        assert is_without_content(keyed_example(response=[opener])), opener
    for heading in HEADINGS:
        assert is_without_content(keyed_example(response=[f"{heading}:"])), heading
        assert not is_without_content(keyed_example(response=[heading])), heading


def generous(request: Task) -> JudgeReply:
    """Find everything supported, in each way that the contract knows, and badly spelled."""
    keys = request.example.document_keys()
    answer = {
        "relevance_explanation": "the first one answers it",
        "all_relevant_sentence_keys": [keys[0].upper()],
        "overall_supported_explanation": "well said",
        "overall_supported": True,
        "sentence_support_information": [
            {
                "response_sentence_key": key,
                "explanation": "well said",
                "supporting_sentence_keys": [keys[0], "general"],
                "fully_supported": True,
            }
            for key in request.example.response_keys()
        ],
        "all_utilized_sentence_keys": keys[:2],
    }
    return JudgeReply(GPTLabelingOutput.model_validate(answer), ReplyFacts(attempts=1))


def labeled(*responses: str) -> Iterator[LabelRecord]:
    """Label one row for each response with the generous judge."""
    rows = [
        {
            "id": str(number),
            "question": "When was the gate built?",
            "documents": ["The gate was built in 1820.", "It leans.", "Ducks pass."],
            "documents_sentences": [
                ["The gate was built in 1820."],
                ["It leans."],
                ["Ducks pass."],
            ],
            "response": response,
            "response_sentences": [response],
        }
        for number, response in enumerate(responses)
    ]
    store = labeler.MemoryStore()
    for outcome in labeler.label(rows, judge=CountingJudge(generous), store=store):
        assert outcome.kind == "label", outcome
        assert store.get(outcome.key) == outcome
        yield outcome


MASTER_KEYS = (":", ".", "Thought process:", "Solution", "解", "かいせつ")
EARNED = ("faithfulness", "citation_coverage", "utilization", "adherence_fraction")


def test_no_judge_gives_support_to_a_response_that_says_nothing() -> None:
    """In the label and in every dialect of every metric; relevance is measured as ever."""
    for record in labeled(*MASTER_KEYS, "Let's solve this problem step by step."):
        label = record.label
        assert not label.overall_supported
        assert label.all_utilized_sentence_keys == ()
        assert [e.fully_supported for e in label.sentence_support_information] == [False]
        assert [e.supporting_sentence_keys for e in label.sentence_support_information] == [()]
        counted = tally(record)
        values = {m.id: m.compute(counted).value for m in select_metrics("all")}
        earned = {
            name: value
            for name, value in values.items()
            if name.split(":")[0] in (*EARNED, "adherence", "completeness")
        }
        assert set(earned.values()) <= {0.0, None}, earned
        assert values["adherence"] == values["adherence:ragbench"] == 0.0
        assert values["relevance"] == values["relevance:ragbench"] == pytest.approx(1 / 3)
        assert values["completeness"] == values["utilization"] == 0.0


def test_what_was_overruled_is_counted_kept_and_sound() -> None:
    """The answer stands beside the label as it was given; overruling again changes nothing."""
    (record,) = labeled(":")
    assert record.normalised == {"spelling": 1, SUPPORT: 2, USE: 2}
    assert record.verbatim is not None
    assert record.verbatim.overall_supported
    assert record.verbatim.sentence_support_information[0].fully_supported
    assert record.verbatim.all_relevant_sentence_keys == ("0A",)
    assert check_label(record.label, record.example).violations == ()
    assert record.fault() is None
    (record,) = labeled(".")
    again = overrule(record.label, record.example)
    assert again == (record.label, {})


def test_an_answer_keeps_what_a_judge_gave_it() -> None:
    """No verdict on a response that says something is touched."""
    for record in labeled("42", "No.", "はい", "1820"):
        assert record.label.overall_supported
        assert record.normalised == {"spelling": 1}


def test_a_judge_that_gave_nothing_is_not_corrected() -> None:
    """The embedded judge gives the well-known ones nothing, so nothing is counted."""
    rows = [
        {"id": text, "question": "Why?", "documents": ["Fact."], "response": text}
        for text in ("Thought process:", "Solution", "Let's solve this problem step by step.")
    ]
    for outcome in labeler.label(rows, judge="embedded", store=labeler.MemoryStore()):
        assert outcome.kind == "label"
        assert (outcome.normalised, outcome.verbatim) == ({}, None)


ROW = {"question": "How long is it?", "documents": ["It is 90 m long."]}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>Hm. 80 m?</think>\n\nIt is 90 m.", "It is 90 m."),
        ("<thinking>Hm.</thinking>It is 90 m.", "It is 90 m."),
        ("<THINK time=3>Hm.</Think> It is 90 m.", "It is 90 m."),
        ("Hm, 80 m?\n</think>\nIt is 90 m.", "It is 90 m."),
        ("[THINK]Hm.[/THINK]It is 90 m.", "It is 90 m."),
        ("Hm.[/THINK]It is 90 m.", "It is 90 m."),
        ("◁think▷Hm.◁/think▷It is 90 m.", "It is 90 m."),
        (
            "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>It",
            "It",
        ),
        ("<think>A `tick</think>It is `90` m.", "It is `90` m."),
        ("<think>a <think>b</think> c</think>It is 90 m.", "It is 90 m."),
        ("It is <think>Hm.</think> 90 m.", "It is  90 m."),
        ("<think>Hm, and then it stops", ""),
        ("Put thoughts into `<think>` and `</think>`.", None),
        ("```xml\n<think>x</think>\n```\nSo.", None),
        ("~~~\n</think>\n~~~\nSo.", None),
        ("The <thinker> of </div> is 1 < 2.", None),
        ("<scratchpad>80 m?</scratchpad>\n90 m.", "90 m."),
        ("<antThinking>80 m?</antThinking>\n90 m.", "90 m."),
        ("<reflection>80 m?</reflection>\n90 m.", "90 m."),
        ("<|begin_of_thought|>80 m?<|end_of_thought|>\n90 m.", "90 m."),
        ("<|START_THINKING|>80 m?<|END_THINKING|>\n90 m.", "90 m."),
    ],
)
def test_thoughts_are_left_out(text: str, answer: str | None) -> None:
    """In all their spellings, cut off too; a tag in code is text."""
    assert without_thoughts(text) == (text if answer is None else answer)


def test_responses_with_thoughts_are_counted(tmp_path: Path, labeler_command: Command) -> None:
    """By one notice, also on a rerun; an option keeps them."""
    responses = ["<think>80 m?</think>It is 90 m.", "It is 90 m.", "Hm. 8 m.</think> It is 90 m."]
    lines = [json.dumps({**ROW, "response": text}) for text in responses]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    run = ("label", "rows.jsonl", "--judge", "embedded", "-o", "labels.jsonl")
    for _ in range(2):
        _, _, err = labeler_command(*run)
        assert err.count("2 rows have thoughts in the response") == 1
        read = map(json.loads, (tmp_path / "labels.jsonl").read_text().splitlines())
        assert {one["example"]["response"][0]["text"] for one in read} == {"It is 90 m."}
    _, _, err = labeler_command(*run, "--keep-thinking")
    assert "thoughts" not in err
    assert "80 m?" in (tmp_path / "labels.jsonl").read_text()


def test_given_sentences_and_other_fields_keep_their_tags() -> None:
    """They have to match their text."""
    row = {**ROW, "response": "<think>a</think>b", "documents": ["<think>D</think>"]}
    sentences = {"documents_sentences": [["x"]], "response_sentences": ["x"]}
    one, other = (each.content for each in open_rows([row, {**row, **sentences}]))
    assert isinstance(one, Example)
    assert (one.response, one.documents) == ("b", ("<think>D</think>",))
    assert other.response == row["response"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a\n```py\nb\n```\nc", ["```py\nb\n```\n"]),
        ("~~~\nb\n~~~\nc", ["~~~\nb\n~~~\n"]),
        ("````\n```\nb\n```\n````\nc", ["````\n```\nb\n```\n````\n"]),
        ("- ```js\n  b\n  ```\nc", ["- ```js\n  b\n  ```\n"]),
        ("> ```\n> b\n> ```\nc", ["> ```\n> b\n> ```\n"]),
        ("a\n```python\nb", ["```python\nb"]),
        ("```\nend of a block", []),
        ("a `b` c ``d`e`` ```f\ng```", ["`b`", "``d`e``", "```f\ng```"]),
        (
            "a <code>b < c</code> <pre>d\ne</pre> <b>f</b>",
            ["<code>b < c</code>", "<pre>d\ne</pre>"],
        ),
        ("one ` two", []),
    ],
)
def test_fenced_and_inline_code(text: str, code: list[str]) -> None:
    """Longer fences hold shorter ones; half a fence opens a block only with a language."""
    assert [text[start:end] for start, end in code_spans(text)] == code


@pytest.mark.parametrize(
    ("block", "is_code"),
    [
        ("    a = b[0]\n    print(a)", True),
        ("\tfor a in b:\n\t\ta.run()", True),
        ("    # take the first one of them\n    return b[0]", True),
        ("    $ tool --first", True),
        ("    SELECT b[0] FROM table", True),
        ("    a = b[0]\nprint(a)", False),
        ("    The quay is 90 m long (see [1]).", False),
        ("    Monday 9 to 17\n    Tuesday closed", False),
        ("    \u7801\u5934\u5f88\u957f = 90", False),
        ('    <p class="a">b</p>', False),
    ],
)
def test_indented_code(block: str, is_code: bool) -> None:
    """All lines are indented, one looks like code, and none like prose or HTML."""
    assert is_indented_code(block.splitlines()) == is_code
