"""Responses that say nothing, and thoughts that are no part of a response."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import labeler
from labeler.calculators import select_metrics
from labeler.calculators.tally import tally
from labeler.judges.task import JudgeReply, Task
from labeler.labels.contract import SUPPORT, USE, check_label
from labeler.labels.non_answers import HEADINGS, OPENERS, is_without_content, overrule
from labeler.labels.record import LabelRecord, ReplyFacts
from labeler.sentences.citations import code_spans, is_indented_code
from labeler.sentences.conversation import without_thoughts
from support.command import Command
from support.fakes import CountingJudge
from support.labeled import output
from support.rows import examples, write_lines
from support.samples import keyed_example

NOTHING = (
    *("", " ", "\n\t", ".", ":", "!!!", "…", "—", "、。", "()", "```", "---", "| |", "**", "·"),
    *("\u200b", "\u00a0", "\ufeff", "\x00", "\ufffd", "\u3164", "\u2800", "\u0301", "\u202e\u202c"),
    "\U000e0041\U000e0042",
    *("Thought process:", "thought process", "**Thought process:**", "Thought process: :"),
    *("Solution", "Solution:", "SOLUTION.", "# Solution", "So\u200blution"),
    "\uff33\uff2f\uff2c\uff35\uff34\uff29\uff2f\uff2e",
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


@pytest.mark.parametrize(
    ("text", "is_empty"),
    [*((text, True) for text in NOTHING), *((text, False) for text in SOMETHING)],
)
def test_what_says_nothing_is_known(text: str, is_empty: bool) -> None:
    """Punctuation, space, invisible characters, openers in whatever dress; not a short answer."""
    assert is_without_content(keyed_example(response=[text])) is is_empty


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
    first, second, _ = request.example.document_keys()
    support = {key: [first, "general"] for key in request.example.response_keys()}
    relevant, utilized = [first.upper()], [first, second]
    answer = output(relevant=relevant, utilized=utilized, support=support, explanation="well said")
    return JudgeReply(answer, ReplyFacts(attempts=1))


def labeled(*responses: str) -> Iterator[LabelRecord]:
    """Label one row for each response with the generous judge."""
    documents = ["The gate was built in 1820.", "It leans.", "Ducks pass."]
    given = {"documents": documents, "documents_sentences": [[one] for one in documents]}
    rows = [
        {"question": "When was it built?", **given, "response": text, "response_sentences": [text]}
        for text in responses
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
        judged = label.sentence_support_information
        assert [(e.fully_supported, e.supporting_sentence_keys) for e in judged] == [(False, ())]
        counted = tally(record)
        values = {m.id: m.compute(counted).value for m in select_metrics("all")}
        names = (*EARNED, "adherence", "completeness")
        earned = {name: v for name, v in values.items() if name.split(":")[0] in names}
        assert set(earned.values()) <= {0.0, None}, earned
        assert values["adherence"] == values["adherence:ragbench"] == 0.0
        assert values["relevance"] == values["relevance:ragbench"] == pytest.approx(1 / 3)
        assert values["completeness"] == values["utilization"] == 0.0


def test_what_was_overruled_is_counted_kept_and_sound() -> None:
    """The answer stays as it was given; no verdict on a response that says something is touched."""
    record, *others = labeled(":", "42", "No.", "はい", "1820")
    assert record.normalised == {"spelling": 1, SUPPORT: 2, USE: 2}
    assert record.verbatim is not None
    assert record.verbatim.overall_supported
    assert record.verbatim.sentence_support_information[0].fully_supported
    assert record.verbatim.all_relevant_sentence_keys == ("0A",)
    assert check_label(record.label, record.example).violations == ()
    assert record.fault() is None
    assert overrule(record.label, record.example) == (record.label, {})
    for one in others:
        assert (one.label.overall_supported, one.normalised) == (True, {"spelling": 1})
    rows = [
        {"question": "Why?", "documents": ["Fact."], "response": text} for text in MASTER_KEYS[2:4]
    ]
    for made in labeler.label(rows, judge="embedded", store=labeler.MemoryStore()):
        assert isinstance(made, LabelRecord)
        assert (made.normalised, made.verbatim) == ({}, None)


SAID = "<|message|>"
ROW = {"question": "How long is it?", "documents": ["It is 90 m long."]}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>Hm. 80 m?</think>\n\nIt is 90 m.", "It is 90 m."),
        ("<THINK time=3>Hm.</Think> It is 90 m.", "It is 90 m."),
        ("Hm, 80 m?\n</think>\nIt is 90 m.", "It is 90 m."),
        ("[THINK]Hm.[/THINK]It is 90 m.", "It is 90 m."),
        ("◁think▷Hm.◁/think▷It is 90 m.", "It is 90 m."),
        (f"<|channel|>analysis{SAID}Hm.<|end|><|start|>assistant<|channel|>final{SAID}It", "It"),
        ("<think>A `tick</think>It is `90` m.", "It is `90` m."),
        ("<think>a <think>b</think> c</think>It is 90 m.", "It is 90 m."),
        ("It is <think>Hm.</think> 90 m.", "It is  90 m."),
        ("<think>Hm, and then it stops", ""),
        ("Put thoughts into `<think>` and `</think>`.", None),
        ("```xml\n<think>x</think>\n```\nSo.", None),
        ("~~~\n</think>\n~~~\nSo.", None),
        ("The <thinker> of </div> is 1 < 2.", None),
        ("<scratchpad>80 m?</scratchpad>\n90 m.", "90 m."),
        ("<antThinking>80 m?</antThinking>\n<longcat_think>Hm.</longcat_think>90 m.", "90 m."),
        ('<details type="reasoning" done="true">\n> 80 m?\n</details>\n90 m.', "90 m."),
        ("<details title='reasoning'><summary>More</summary>It is 90 m.</details>", None),
        ("Write `<details type='reasoning'>x</details>`.", None),
        ("It is 90 m. <final_thoughts>Take the ferry.</final_thoughts>", None),
        ("<|begin_of_thought|>80 m?<|end_of_thought|>\n90 m.", "90 m."),
        ("<|START_THINKING|>80 m?<|END_THINKING|>\n90 m.", "90 m."),
        ("<|channel>thought\n80 m?<channel|>90 m.", "90 m."),
        ("Thought: 80 m?\nAction: look\nFinal Answer: 90 m.", "90 m."),
        ("analysisWe look.assistantfinal90 m.", "90 m."),
        ("assistantanalysis\n\nWe look.\n\nassistantfinal\n\n90 m.", "90 m."),
        ("<plan>Look.</plan>\n<answer>90 m.</answer>", "<answer>90 m.</answer>"),
        ("<answer>90 m.</answer>\n<answer>It is old.</answer>", None),
        ("<b>It</b> is long. <b>It is old.</b> <answer>90 m.", None),
        ("<plan>80 m?</plan><answer>90 m.</answer><think>Hm.</think>", "<answer>90 m.</answer>"),
        ("<title>The quay</title>\n<answer>90 m.</answer>", None),
        ("It is 90 m.<channel|>", None),
        ("Here is my thought process:\n80 m?\nHere is my response: 90 m.", "90 m."),
        ("Thinking: it is long.\nFinal answer: 90 m.", None),
    ],
)
def test_thoughts_are_left_out(text: str, answer: str | None) -> None:
    """In all their spellings, cut off too; a tag in code is text."""
    assert without_thoughts(text) == (text if answer is None else answer)


def test_responses_with_thoughts_are_counted(tmp_path: Path, labeler_command: Command) -> None:
    """By one notice, also on a rerun; an option keeps them; given sentences and other fields do."""
    responses = ["<think>80 m?</think>It is 90 m.", "It is 90 m.", "Hm. 8 m.</think> It is 90 m."]
    write_lines(tmp_path / "rows.jsonl", [{**ROW, "response": text} for text in responses])
    run = ("label", "rows.jsonl", "--judge", "embedded", "-o", "labels.jsonl")
    for _ in range(2):
        _, _, err = labeler_command(*run)
        assert err.count("2 rows have thoughts in the response") == 1
        read = map(json.loads, (tmp_path / "labels.jsonl").read_text().splitlines())
        assert {one["example"]["response"][0]["text"] for one in read} == {"It is 90 m."}
    _, _, err = labeler_command(*run, "--keep-thinking")
    assert "thoughts" not in err
    assert "80 m?" in (tmp_path / "labels.jsonl").read_text()
    row = {**ROW, "response": "<think>a</think>b", "documents": ["<think>D</think>"]}
    sentences = {"documents_sentences": [["x"]], "response_sentences": ["x"]}
    one, other = examples([row, {**row, **sentences}])
    assert (one.response, one.documents) == ("b", ("<think>D</think>",))
    assert other.response == row["response"]


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
